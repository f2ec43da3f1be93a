/** A file that both sides changed, and what somebody decides of each place that conflicts (UI-89). Pure. */

import type { ConflictPlace, Taken } from "../api/types.ts";

/** By the number of a conflicting place; one that is missing waits for a decision. */
export type Decisions = ReadonlyMap<number, Taken>;

/** What a landing is asked for: the decisions in the order of the places; null while one is missing. */
export function takesOf(places: readonly ConflictPlace[], decisions: Decisions): Taken[] | null {
  const found: Taken[] = [];
  for (const [at, place] of places.entries()) {
    if (place.kind !== "conflict") continue;
    const taken = decisions.get(at);
    if (!taken) return null;
    found.push(taken);
  }
  return found;
}

/** How many places wait for a decision. */
export function undecided(places: readonly ConflictPlace[], decisions: Decisions): number {
  return places.filter((place, at) => place.kind === "conflict" && !decisions.has(at)).length;
}

/** What was decided of a file before, for its places as they are now; `lost`: texts whose place is no more. */
export interface Carried {
  decisions: Decisions;
  lost: readonly string[];
}

/** Decisions go along with their places when a file changed meanwhile; a place that is another waits again. */
export function carried(before: readonly ConflictPlace[], decisions: Decisions, now: readonly ConflictPlace[]): Carried {
  const free = now.flatMap((place, at) => (place.kind === "conflict" ? [at] : []));
  const kept = new Map<number, Taken>();
  const lost: string[] = [];
  for (const [was, taken] of [...decisions].sort(([a], [b]) => a - b)) {
    const old = before[was];
    const at = free.find((one) => old && now[one]?.base === old.base && now[one].ours === old.ours && now[one].theirs === old.theirs);
    if (at !== undefined) {
      free.splice(free.indexOf(at), 1);
      kept.set(at, taken);
    } else if (taken.take === "text" && taken.text) lost.push(taken.text);
  }
  return { decisions: kept, lost };
}

/** Both texts below each other; the first ends its last line. */
export function bothOf(place: Pick<ConflictPlace, "ours" | "theirs">): string {
  const mine = place.ours === "" || place.ours.endsWith("\n") || place.theirs === "" ? place.ours : `${place.ours}\n`;
  return mine + place.theirs;
}

/** What stands at a place when `taken` is decided of it. */
export function resultOf(place: ConflictPlace, taken: Taken): string {
  if (taken.take === "text") return taken.text ?? "";
  return taken.take === "both" ? bothOf(place) : place[taken.take];
}

/** The lines that the person has and the agent's whole file does not: lost when it replaces theirs. */
export function lostLines(places: readonly ConflictPlace[]): string[] {
  return places.flatMap((place) => {
    if (place.kind !== "ours" && place.kind !== "conflict") return [];
    const theirs = new Set(linesOf(place.theirs));
    return linesOf(place.ours).filter((line) => !theirs.has(line));
  });
}

/** The two ends of a text of which the middle was left out; all of it, and nothing, where it was not. */
export function endsOf(place: ConflictPlace): [string[], string[]] {
  const lines = linesOf(place.kind === "theirs" ? place.theirs : place.ours);
  return place.cut === 0 ? [lines, []] : [lines.slice(0, lines.length / 2), lines.slice(lines.length / 2)];
}

export function linesOf(text: string): string[] {
  if (text === "") return [];
  const lines = text.split("\n");
  if (lines.at(-1) === "") lines.pop();
  return lines;
}
