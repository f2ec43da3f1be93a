/** Some lines of a diff: numbers, words that changed, colours, comments below their line (UI-26, UI-29). */

import { memo, useMemo, type ReactNode } from "react";
import type { LinesRow } from "../state/diff_rows.ts";
import { withMarks } from "../state/hidden_marks.ts";
import type { Line, Pair } from "../state/hunks.ts";
import { wordEdits, type Ranges } from "../state/word_edits.ts";
import { t } from "../text.ts";
import { useLineColours, withEdits, type Colours } from "./colours.ts";
import type { ReviewComment } from "./comments.ts";

export interface LinePlace {
  side: "old" | "new";
  line: number;
}

export interface Widgets {
  /** Comments shown below a line, and the form when it is open there. */
  below: (line: Line) => ReactNode;
  pick: (place: LinePlace, extend: boolean) => void;
}

const edits = new WeakMap<readonly Line[], Map<Line, Ranges>>();

function editsOf(lines: readonly Line[]): Map<Line, Ranges> {
  const known = edits.get(lines) ?? wordEdits(lines);
  edits.set(lines, known);
  return known;
}

export function placeOfLine(line: Line): LinePlace {
  return line.newLine !== null ? { side: "new", line: line.newLine } : { side: "old", line: line.oldLine ?? 0 };
}

const SIGNS = { insert: "+", delete: "−", normal: " " };

/** A text whose unseen characters are seen. */
function Seen({ text }: { text: string }) {
  const pieces = withMarks(text);
  if (pieces.length === 1 && !pieces[0]?.mark) return text;
  return pieces.map((piece, at) =>
    piece.mark ? (
      <span key={at} className="unseen" title={t.unseen}>
        {piece.text}
      </span>
    ) : (
      piece.text
    ),
  );
}

/** How a changed line ends, where that is not the usual way. */
function Ending({ line }: { line: Line }) {
  if (line.type === "normal" || !(line.cr || line.open)) return null;
  return (
    <span className="unseen" title={line.open ? t.noLineEnd : t.crLf}>
      {line.open ? t.noLineEnd : "CR LF"}
    </span>
  );
}

function Code({ line, colours, changed }: { line: Line; colours: Colours | null; changed: Map<Line, Ranges> }) {
  return (
    <>
      <Pieces line={line} colours={colours} changed={changed} />
      <Ending line={line} />
    </>
  );
}

function Pieces({ line, colours, changed }: { line: Line; colours: Colours | null; changed: Map<Line, Ranges> }) {
  const ranges = changed.get(line);
  const pieces = colours?.get(line);
  if (!pieces && !ranges) return line.content ? <Seen text={line.content} /> : "\u200b";
  const plain = pieces ?? [{ text: line.content, colour: "", edited: false }];
  return withEdits(plain, ranges).map((piece, at) =>
    piece.edited || piece.colour ? (
      <span key={at} className={`${piece.colour}${piece.edited ? " edit" : ""}`}>
        <Seen text={piece.text} />
      </span>
    ) : (
      <Seen key={at} text={piece.text} />
    ),
  );
}

function Gutter({ line, side, pick }: { line: Line | null; side: "old" | "new"; pick: Widgets["pick"] }) {
  const number = side === "old" ? line?.oldLine : line?.newLine;
  if (!line || number == null) return <td className="num" />;
  // The other side's number of an unchanged line is only read.
  if (side === "old" && line.type === "normal") return <td className="num">{number}</td>;
  return (
    <td className="num">
      <button type="button" tabIndex={-1} aria-label={t.commentLine(number)} onClick={(event) => pick({ side, line: number }, event.shiftKey)}>
        {number}
      </button>
    </td>
  );
}

interface ChunkProps {
  row: LinesRow;
  language: string | null;
  leftOut: boolean;
  /** Changes whenever `widgets` would show something else here. */
  comments: readonly ReviewComment[];
  form: string;
  widgets: Widgets;
}

export const Chunk = memo(
  function Chunk({ row, language, leftOut, widgets }: ChunkProps) {
    const colours = useLineColours(row.around, language);
    const changed = useMemo(() => editsOf(row.around), [row.around]);
    const parts = { colours, changed, widgets };
    return (
      <table className={`lines ${row.split ? "split" : "unified"} ${leftOut ? "left-out" : ""}`}>
        <colgroup>
          <col className="num-col" />
          {row.split && <col />}
          <col className="num-col" />
          <col />
        </colgroup>
        <tbody>
          {row.split
            ? row.split.map((pair, at) => <SplitLine key={at} pair={pair} {...parts} />)
            : row.unified.map((line, at) => <UnifiedLine key={at} line={line} {...parts} />)}
        </tbody>
      </table>
    );
  },
  (before, after) =>
    before.row === after.row &&
    before.leftOut === after.leftOut &&
    before.form === after.form &&
    before.language === after.language &&
    before.comments.length === after.comments.length &&
    before.comments.every((comment, at) => comment === after.comments[at]),
);

interface Parts {
  colours: Colours | null;
  changed: Map<Line, Ranges>;
  widgets: Widgets;
}

function UnifiedLine({ line, colours, changed, widgets }: Parts & { line: Line }) {
  const below = widgets.below(line);
  return (
    <>
      <tr className={`diff-line ${line.type}`}>
        <Gutter line={line} side="old" pick={widgets.pick} />
        <Gutter line={line} side="new" pick={widgets.pick} />
        <td className="code">
          <span className="sign">{SIGNS[line.type]}</span>
          <Code line={line} colours={colours} changed={changed} />
        </td>
      </tr>
      {below && (
        <tr className="below">
          <td colSpan={3}>{below}</td>
        </tr>
      )}
    </>
  );
}

function SplitLine({ pair, colours, changed, widgets }: Parts & { pair: Pair }) {
  const [left, right] = pair;
  const below = [left?.type === "normal" ? null : left, right].map((line) => (line ? widgets.below(line) : null));
  const half = (line: Line | null, side: "old" | "new"): ReactNode => (
    <>
      <Gutter line={line} side={side} pick={widgets.pick} />
      <td className={`code ${line ? line.type : "none"}`}>
        {line && <span className="sign">{SIGNS[line.type]}</span>}
        {line && <Code line={line} colours={colours} changed={changed} />}
      </td>
    </>
  );
  return (
    <>
      <tr className="diff-line">
        {half(left, "old")}
        {half(right, "new")}
      </tr>
      {below.some(Boolean) && (
        <tr className="below">
          <td colSpan={2}>{below[0]}</td>
          <td colSpan={2}>{below[1]}</td>
        </tr>
      )}
    </>
  );
}
