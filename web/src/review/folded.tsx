/** What stays on the branch by itself, one line for each top directory, to be ticked (GI-7). Not here: files. */

import { toggled } from "../state/review.ts";
import { size } from "../state/words.ts";
import { t } from "../text.ts";
import type { Review } from "./use_review.ts";

export function Folded({ review }: { review: Review }) {
  const { beside, folded, setBeside } = review;
  if (folded.length === 0) return null;
  return (
    <section className="problem info" aria-label={t.foldedTitle} data-testid="folded">
      <ul>
        {folded.map((row) => {
          const name = row.path.slice(1);
          const on = beside.include.includes(row.path);
          return (
            <li key={row.path}>
              <label className="check">
                <input
                  type="checkbox"
                  aria-label={t.includeRow(name)}
                  checked={on}
                  onChange={() => setBeside({ ...beside, include: toggled(beside.include, row.path) })}
                />
                <span>
                  <span className="mono">{name}</span> {t.foldedRow(row.files, size(row.bytes))}, {on ? t.landsToo : t.staysOnBranch}
                </span>
              </label>
            </li>
          );
        })}
      </ul>
    </section>
  );
}
