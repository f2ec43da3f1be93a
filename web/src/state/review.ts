/**
 * The review of a branch as values: what changed, what of it is chosen, what a landing is asked for. Pure.
 *
 * Not here: drawing, requests. A file is chosen whole, by some of its hunks, or not; a flagged file only by
 * itself (UI-28).
 */

import { t } from "../text.ts";
import type { Diff, LandingPlan, LandRequest, PlanEntry, Refused, WireHunk } from "../api/types.ts";

export type ChangeKind = "create" | "modify" | "delete" | "rename";

export interface ChangedFile {
  path: string;
  directory: string;
  name: string;
  kind: ChangeKind;
  type: string;
  renamedFrom: string | null;
  added: number;
  removed: number;
  size: number | null;
  mode: number | null;
  oldMode: number | null;
  binary: boolean;
  /** No hunks can be had of it; a changed line is longer than is shown. */
  tooLarge: boolean;
  longLines: boolean;
  /** Where a link points, and pointed. */
  target: string | null;
  oldTarget: string | null;
  /** The deleted files in a deleted directory, which is one change. */
  inside: readonly string[];
  uncertain: boolean;
  hunks: readonly WireHunk[] | null;
  flags: readonly string[];
  /** What landing it asks for: to be ticked by itself, to be seen marked, or nothing. */
  grade: Grade;
  /** Why, a sentence for each flag; empty from a server that sends none. */
  reasons: readonly string[];
  /** Must be ticked by itself. */
  isRed: boolean;
  /** Ticked like any other, but shown with its marks. */
  isMarked: boolean;
  tainted: boolean;
  /** What had been read from outside. */
  taint: readonly string[];
  drift: PlanEntry["drift"];
  /** Names its present content; null where no plan speaks of it. */
  version: string | null;
}

const NONE: readonly string[] = [];
export const NOTHING_BESIDE = { include: [], settings: [] } as const;

export type Grade = PlanEntry["grade"];

const STRICTNESS: readonly Grade[] = ["free", "held", "needs_accept"];

/** Return the changed files of a diff, with what the landing plan says of each. */
export function changedFiles(diff: Diff, plan: LandingPlan | null): ChangedFile[] {
  const entries = new Map((plan?.entries ?? []).map((entry) => [entry.path, entry]));
  const written = diff.written
    .filter((file) => file.type !== "dir" || !diff.written.some((other) => other.path.startsWith(`${file.path}/`)))
    .map((file) =>
      withPlan(
        {
          ...place(file.path),
          kind: file.renamed_from ? "rename" : file.kind,
          type: file.type,
          renamedFrom: file.renamed_from,
          added: file.renamed_from ? changedLines(file.edits ?? [], "+") : file.added,
          removed: file.renamed_from ? changedLines(file.edits ?? [], "-") : file.removed,
          size: file.size,
          mode: file.mode,
          oldMode: file.old_mode,
          binary: file.binary,
          tooLarge: file.too_large ?? false,
          longLines: file.long_lines ?? false,
          target: file.target ?? null,
          oldTarget: file.old_target ?? null,
          inside: NONE,
          uncertain: file.base === "uncertain",
          hunks: file.renamed_from ? (file.edits ?? []) : file.hunks,
          flags: file.flags,
          grade: file.grade,
          reasons: file.reasons,
        },
        entries.get(file.path),
        file.renamed_from ? entries.get(file.renamed_from) : undefined,
      ),
    );
  // A file that only moved is one change, not two.
  const moved = new Set(written.flatMap((file) => (file.renamedFrom ? [file.renamedFrom] : [])));
  const gone = deletions(diff.deleted, moved);
  const deleted = gone.map(({ path, inside, all }) =>
    withPlan(
      {
        ...place(path),
        kind: "delete",
        type: inside.length > 0 || entries.get(path)?.op === "rmdir" ? "dir" : "file",
        renamedFrom: null,
        added: 0,
        removed: 0,
        size: null,
        mode: null,
        oldMode: null,
        binary: false,
        tooLarge: false,
        longLines: false,
        target: null,
        oldTarget: null,
        inside,
        uncertain: false,
        hunks: null,
        flags: [],
        grade: "free",
        reasons: [],
      },
      entries.get(path),
      ...all.map((one) => entries.get(one)),
    ),
  );
  return [...written, ...deleted].sort(byPlace);
}

function changedLines(hunks: readonly WireHunk[], sign: "+" | "-"): number {
  return hunks.reduce((sum, hunk) => sum + hunk.text.split("\n").filter((line) => line.startsWith(sign)).length, 0);
}

interface Deletion {
  path: string;
  /** Its files, where it is a directory; and all that is deleted with it. */
  inside: readonly string[];
  all: readonly string[];
}

/** Deleted paths without those of a deleted directory; one from which a file moved stays in pieces. */
function deletions(deleted: readonly string[], moved: ReadonlySet<string>): Deletion[] {
  const found: Deletion[] = [];
  const sorted = [...deleted].sort(byCode);
  const parents = new Set(sorted.map((path) => path.slice(0, path.lastIndexOf("/"))));
  const left = new Set([...moved].flatMap((path) => parentsOf(path)));
  let top: { path: string; inside: string[]; all: string[] } | null = null;
  for (const path of sorted) {
    if (top && path.startsWith(`${top.path}/`)) {
      top.all.push(path);
      if (!parents.has(path)) top.inside.push(path);
      continue;
    }
    if (moved.has(path)) continue;
    const row = { path, inside: [] as string[], all: [] as string[] };
    top = parents.has(path) && !left.has(path) ? row : null;
    found.push(row);
  }
  return found;
}

function parentsOf(path: string): string[] {
  const cut = path.lastIndexOf("/");
  return cut <= 0 ? [] : [path.slice(0, cut), ...parentsOf(path.slice(0, cut))];
}

/** In the order in which a directory comes right before what it holds. */
function byCode(a: string, b: string): number {
  const [one, other] = [a.replaceAll("/", "\0"), b.replaceAll("/", "\0")];
  return one < other ? -1 : one > other ? 1 : 0;
}

type Bare = Omit<ChangedFile, "isRed" | "isMarked" | "tainted" | "taint" | "drift" | "version">;

function withPlan(file: Bare, entry: PlanEntry | undefined, ...more: (PlanEntry | undefined)[]): ChangedFile {
  const both = [entry, ...more];
  const said = new Map([file, ...both].flatMap((one) => (one?.flags ?? []).map((flag, at) => [flag, one?.reasons?.[at] ?? ""] as const)));
  const grades = [file.grade, ...both.map((one) => one?.grade ?? "free")];
  const grade = STRICTNESS[Math.max(...grades.map((one) => STRICTNESS.indexOf(one)))] ?? "free";
  return {
    ...file,
    flags: [...said.keys()],
    grade,
    reasons: [...said.values()],
    tainted: both.some((one) => one?.tainted),
    taint: [...new Set(both.flatMap((one) => one?.taint ?? []))],
    isRed: grade === "needs_accept",
    isMarked: grade === "held",
    drift: more.some((one) => one?.drift === "conflict") ? "conflict" : (entry?.drift ?? "none"),
    version: entry?.new ?? null,
  };
}

function place(path: string): { path: string; directory: string; name: string } {
  const cut = path.lastIndexOf("/");
  return { path, directory: path.slice(1, Math.max(cut, 1)), name: path.slice(cut + 1) };
}

let collator: Intl.Collator | undefined;

function byPlace(a: ChangedFile, b: ChangedFile): number {
  collator ??= new Intl.Collator("en", { numeric: true });
  return collator.compare(a.directory, b.directory) || collator.compare(a.name, b.name);
}

// ---------------------------------------------------------------- choosing

/** By path: "all", or the ids of chosen hunks; a path that is missing does not land. */
export type Choice = Readonly<Record<string, "all" | readonly string[]>>;

/** Whether it is ticked by itself only: it is red, in conflict, or nobody can see here what changed in it. */
export function isByItself(file: ChangedFile): boolean {
  return file.isRed || file.drift === "conflict" || file.tooLarge || file.longLines;
}

/** Return the choice a review begins with. */
export function firstChoice(files: readonly ChangedFile[]): Choice {
  const ordinary = files.filter((file) => !isByItself(file));
  return Object.fromEntries(ordinary.map((file) => [file.path, "all" as const]));
}

export function fileMark(choice: Choice, file: ChangedFile): "all" | "some" | "none" {
  const chosen = choice[file.path];
  if (chosen === undefined) return "none";
  return chosen === "all" ? "all" : "some";
}

export function hunkChosen(choice: Choice, path: string, hunk: string): boolean {
  const chosen = choice[path];
  return chosen === "all" || (chosen !== undefined && chosen.includes(hunk));
}

export function setFile(choice: Choice, file: ChangedFile, on: boolean): Choice {
  const { [file.path]: _, ...others } = choice;
  return on ? { ...others, [file.path]: "all" } : others;
}

export function setHunk(choice: Choice, file: ChangedFile, hunk: string, on: boolean): Choice {
  // What changed in a moved file lands with the move.
  if (file.kind === "rename") return setFile(choice, file, on);
  const every = (file.hunks ?? []).map((known) => known.id);
  const chosen = choice[file.path];
  const now = new Set(chosen === "all" ? every : (chosen ?? []));
  if (on) now.add(hunk);
  else now.delete(hunk);
  if (now.size === 0) return setFile(choice, file, false);
  if (now.size === every.length) return setFile(choice, file, true);
  return { ...choice, [file.path]: every.filter((id) => now.has(id)) };
}

/** Choose or leave all ordinary files; those that are ticked by themselves stay as they are. */
export function setAll(choice: Choice, files: readonly ChangedFile[], on: boolean): Choice {
  let next = choice;
  for (const file of files) if (!isByItself(file)) next = setFile(next, file, on);
  return next;
}

// ---------------------------------------------------------------- landing

export interface Summary {
  files: number;
  of: number;
  hunks: number;
  red: number;
}

export function summary(files: readonly ChangedFile[], choice: Choice): Summary {
  const chosen = files.filter((file) => choice[file.path] !== undefined);
  const hunks = chosen.reduce((sum, file) => {
    const mark = choice[file.path];
    return sum + (mark === "all" ? (file.hunks?.length ?? 0) : (mark?.length ?? 0));
  }, 0);
  return { files: chosen.length, of: files.length, hunks, red: chosen.filter((file) => file.isRed).length };
}

/** Every path that a change is about: a file that moved is two, a directory all it held. */
export function pathsOf(file: ChangedFile): string[] {
  return file.renamedFrom ? [file.renamedFrom, file.path] : [file.path, ...file.inside];
}

/** What is ticked beside the files: folded rows that land with the rest, and git settings accepted by name. */
export interface Beside {
  include: readonly string[];
  settings: readonly string[];
}

/** Return `rows` with one more, or without it. */
export function toggled(rows: readonly string[], one: string): string[] {
  return rows.includes(one) ? rows.filter((row) => row !== one) : [...rows, one];
}

/** Return what is ticked of what is still there. */
export function keptBeside(beside: Beside, diff: Diff): Beside {
  const folded = new Set((diff.folded ?? []).map((row) => row.path));
  const settings = new Set((diff.git ?? []).flatMap((one) => [...one.settings.map((row) => row.path), ...(one.is_new ? [one.path] : [])]));
  return { include: beside.include.filter((path) => folded.has(path)), settings: beside.settings.filter((path) => settings.has(path)) };
}

/** Return what to ask of `POST …/land`; a red file that is chosen was ticked by itself, so it is accepted. */
export function landRequest(files: readonly ChangedFile[], choice: Choice, beside: Beside = NOTHING_BESIDE): LandRequest & { paths: string[]; include: string[] } {
  const chosen = files.filter((file) => choice[file.path] !== undefined);
  const hunks = chosen.flatMap((file) => {
    const mark = choice[file.path];
    return mark === undefined || mark === "all" ? [] : mark;
  });
  return {
    paths: [...chosen.flatMap(pathsOf), ...beside.settings],
    ...(hunks.length > 0 ? { hunks: [...hunks] } : {}),
    accept: [...chosen.filter((file) => file.isRed).flatMap(pathsOf), ...beside.settings],
    include: [...beside.include],
  };
}

/** Return what a landing sends of what was drawn: the state of each path, or of some. What has moved since is refused. */
export function seenOf(drawn: LandingPlan, paths?: readonly string[]): Record<string, string> {
  const wanted = paths && new Set(paths);
  return Object.fromEntries(drawn.entries.filter((entry) => !wanted || wanted.has(entry.path)).map((entry) => [entry.path, entry.state]));
}

/** Whether a path did not land because it is no longer what was drawn. */
export const hasMoved = (row: Refused): boolean => row.reason === "moved";

// ---------------------------------------------------------------- words

export function flagReason(flag: string): string {
  return t.flagReasons[flag] ?? t.flagReason;
}

/** Return what the server says of this path beyond the flag's own sentence, "" for nothing. */
export function flagDetail(flag: string, reason: string | undefined): string {
  return reason === undefined || reason === flagReason(flag) ? "" : reason.replace(/\.$/, "");
}

/** Return the sentences about all marked files together, each once, and what had been read from outside. */
export function markReasons(files: readonly ChangedFile[]): string[] {
  const marked = files.filter((file) => file.isMarked);
  const sources = [...new Set(marked.flatMap((file) => file.taint))];
  const sentences = new Set(marked.flatMap((file) => file.flags.map(flagReason)));
  return sources.length > 0 ? [...sentences, t.taintFrom(sources.join(", "))] : [...sentences];
}

/** Return files with those first that ask for the most care, so that a list that is cut shows them. */
export function gravestFirst(files: readonly ChangedFile[]): ChangedFile[] {
  return [...files].sort((a, b) => STRICTNESS.indexOf(b.grade) - STRICTNESS.indexOf(a.grade));
}

/** Why a landing was not taken back. To undo is to bring an older version in: who changed what is the other way round. */
export function undoReason(reason: string): string {
  const since = ["both_modified", "both_created", "delete_modify", "modify_delete", "binary", "mode", "symlink"];
  return refusalReason(since.includes(reason) ? "changed_since" : reason);
}

/** Whether a landing was refused since others landed, or took back, the same meanwhile: there is nothing to decide. */
export function isLandedAlready({ code, refused }: { code: string; refused: readonly Refused[] }): boolean {
  return code === "stale" || code === "nothing_to_land" || (refused.length > 0 && refused.every((row) => row.reason === "unchanged"));
}

export function refusalReason(reason: string): string {
  if (t.refusals[reason]) return t.refusals[reason];
  return /accept|flag/.test(reason) ? t.acceptItself(reason) : reason;
}
