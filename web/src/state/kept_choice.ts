/** What was chosen, for files that changed meanwhile. Pure. */

import { firstChoice, isByItself, type ChangedFile, type Choice } from "./review.ts";

/** What of a changed file a choice was made for. */
export type Reviewed = Pick<ChangedFile, "path" | "drift" | "version" | "kind" | "size" | "mode"> & { hunks: readonly { id: string }[] | null };

/** Return what a choice was made for, without its contents. */
export function reviewed(files: readonly ChangedFile[]): Reviewed[] {
  return files.map(({ path, drift, version, kind, size, mode, hunks }) => ({ path, drift, version, kind, size, mode, hunks: hunks?.map(({ id }) => ({ id })) ?? null }));
}

/** Return the choice for files that changed under it: marks on what is still there stay (UI-30). */
export function keptChoice(choice: Choice, before: readonly Reviewed[], after: readonly ChangedFile[]): Choice {
  const known = new Map(before.map((file) => [file.path, file]));
  const first = firstChoice(after);
  const kept: Record<string, "all" | readonly string[]> = {};
  for (const file of after) {
    const old = known.get(file.path);
    if (!old) {
      const fresh = first[file.path];
      if (fresh) kept[file.path] = fresh;
      continue;
    }
    const chosen = choice[file.path];
    if (chosen === undefined) continue;
    // It cannot land without a decision any more: ticked, it would keep all the others from landing.
    if (file.drift === "conflict" && old.drift !== "conflict") continue;
    if (chosen === "all") {
      // What was ticked by itself and changed since must be looked at again.
      if (!isByItself(file) || sameContent(old, file)) kept[file.path] = "all";
      continue;
    }
    if (file.hunks === null) {
      kept[file.path] = chosen; // not loaded yet: the landing judges ids that are gone
      continue;
    }
    const there = new Set(file.hunks.map((hunk) => hunk.id));
    const left = chosen.filter((id) => there.has(id));
    if (left.length > 0) kept[file.path] = left;
  }
  return kept;
}

function sameContent(a: Reviewed, b: Reviewed): boolean {
  const ids = (file: Reviewed): string => (file.hunks ?? []).map((hunk) => hunk.id).join();
  return a.version === b.version && a.kind === b.kind && a.size === b.size && a.mode === b.mode && ids(a) === ids(b);
}
