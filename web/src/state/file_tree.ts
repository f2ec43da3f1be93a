/** Files of a branch as rows to browse: what the agent changed first, then the others by folder (UI-33). Pure. */

import type { FileListRow } from "../api/types.ts";

export type BrowseRow =
  | { kind: "folder"; key: string; path: string; name: string; depth: number; open: boolean; count: number }
  | { kind: "file"; key: string; file: FileListRow; name: string; depth: number };

/** With no more files than this every folder is open at first; with more, none is. */
const FEW = 60;

interface Folder {
  folders: Map<string, Folder>;
  files: FileListRow[];
  count: number;
}

const byPath = (a: FileListRow, b: FileListRow): number => (a.path < b.path ? -1 : 1);
const empty = (): Folder => ({ folders: new Map(), files: [], count: 0 });

/**
 * Return the rows that are shown.
 *
 * @param query what a path must contain; then the files are a flat list. turned: folders whose state somebody changed.
 */
export function browseRows(files: readonly FileListRow[], query: string, turned: ReadonlySet<string>): BrowseRow[] {
  const wanted = query.trim().toLowerCase();
  const flat = (file: FileListRow): BrowseRow => ({ kind: "file", key: file.path, file, name: file.path, depth: 0 });
  const changed = files.filter((file) => file.state === "unlanded").sort(byPath);
  const others = files.filter((file) => file.state !== "unlanded").sort(byPath);
  if (wanted) return [...changed, ...others].filter((file) => file.path.toLowerCase().includes(wanted)).map(flat);
  const root = empty();
  for (const file of others) {
    const parts = file.path.replace(/^\//, "").split("/").slice(0, -1);
    let place = root;
    for (const part of parts) {
      let next = place.folders.get(part);
      if (!next) place.folders.set(part, (next = empty()));
      next.count += 1;
      place = next;
    }
    place.files.push(file);
  }
  const rows = changed.map(flat);
  put(rows, root, "", 0, turned, others.length <= FEW);
  return rows;
}

function put(rows: BrowseRow[], folder: Folder, above: string, depth: number, turned: ReadonlySet<string>, usual: boolean): void {
  for (const [name, inside] of [...folder.folders].sort(([a], [b]) => (a < b ? -1 : 1))) {
    const path = `${above}${name}/`;
    const open = usual !== turned.has(path);
    rows.push({ kind: "folder", key: path, path, name, depth, open, count: inside.count });
    if (open) put(rows, inside, path, depth + 1, turned, usual);
  }
  for (const file of folder.files) rows.push({ kind: "file", key: file.path, file, name: file.path.split("/").at(-1) ?? file.path, depth });
}
