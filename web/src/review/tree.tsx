/** The tree of changed files: counts, marks, the red lane apart (UI-26, UI-28). Virtualised for thousands. */

import { X } from "lucide-react";
import { useMemo } from "react";
import { Virtuoso } from "react-virtuoso";
import { fileMark, setAll, setFile, type ChangedFile, type Choice } from "../state/review.ts";
import { t } from "../text.ts";
import { IconButton } from "../ui/kit.tsx";

export type TreeRow = { kind: "directory"; key: string; name: string } | { kind: "lane"; key: string } | { kind: "file"; key: string; file: ChangedFile };

/** Return files in the order of the page: ordinary ones by directory, then the red lane. */
export function inReviewOrder(files: readonly ChangedFile[]): ChangedFile[] {
  return [...files.filter((file) => !file.isRed && !file.ignored), ...files.filter((file) => file.isRed)];
}

export function treeRows(files: readonly ChangedFile[]): TreeRow[] {
  const rows: TreeRow[] = [];
  let directory: string | null = null;
  let lane = false;
  for (const file of files) {
    if (file.isRed && !lane) {
      lane = true;
      directory = null;
      rows.push({ kind: "lane", key: "lane" });
    }
    if (file.directory !== directory) {
      directory = file.directory;
      if (directory) rows.push({ kind: "directory", key: `${lane ? "!" : ""}${directory}`, name: directory });
    }
    rows.push({ kind: "file", key: file.path, file });
  }
  return rows;
}

export function Counts({ file }: { file: ChangedFile }) {
  if (file.binary) return <span className="counts muted">{t.binary}</span>;
  if (file.kind === "delete") return <span className="counts minus">{t.deletedShort}</span>;
  return (
    <span className="counts">
      <span className="plus">+{file.added}</span> <span className="minus">−{file.removed}</span>
    </span>
  );
}

interface MarkProps {
  file: ChangedFile;
  choice: Choice;
  onChoice: (choice: Choice) => void;
}

export function FileMark({ file, choice, onChoice }: MarkProps) {
  const mark = fileMark(choice, file);
  return (
    <label className="check">
      <input
        type="checkbox"
        aria-label={t.choose(file.path.slice(1))}
        checked={mark === "all"}
        ref={(input) => {
          if (input) input.indeterminate = mark === "some";
        }}
        onChange={() => onChoice(setFile(choice, file, mark !== "all"))}
      />
    </label>
  );
}

interface TreeProps {
  files: readonly ChangedFile[];
  ignored: number;
  choice: Choice;
  current: string | null;
  open: boolean;
  onChoice: (choice: Choice) => void;
  onPick: (path: string) => void;
  onClose: () => void;
}

export function ChangeTree({ files, ignored, choice, current, open, onChoice, onPick, onClose }: TreeProps) {
  const rows = useMemo(() => treeRows(files), [files]);
  const ordinary = files.filter((file) => !file.isRed);
  const all = ordinary.length > 0 && ordinary.every((file) => choice[file.path] === "all");
  const some = !all && ordinary.some((file) => choice[file.path] !== undefined);
  return (
    <aside className={`change-tree ${open ? "" : "shut"}`} aria-label={t.changedFiles} onKeyDown={(event) => event.key === "Escape" && onClose()}>
      <div className="tree-head">
        <label className="check grow">
          <input
            type="checkbox"
            checked={all}
            ref={(input) => {
              if (input) input.indeterminate = some;
            }}
            onChange={() => onChoice(setAll(choice, files, !all))}
          />
          <span>{t.allFiles(ordinary.length)}</span>
        </label>
        <span className="phone-only">
          <IconButton icon={X} label={t.close} onClick={onClose} />
        </span>
      </div>
      <Virtuoso
        style={{ flex: 1 }}
        data={rows}
        computeItemKey={(_, row) => row.key}
        itemContent={(_, row) => {
          if (row.kind === "lane") return <div className="tree-row lane">{t.redLane}</div>;
          if (row.kind === "directory") return <div className="tree-row directory clip">{row.name}/</div>;
          const { file } = row;
          return (
            <div className={`tree-row ${file.path === current ? "current" : ""}`}>
              <FileMark file={file} choice={choice} onChoice={onChoice} />
              <button type="button" className={`name ${file.kind === "delete" ? "gone" : ""}`} title={file.path} onClick={() => onPick(file.path)}>
                {file.name}
              </button>
              <Counts file={file} />
            </div>
          );
        }}
      />
      {ignored > 0 && <div className="file-foot">{t.ignoredFiles(ignored)}</div>}
    </aside>
  );
}
