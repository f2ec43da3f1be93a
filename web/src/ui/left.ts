/**
 * How a page was left: who goes back or forward, or loads it again, finds it as it was.
 *
 * Here: keeping and finding values, by entry of the browser's history or under a name that a page gives, in this tab
 * only. Not here: what a page keeps. Nothing is kept for another entry, so who follows a link begins anew. Where storage
 * is turned off it holds until the page is loaded again.
 */

import { useLayoutEffect, useRef, useState } from "react";

const STORED = "bowerbird.left";
const MOST_PLACES = 30;
const MOST_CHARACTERS = 500_000;

type Values = Readonly<Record<string, unknown>>;
/** The newest stands last. */
type Places = Readonly<Record<string, Values>>;

let known: Places = stored();
const keepers = new Set<() => void>();

function stored(): Places {
  try {
    const found: unknown = JSON.parse(sessionStorage.getItem(STORED) ?? "{}");
    return found !== null && typeof found === "object" ? (found as Places) : {};
  } catch {
    return {}; // unreadable: nothing was left
  }
}

/** Keep the newest for the next load of the page, as far as there is room. */
function store(): void {
  let room = MOST_CHARACTERS;
  const newest: [string, Values][] = [];
  for (const [place, values] of Object.entries(known).reverse()) {
    room -= JSON.stringify(values).length;
    if (room < 0) break;
    newest.unshift([place, values]);
  }
  try {
    sessionStorage.setItem(STORED, JSON.stringify(Object.fromEntries(newest)));
  } catch {
    // storage is full or turned off
  }
}

addEventListener("pagehide", () => {
  for (const keep of keepers) keep();
  store();
});

/** Forget everything: somebody else may come. */
export function forgetLeft(): void {
  keepers.clear();
  known = {};
  store();
}

/** Return the name of the entry that is shown, which it bears from now on. */
function entryNow(): string {
  const state: unknown = history.state;
  const bears = state !== null && typeof state === "object" ? (state as Values) : {};
  if (typeof bears["entry"] === "string") return bears["entry"];
  const entry = `${Date.now()}.${Math.random().toString(36).slice(2)}`;
  history.replaceState({ ...bears, entry }, "");
  return entry;
}

function put(place: string, name: string, value: unknown): void {
  const { [place]: mine, ...others } = known;
  const values: Values = { ...mine, [name]: value };
  known = Object.fromEntries([...Object.entries(others).slice(1 - MOST_PLACES), [place, values]]);
}

/**
 * Return what was kept as `name` when this page was left, null at its first visit, and what says what to keep.
 *
 * @param place where it is kept, instead of the history's entry: found again by whatever way somebody comes.
 */
export function useLeft<Value>(name: string, place?: string): [Value | null, (now: () => Value | null) => void] {
  const [at] = useState(() => place ?? entryNow());
  const [before] = useState(() => (known[at]?.[name] ?? null) as Value | null);
  const latest = useRef<() => Value | null>(() => null);
  // What is laid out is still there when layout effects end; another page or another address may follow.
  useLayoutEffect(() => {
    const keep = (): void => put(at, name, latest.current());
    keepers.add(keep);
    return () => {
      keepers.delete(keep);
      keep();
    };
  }, [at, name]);
  const keepAs = (now: () => Value | null): void => {
    latest.current = now;
  };
  return [before, keepAs];
}
