/** The last frames of a conversation, for the traffic inspector (UI-34). Not here: how they are drawn. */

import type { ClientFrame, LlmRequest, LlmResponse, ServerFrame } from "../api/frames.ts";

export interface Sample {
  number: number;
  direction: "in" | "out";
  type: string;
  at: number;
  size: number;
  body: ServerFrame | ClientFrame;
}

export interface TracePair {
  key: string;
  seq: number;
  at: number;
  request: LlmRequest | null;
  response: LlmResponse | null;
}

const RING = 5000;

export class Traffic {
  #samples: Sample[] = [];
  #number = 0;
  #paused = false;
  #listeners = new Set<() => void>();
  #shown: readonly Sample[] = [];
  #waking = false;

  get paused(): boolean {
    return this.#paused;
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    this.#shown = this.#samples.slice(-RING); // what came while nobody looked
    return () => this.#listeners.delete(listener);
  };

  readonly samples = (): readonly Sample[] => this.#shown;

  add(direction: Sample["direction"], body: Sample["body"], size: number): void {
    if (this.#paused) return;
    this.#number += 1;
    this.#samples.push({ number: this.#number, direction, type: body.type, at: Date.now(), size, body });
    if (this.#samples.length > RING * 1.2) this.#samples = this.#samples.slice(-RING);
    this.#wake();
  }

  pause(paused: boolean): void {
    this.#paused = paused;
    this.#wake();
  }

  clear(): void {
    this.#samples = [];
    this.#wake();
  }

  #wake(): void {
    if (this.#waking || this.#listeners.size === 0) return;
    this.#waking = true;
    setTimeout(() => {
      this.#waking = false;
      this.#shown = this.#samples.slice(-RING);
      for (const listener of this.#listeners) listener();
    }, 100);
  }
}

/** What a request says that the one before it did not. */
export interface RequestChange {
  /** How many messages both begin with. */
  kept: number;
  /** Messages of the one before that are no longer there: the history was summarised. */
  gone: number;
  added: readonly unknown[];
  /** Other members that differ, as they are now. */
  members: Readonly<Record<string, unknown>>;
}

/** Members that differ from request to request in any case. */
const EACH_ITS_OWN: ReadonlySet<string> = new Set(["messages", "n", "at", "seq", "turn_id", "cursor", "message_count", "replay", "type"]);

/** Return what changed from one model request to the next. */
export function changeOf(before: object, now: object): RequestChange {
  const list = (of: object): readonly unknown[] => {
    const found = (of as { messages?: unknown }).messages;
    return Array.isArray(found) ? found : [];
  };
  const [old, fresh] = [list(before), list(now)];
  let kept = 0;
  while (kept < old.length && kept < fresh.length && JSON.stringify(old[kept]) === JSON.stringify(fresh[kept])) kept += 1;
  const was = before as Record<string, unknown>;
  const members = Object.entries(now).filter(([name, value]) => !EACH_ITS_OWN.has(name) && JSON.stringify(value) !== JSON.stringify(was[name]));
  return { kept, gone: old.length - kept, added: fresh.slice(kept), members: Object.fromEntries(members) };
}

/** Return requests and responses of models, paired by `seq` within their turn, in the order they began. */
export function pairTraces(rows: readonly { body: unknown; at: number }[]): TracePair[] {
  const pairs = new Map<string, TracePair>();
  for (const { body, at } of rows) {
    const frame = body as { type?: string; seq?: number; turn_id?: string | null };
    if (frame.type !== "llm_request" && frame.type !== "llm_response") continue;
    const key = `${frame.turn_id ?? ""}:${frame.seq ?? 0}`;
    const known = pairs.get(key) ?? { key, seq: frame.seq ?? 0, at, request: null, response: null };
    const side = frame.type === "llm_request" ? { request: body as LlmRequest } : { response: body as LlmResponse };
    pairs.set(key, { ...known, ...side });
  }
  return [...pairs.values()];
}
