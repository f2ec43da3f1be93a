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
    if (this.#waking) return;
    this.#waking = true;
    setTimeout(() => {
      this.#waking = false;
      this.#shown = this.#samples.slice(-RING);
      for (const listener of this.#listeners) listener();
    }, 100);
  }
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
