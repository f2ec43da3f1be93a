/** What a call changed or would change, where it happens: lines with their numbers, long ones folded (UI-70, UI-71). */

import { ChevronDown, ChevronUp } from "lucide-react";
import { memo, useMemo } from "react";
import type { ToolDiff } from "../api/frames.ts";
import type { Line } from "../state/hunks.ts";
import { seenName, seenText } from "../state/hidden_marks.ts";
import { diffLines, isCut, type DiffLine } from "../state/tool_diff.ts";
import { t } from "../text.ts";
import { useOpened } from "../ui/opened.ts";

const SIGNS = { insert: "+", delete: "−", normal: " " };
/** So many rows are shown at once; a fold that would hide fewer than this is none. */
const FIRST = 14;
const FEW = 4;

export function DiffCount({ diff }: { diff: ToolDiff }) {
  return (
    <span className="counts" aria-label={t.linesChanged(diff.added, diff.removed)} role="img">
      <span className="plus">+{diff.added}</span> <span className="minus">−{diff.removed}</span>
    </span>
  );
}

function Numbered({ line }: { line: Line }) {
  return (
    <tr className={`diff-line ${line.type}`}>
      <td className="num">{line.oldLine}</td>
      <td className="num">{line.newLine}</td>
      <td className="code">
        <span className="sign">{SIGNS[line.type]}</span>
        {seenText(line.content) || "\u200b"}
      </td>
    </tr>
  );
}

function Row({ row }: { row: DiffLine }) {
  if (row.kind === "line") return <Numbered line={row.line} />;
  return (
    <tr className="between">
      <td colSpan={3}>{row.kind === "path" ? seenName(row.path) : "⋯"}</td>
    </tr>
  );
}

/** @param name what the fold is known by, so that it stays as it is when its row is drawn anew. */
export const DiffCard = memo(function DiffCard({ diff, name }: { diff: ToolDiff; name: string }) {
  const [all, setAll] = useOpened(`diff:${name}`);
  const lines = useMemo(() => diffLines(diff), [diff]);
  if (lines.length === 0) return null;
  const folds = lines.length > FIRST + FEW;
  const shown = folds && !all ? lines.slice(0, FIRST) : lines;
  const Icon = all ? ChevronUp : ChevronDown;
  return (
    <div className="diff-card">
      <div className="scroll" tabIndex={0} role="group" aria-label={t.linesChanged(diff.added, diff.removed)}>
        <table className="lines unified">
          <colgroup>
            <col className="num-col" />
            <col className="num-col" />
            <col />
          </colgroup>
          <tbody>
            {shown.map((row, at) => (
              <Row key={at} row={row} />
            ))}
          </tbody>
        </table>
      </div>
      {folds && (
        <button type="button" className="button plain small" aria-expanded={all} onClick={() => setAll(!all)}>
          <Icon size={14} aria-hidden="true" />
          {all ? t.fewerLines : t.allLines(lines.filter((row) => row.kind === "line").length)}
        </button>
      )}
      {isCut(diff, lines) && (all || !folds) && <p className="cut muted">{t.diffCut}</p>}
    </div>
  );
});
