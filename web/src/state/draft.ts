/** What a fold over frames changes while it works: its own copies, made once per batch. Not here: what frames mean. */

import type { ConversationState, Entry, Queued } from "./entries.ts";

/** Own copies of what a batch changes: one copy per batch, not one per frame. */
export interface Draft extends Omit<ConversationState, "entries" | "places" | "queued"> {
  entries: Entry[];
  places: Map<string, number>;
  queued: Queued[];
}

export function put(draft: Draft, entry: Entry): void {
  if (draft.places.has(entry.key)) return;
  draft.places.set(entry.key, draft.entries.length);
  draft.entries.push(entry);
}

export function change<Kind extends Entry["kind"]>(
  draft: Draft,
  key: string,
  kind: Kind,
  make: (entry: Extract<Entry, { kind: Kind }>) => Entry,
): void {
  const place = draft.places.get(key);
  const entry = place === undefined ? undefined : draft.entries[place];
  if (place === undefined || entry === undefined || entry.kind !== kind) return;
  draft.entries[place] = make(entry as Extract<Entry, { kind: Kind }>);
}
