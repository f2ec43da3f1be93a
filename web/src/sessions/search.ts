/** Sessions by words: titles at once, what was said as soon as the server has looked. Not here: drawing. */

import { useEffect, useState } from "react";
import { api, ApiError } from "../api/client.ts";
import type { ConversationRow } from "../api/types.ts";

interface Hits {
  words: string;
  rows: readonly ConversationRow[];
  error: ApiError | null;
}

const PAUSE_MS = 200;

/** Return what the server found for these words, null while it looks. */
export function useFound(words: string): Hits | null {
  const [hits, setHits] = useState<Hits | null>(null);
  useEffect(() => {
    if (!words) return;
    let current = true;
    const told = (rows: readonly ConversationRow[], error: ApiError | null): void => {
      if (current) setHits({ words, rows, error });
    };
    const look = (): void =>
      void api.conversations(words).then(
        (rows) => told(rows, null),
        (error: unknown) => told([], error instanceof ApiError ? error : new ApiError(0, "error", String(error))),
      );
    const timer = setTimeout(look, PAUSE_MS);
    return () => {
      current = false;
      clearTimeout(timer);
    };
  }, [words]);
  return hits?.words === words ? hits : null;
}

/** Return the sessions that fit: by title or id, and those that were found by what was said in them. Pure. */
export function withFound(rows: readonly ConversationRow[], words: string, found: readonly ConversationRow[]): ConversationRow[] {
  const wanted = words.toLowerCase();
  const places = new Map(found.map((row) => [row.id, row]));
  const known = new Set(rows.map((row) => row.id));
  const fitting = rows.filter((row) => places.has(row.id) || `${row.title ?? ""} ${row.id}`.toLowerCase().includes(wanted));
  // The list is fresher than what was found a while ago.
  return [...fitting.map((row) => ({ ...row, found: places.get(row.id)?.found ?? null })), ...found.filter((row) => !known.has(row.id))];
}
