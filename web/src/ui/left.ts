/**
 * How a page was left, by entry of the browser's history: who goes back or forward finds it as it was.
 *
 * Here: keeping and finding values. Not here: what a page keeps. Nothing is kept for another entry, so who follows a
 * link begins anew; so does a page that is loaded again.
 */

import { useLayoutEffect, useRef, useState } from "react";

const MOST_ENTRIES = 30;

type Values = Record<string, unknown>;
type Entries = Record<string, Values>;

let known: Entries = {};

/** Return the name of the entry that is shown, which it bears from now on. */
function entryNow(): string {
  const state: unknown = history.state;
  const bears = state !== null && typeof state === "object" ? (state as Values) : {};
  if (typeof bears["entry"] === "string") return bears["entry"];
  const entry = `${Date.now()}.${Math.random().toString(36).slice(2)}`;
  history.replaceState({ ...bears, entry }, "");
  return entry;
}

function put(entry: string, name: string, value: unknown): void {
  const { [entry]: mine, ...others } = known;
  const values: Values = { ...mine, [name]: value };
  // The newest stands last; the oldest go.
  known = Object.fromEntries([...Object.entries(others).slice(1 - MOST_ENTRIES), [entry, values]]);
}

/** Return what was kept as `name` when this entry was left, null at its first visit, and what says what to keep. */
export function useLeft<Value>(name: string): [Value | null, (now: () => Value | null) => void] {
  const [entry] = useState(entryNow);
  const [before] = useState(() => (known[entry]?.[name] ?? null) as Value | null);
  const latest = useRef<() => Value | null>(() => null);
  // What is laid out is still there when layout effects end; another page or another address may follow.
  useLayoutEffect(() => {
    const keep = (): void => put(entry, name, latest.current());
    return keep;
  }, [entry, name]);
  const keepAs = (now: () => Value | null): void => {
    latest.current = now;
  };
  return [before, keepAs];
}
