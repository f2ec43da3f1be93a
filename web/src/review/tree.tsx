/** The tree of changed files: counts, marks, the red lane apart (UI-26, UI-28). Virtualised for thousands. */

import { ChevronDown, ChevronRight, Eye, ShieldAlert, X } from "lucide-react";
import { useEffect, useMemo, useRef, useState } from "react";
import { Virtuoso, type VirtuosoHandle } from "react-virtuoso";
import { fileMark, flagReason, isByItself, setAll, setFile, type ChangedFile, type Choice } from "../state/review.ts";
import { thousands } from "../state/words.ts";
import { seenName } from "../state/hidden_marks.ts";
import { t } from "../text.ts";
import { IconButton } from "../ui/kit.tsx";
import { useLeaving } from "../ui/leaving.ts";
import type { Viewed } from "./viewed.ts";

export type TreeRow =
  | { kind: "directory"; key: string; name: string; count: number }
  | { kind: "lane"; key: string; count: number }
  | { kind: "file"; key: string; file: ChangedFile };

const FILTER_FROM = 8;

/** Return files in the order of the page: ordinary ones by directory, then the red lane. */
export function inReviewOrder(files: readonly ChangedFile[]): ChangedFile[] {
  return [...files.filter((file) => !file.isRed), ...files.filter((file) => file.isRed)];
}

export function treeRows(files: readonly ChangedFile[], shut: ReadonlySet<string> = new Set()): TreeRow[] {
  const rows: TreeRow[] = [];
  let directory = null as Extract<TreeRow, { kind: "directory" }> | null;
  let lane = null as Extract<TreeRow, { kind: "lane" }> | null;
  for (const file of files) {
    if (file.isRed && !lane) {
      directory = null;
      lane = { kind: "lane", key: "lane", count: 0 };
      rows.push(lane);
    }
    if (lane) lane.count += 1;
    if (file.directory !== (directory?.name ?? "")) {
      directory = file.directory ? { kind: "directory", key: `${lane ? "!" : ""}${file.directory}`, name: file.directory, count: 0 } : null;
      if (directory) rows.push(directory);
    }
    if (directory) directory.count += 1;
    if (!directory || !shut.has(directory.key)) rows.push({ kind: "file", key: file.path, file });
  }
  return rows;
}

export function Counts({ file }: { file: ChangedFile }) {
  if (file.binary) return <span className="counts muted">{t.binary}</span>;
  if (file.kind === "delete" && file.type === "dir") return <span className="counts minus">{t.directoryOf(file.inside.length)}</span>;
  if (file.kind === "delete") return <span className="counts minus">{t.deletedShort}</span>;
  if (file.added + file.removed === 0) return null;
  return (
    <span className="counts">
      <span className="plus">+{thousands(file.added)}</span> <span className="minus">−{thousands(file.removed)}</span>
    </span>
  );
}

interface MarkProps {
  file: ChangedFile;
  choice: Choice;
  onChoice: (choice: Choice) => void;
}

export function FileMark({ file, choice, onChoice, word }: MarkProps & { word?: string }) {
  const mark = fileMark(choice, file);
  return (
    <label className={word ? "check mark" : "check"} title={word ? t.markHint : undefined}>
      <input
        type="checkbox"
        aria-label={t.choose(seenName(file.path.slice(1)))}
        checked={mark === "all"}
        ref={(input) => {
          if (input) input.indeterminate = mark === "some";
        }}
        onChange={() => onChoice(setFile(choice, file, mark !== "all"))}
      />
      {word && <span>{word}</span>}
    </label>
  );
}

interface TreeProps {
  files: readonly ChangedFile[];
  choice: Choice;
  viewed: Viewed;
  current: string | null;
  open: boolean;
  onChoice: (choice: Choice) => void;
  onPick: (path: string) => void;
  onClose: () => void;
}

export function ChangeTree({ files, choice, viewed, current, open, onChoice, onPick, onClose }: TreeProps) {
  const [query, setQuery] = useState("");
  const [shut, setShut] = useState<ReadonlySet<string>>(new Set());
  const list = useRef<VirtuosoHandle>(null);
  const rows = useMemo(() => {
    const wanted = query.trim().toLowerCase();
    return treeRows(wanted ? files.filter((file) => file.path.toLowerCase().includes(wanted)) : files, shut);
  }, [files, query, shut]);
  const ordinary = files.filter((file) => !isByItself(file));
  const all = ordinary.length > 0 && ordinary.every((file) => choice[file.path] === "all");
  const some = !all && ordinary.some((file) => choice[file.path] !== undefined);
  useEffect(() => {
    const index = rows.findIndex((row) => row.key === current);
    if (index >= 0) list.current?.scrollIntoView({ index });
    // Only going somewhere moves the tree, not what is typed into its filter.
  }, [current]);
  const toggle = (key: string): void => {
    const next = new Set(shut);
    if (!next.delete(key)) next.add(key);
    setShut(next);
  };
  const draw = (row: TreeRow) => {
    if (row.kind === "lane") {
      return (
        <div className="tree-row lane">
          <ShieldAlert size={14} aria-hidden="true" />
          <span className="grow">{t.redLane}</span>
          <span className="counts">{row.count}</span>
        </div>
      );
    }
    if (row.kind === "directory") {
      const Chevron = shut.has(row.key) ? ChevronRight : ChevronDown;
      return (
        <button type="button" className="tree-row directory" aria-expanded={!shut.has(row.key)} title={row.name} onClick={() => toggle(row.key)}>
          <Chevron size={13} aria-hidden="true" />
          <span className="clip name">
            <bdi>{seenName(row.name)}/</bdi>
          </span>
          {shut.has(row.key) && <span className="counts">{row.count}</span>}
        </button>
      );
    }
    const { file } = row;
    return (
      <div className={`tree-row ${file.directory ? "inner" : ""} ${viewed.has(file) ? "seen" : ""} ${file.path === current ? "current" : ""}`}>
        <FileMark file={file} choice={choice} onChoice={onChoice} />
        <button type="button" className={`name ${file.kind === "delete" ? "gone" : ""}`} title={file.path} aria-current={file.path === current || undefined} onClick={() => onPick(file.path)}>
          {seenName(file.name)}
        </button>
        {viewed.has(file) && (
          <span title={t.viewed}>
            <Eye size={13} aria-label={t.viewed} />
          </span>
        )}
        {file.isMarked && (
          <span title={file.flags.map(flagReason).join(" ")}>
            <ShieldAlert size={13} aria-label={t.marked} />
          </span>
        )}
        <Counts file={file} />
      </div>
    );
  };
  useLeaving(open, onClose);
  return (
    <aside className={`change-tree ${open ? "" : "shut"}`} aria-label={t.changedFiles}>
      <div className="tree-head">
        {ordinary.length === 0 ? (
          <span className="grow">{t.eachByItself(files.length)}</span>
        ) : (
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
        )}
        <span className="phone-only">
          <IconButton icon={X} label={t.close} onClick={onClose} />
        </span>
      </div>
      {files.length >= FILTER_FROM && (
        <div className="inspect-tools">
          <input className="input" type="search" aria-label={t.filterChanges} placeholder={t.filterChanges} value={query} onChange={(event) => setQuery(event.target.value)} />
        </div>
      )}
      <Virtuoso ref={list} role="group" aria-label={t.changedFiles} style={{ flex: 1 }} data={rows} computeItemKey={(_, row) => row.key} itemContent={(_, row) => draw(row)} />
    </aside>
  );
}
