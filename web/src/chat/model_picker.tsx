/** Beside the composer: the model that the next turn runs on, and the others there are (UI-75). */

import { useState } from "react";
import { api } from "../api/client.ts";
import type { ModelRow } from "../api/types.ts";
import { t } from "../text.ts";
import { complain } from "../ui/toasts.tsx";

interface ModelPickerProps {
  /** Name of the current model; "" = what the server has settled on. */
  current: string;
  onPick: (name: string) => void;
}

export function ModelPicker({ current, onPick }: ModelPickerProps) {
  const [rows, setRows] = useState<ModelRow[] | null>(null);
  // Asked for when somebody reaches for it: most chats stay with the model they have.
  const load = (): void => {
    if (rows === null) api.models().then(setRows, complain);
  };
  const others = (rows ?? []).filter((row) => row.name !== current);
  const now = rows?.find((row) => row.name === current);
  return (
    <select className="model-picker" aria-label={t.modelOfChat} title={t.modelOfChat} value={current} onPointerDown={load} onFocus={load} onChange={(event) => onPick(event.target.value)}>
      <option value={current}>{current === "" ? t.usualModel : now ? t.modelRow(now.name, now.input_usd, now.output_usd, now.window) : current}</option>
      {others.map((row) => (
        <option key={row.name} value={row.name}>
          {t.modelRow(row.name, row.input_usd, row.output_usd, row.window)}
        </option>
      ))}
    </select>
  );
}
