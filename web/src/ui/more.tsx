/** Long lists, some rows at a time, with how many more there are. Not here: lists that are windows (`window_list.tsx`). */

import { useState, type ReactNode } from "react";
import { t } from "../text.ts";

const STEP = 60;

/** Return the rows to draw, and the button that draws more of them; none when all are drawn. */
export function useMore<Row>(rows: readonly Row[]): [readonly Row[], ReactNode] {
  const [most, setMost] = useState(STEP);
  const left = rows.length - most;
  if (left <= 0) return [rows, null];
  return [
    rows.slice(0, most),
    <p key="more" className="actions">
      <button type="button" className="button" onClick={() => setMost(most + 5 * STEP)}>
        {t.showMoreRows(left)}
      </button>
    </p>,
  ];
}
