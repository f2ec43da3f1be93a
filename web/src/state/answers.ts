/** What a turn answered, and which comments it was about (UI-29). Pure. */

import { commentedPlaces, type CommentedPlace } from "./comments.ts";
import type { Entry } from "./entries.ts";

/** Return the last words of a turn, null while it has said none. */
export function answerOf(entries: readonly Entry[], turn: string): string | null {
  const last = entries.findLast((entry) => entry.turn === turn && entry.kind === "text" && entry.text.trim() !== "");
  return last?.kind === "text" ? last.text.trim() : null;
}

/** Return, by the key of the entry that answers them, the comments of each turn that was asked by some. */
export function answeredPlaces(entries: readonly Entry[]): ReadonlyMap<string, readonly CommentedPlace[]> {
  const asked = new Map<string, CommentedPlace[]>();
  const last = new Map<string, string>();
  for (const entry of entries) {
    if (!entry.turn) continue;
    const places = entry.kind === "user" ? commentedPlaces(entry.text) : null;
    if (places) asked.set(entry.turn, [...(asked.get(entry.turn) ?? []), ...places]);
    if (entry.kind === "text" && asked.has(entry.turn) && entry.text.trim()) last.set(entry.turn, entry.key);
  }
  return new Map([...last].map(([turn, key]) => [key, asked.get(turn) ?? []]));
}
