/** What landed, or came back, through another door while somebody reviews (UI-67). Not here: landings made here. */

import { useEffect, useRef, useState } from "react";
import { api } from "../api/client.ts";
import type { Landing } from "../api/types.ts";
import type { Entry } from "../state/entries.ts";
import { t } from "../text.ts";
import { Problem } from "../ui/kit.tsx";
import { complain } from "../ui/toasts.tsx";
import type { Review } from "./use_review.ts";

const LANDING = /\bl_[0-9a-z]+/g;

/** Return the newest landing that this page was told of since it was opened and did not make itself. */
function useElsewhere(entries: readonly Entry[], ready: boolean, review: Review): Landing | null {
  const told = entries.filter((entry) => entry.kind === "note" && entry.code === "landing");
  const before = useRef<number | null>(null);
  const mine = useRef(new Set<string>());
  const [found, setFound] = useState<Landing | null>(null);
  if (ready) before.current ??= told.length;
  if (review.landed) mine.current.add(review.landed.id);
  const newest = before.current !== null && told.length > before.current ? told.at(-1) : undefined;
  const ids = newest?.kind === "note" ? (newest.text.match(LANDING) ?? []) : [];
  // Of an own landing, or of one that was taken back here, the answer tells.
  const id = review.busy || ids.some((one) => mine.current.has(one)) ? undefined : ids.at(-1);
  useEffect(() => {
    if (!id) return;
    api.landings().then((rows) => setFound(rows.find((row) => row.id === id) ?? null), complain);
  }, [id]);
  return id !== undefined && found?.id === id ? found : null;
}

export function Elsewhere({ entries, ready, review }: { entries: readonly Entry[]; ready: boolean; review: Review }) {
  const landing = useElsewhere(entries, ready, review);
  if (!landing) return null;
  const who = landing.actor && landing.actor !== "local" ? landing.actor : t.somebody;
  const door = landing.door && landing.door !== "web" ? t.through(landing.door) : t.inAnotherWindow;
  const words = landing.kind === "undo" ? t.takenBackBy : t.landedBy;
  return (
    <div className="outcome" data-testid="elsewhere">
      <Problem tone="info">
        <p>{words(landing.entries.length, who, door)}</p>
      </Problem>
    </div>
  );
}
