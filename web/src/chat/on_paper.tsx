/** A conversation as it is printed: all rows of it, for a list draws those that are near the screen only. */

import { useEffect, useState } from "react";
import { flushSync } from "react-dom";
import { RowView, type EntryActions } from "./entries.tsx";
import type { Row } from "./rows.ts";

export function OnPaper({ rows, actions }: { rows: readonly Row[]; actions: EntryActions }) {
  const [prints, setPrints] = useState(false);
  useEffect(() => {
    // The browser takes the page as it is when this returns.
    const begin = (): void => flushSync(() => setPrints(true));
    const end = (): void => setPrints(false);
    addEventListener("beforeprint", begin);
    addEventListener("afterprint", end);
    return () => {
      removeEventListener("beforeprint", begin);
      removeEventListener("afterprint", end);
    };
  }, []);
  if (!prints) return null;
  return (
    <div className="on-paper">
      {rows.map((row) => (
        <RowView key={row.key} row={row} actions={actions} />
      ))}
    </div>
  );
}
