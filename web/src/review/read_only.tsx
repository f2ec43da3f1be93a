/** Changes that are only looked at: of a landing, of a subagent, of an attempt. */

import { useMemo, useRef, useState, type ReactNode } from "react";
import { rowsOfFile, sidesOf, type Shape } from "../state/diff_rows.ts";
import { languageOf } from "../state/hunks.ts";
import { usePreferences } from "../state/preferences.ts";
import type { ChangedFile } from "../state/review.ts";
import { size } from "../state/words.ts";
import { t } from "../text.ts";
import { useMedia } from "../ui/media.ts";
import { SECTION_GAP, WindowList, type ListHandle } from "../ui/window_list.tsx";
import { linkWords, modeWords } from "./bodies.tsx";
import { Chunk, type Widgets } from "./lines.tsx";
import { Counts } from "./tree.tsx";

const QUIET: Widgets = { below: () => null, pick: () => undefined };
const NONE: readonly never[] = [];

function inWords(file: ChangedFile): string {
  if (file.kind === "delete") return file.type === "dir" ? t.directoryDeleted(file.inside.length) : t.wasDeleted;
  if (file.renamedFrom) return t.onlyRenamed;
  if (file.type === "symlink") return linkWords(file);
  if (file.type !== "file") return t.isA(file.type);
  if (file.binary) return t.binaryText(null, size(file.size ?? 0));
  if (file.hunks === null) return t.tooLargeToShow;
  if (file.longLines) return t.longText;
  return file.oldMode !== null && file.oldMode !== file.mode ? modeWords(file) : t.noTextChange;
}

interface ReadOnlyProps {
  files: readonly ChangedFile[];
  label: string;
  /** Before and after beside each other, whatever is preferred; where there is room. */
  sideBySide?: boolean;
}

export default function ReadOnlyDiff({ files, label, sideBySide }: ReadOnlyProps) {
  const { diffView } = usePreferences();
  const narrow = useMedia("(max-width: 1000px)");
  const [large, setLarge] = useState<ReadonlySet<string>>(new Set());
  const handle = useRef<ListHandle>(null);
  const view = narrow ? "unified" : sideBySide ? "split" : diffView;
  const sections = useMemo(
    () =>
      files.map((file) => {
        const shape: Shape = { view: sidesOf(file, view), ignoreSpace: false, large: large.has(file.path), gaps: {} };
        const plain = { ...file, isRed: false, isMarked: false, grade: "free" as const, uncertain: false, drift: "none" as const };
        return { key: file.path, head: 38 + SECTION_GAP, rows: rowsOfFile(plain, null, shape) };
      }),
    [files, view, large],
  );
  const draw = (index: number, number: number): ReactNode => {
    const file = files[index];
    const row = sections[index]?.rows[number];
    if (!file || !row) return null;
    if (row.kind === "lines") {
      return <Chunk row={row} language={languageOf(file.path)} leftOut={false} comments={NONE} form="" widgets={QUIET} />;
    }
    if (row.kind === "gap") return row.left === null ? null : <div className="gap-row still">{t.unchangedLines(row.left)}</div>;
    if (row.kind !== "body") return null;
    if (row.what !== "large") return <div className="file-foot">{inWords(file)}</div>;
    return (
      <div className="file-foot with-button">
        <span>{t.largeText(file.added, file.removed)}</span>
        <button type="button" className="button small" onClick={() => setLarge(new Set(large).add(file.path))}>
          {t.showLarge}
        </button>
      </div>
    );
  };
  return (
    <WindowList
      sections={sections}
      label={label}
      handle={handle}
      row={draw}
      section={(index, head, rows) => {
        const file = files[index];
        if (!file) return null;
        return (
          <article className="file-diff open still" aria-label={file.path.slice(1)}>
            {head(
              <header>
                <h2 title={file.path}>
                  <span className="path">
                    {file.directory && <span className="directory clip">{file.directory}</span>}
                    {file.directory && <span className="directory">/</span>}
                    <span className="clip name">{file.name}</span>
                  </span>
                  {file.kind !== "modify" && <span className={`badge ${file.kind === "create" ? "ok" : file.kind === "delete" ? "danger" : "accent"}`}>{t.kinds[file.kind]}</span>}
                </h2>
                {file.kind !== "delete" && <Counts file={file} />}
              </header>,
            )}
            {rows}
          </article>
        );
      }}
    />
  );
}
