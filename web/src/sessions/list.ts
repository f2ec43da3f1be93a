/** The list of conversations, kept fresh while the page is seen. Not here: drawing it. */

import { useSyncExternalStore } from "react";
import { api, ApiError } from "../api/client.ts";
import type { ConversationRow } from "../api/types.ts";

interface Sessions {
  rows: readonly ConversationRow[] | null;
  error: ApiError | null;
}

const BUSY_MS = 2500;
const IDLE_MS = 5000;
const FURTHER_MS = 60_000;
const PAGE = 1000;

let now: Sessions = { rows: null, error: null };
let timer: ReturnType<typeof setTimeout> | undefined;
let asking = false;
let furtherAt = -Infinity;
const listeners = new Set<() => void>();

function set(next: Sessions): void {
  now = next;
  for (const listener of listeners) listener();
}

/** Return a new first page, and after it the known rows that were used before all of it. Pure. */
export function withOlder(page: readonly ConversationRow[], known: readonly ConversationRow[]): ConversationRow[] {
  const listed = new Set(page.map((row) => row.id));
  const last = page.at(-1)?.updated_at ?? "";
  return [...page, ...known.filter((row) => !listed.has(row.id) && row.updated_at <= last)];
}

/** Ask for the newest rows, and for all others once a minute: of thousands, few change. */
async function allRows(): Promise<ConversationRow[]> {
  const first = await api.conversations();
  if (first.length < PAGE) return first;
  if (now.rows && performance.now() - furtherAt < FURTHER_MS) return withOlder(first, now.rows);
  let rows = first;
  for (let page = first; page.length === PAGE; ) {
    page = await api.conversationsAfter(page.at(-1)!.id);
    rows = withOlder(rows, page);
  }
  furtherAt = performance.now();
  return rows;
}

async function ask(): Promise<void> {
  clearTimeout(timer);
  if (asking) return;
  asking = true;
  try {
    const rows = await allRows();
    if (JSON.stringify(rows) !== JSON.stringify(now.rows) || now.error) set({ rows, error: null });
  } catch (error) {
    set({ rows: now.rows, error: error instanceof ApiError ? error : new ApiError(0, "error", String(error)) });
  } finally {
    asking = false;
    const busy = now.rows?.some((row) => stateOf(row) === "running" || stateOf(row) === "waiting");
    if (listeners.size > 0) timer = setTimeout(() => void ask(), busy || now.error ? BUSY_MS : IDLE_MS);
  }
}

/** Ask again now: something happened that lists show. */
export function refreshSessions(): void {
  if (listeners.size > 0 && !document.hidden) void ask();
}

const seen = (): void => {
  if (document.visibilityState === "visible") void ask();
};

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  if (listeners.size === 1) {
    document.addEventListener("visibilitychange", seen);
    void ask();
  }
  return () => {
    listeners.delete(listener);
    if (listeners.size > 0) return;
    document.removeEventListener("visibilitychange", seen);
    clearTimeout(timer);
  };
}

export function useSessions(): Sessions {
  return useSyncExternalStore(subscribe, () => now);
}

export type SessionState = "running" | "waiting" | "failed" | "stopped" | "done" | "idle";

/** Ends of a turn that a limit ended. */
const CUT_SHORT: readonly string[] = ["max_turns", "token_budget", "budget", "deadline", "stuck", "truncated"];

/** Return what a session does, in the six words lists know. */
export function stateOf(row: ConversationRow): SessionState {
  if (row.pending_approval || row.pending || row.status === "waiting") return "waiting";
  if (row.status === "running" || row.status === "queued") return "running";
  if (row.status === "failed" || row.status === "error") return "failed";
  if (row.status === "done" && CUT_SHORT.includes(row.stop_reason ?? "")) return "stopped";
  return row.message_count > 0 ? "done" : "idle";
}

/** Waiting ones first, then running ones, then by the newest activity. */
export function inOrder(rows: readonly ConversationRow[]): { urgent: ConversationRow[]; others: ConversationRow[] } {
  const rank = (row: ConversationRow): number => ({ waiting: 0, running: 1, failed: 2, stopped: 2, done: 2, idle: 2 })[stateOf(row)];
  const sorted = [...rows].sort((a, b) => rank(a) - rank(b) || (a.updated_at < b.updated_at ? 1 : -1));
  return { urgent: sorted.filter((row) => rank(row) < 2), others: sorted.filter((row) => rank(row) === 2) };
}
