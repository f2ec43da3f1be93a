/** One call of an approval by itself: not this one, or this one with another command (UI-71). */

import { useState } from "react";
import type { CallAnswer, ToolUse } from "../api/frames.ts";
import { t } from "../text.ts";

export type CallAnswers = Record<string, CallAnswer>;

/** The answers with that of one call replaced; `undefined` = as all the others. */
export function withAnswer(before: CallAnswers, id: string, one: CallAnswer | undefined): CallAnswers {
  const { [id]: _, ...others } = before;
  return one === undefined ? others : { ...others, [id]: one };
}

interface Choice {
  tool: ToolUse;
  isAlone: boolean;
  busy: boolean;
  said: CallAnswer | undefined;
  say: (one: CallAnswer | undefined) => void;
}

export function CallChoice({ tool, isAlone, busy, said, say }: Choice) {
  const command = tool.input["command"];
  const [isOpen, setOpen] = useState(false);
  const isDenied = said?.decision === "deny";
  const edit = (text: string): void => say(text === command || text.trim() === "" ? undefined : { decision: "approve", command: text });
  return (
    <div className="actions">
      {!isAlone && (
        <label>
          <input type="checkbox" disabled={busy} checked={!isDenied} onChange={(event) => say(event.target.checked ? undefined : { decision: "deny" })} /> {t.runThis}
        </label>
      )}
      {typeof command === "string" && !isDenied && !isOpen && (
        <button type="button" className="button" disabled={busy} onClick={() => setOpen(true)}>
          {t.editCommand}
        </button>
      )}
      {typeof command === "string" && !isDenied && isOpen && (
        <textarea className="input mono" aria-label={t.commandToRun} rows={2} disabled={busy} defaultValue={said?.command ?? command} onChange={(event) => edit(event.target.value)} />
      )}
    </div>
  );
}
