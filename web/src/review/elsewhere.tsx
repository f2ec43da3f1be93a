/** What landed, or came back, through another door while somebody reviews (UI-67). Not here: landings made here. */

import { useEffect, useRef, useState } from "react";
import { api } from "../api/client.ts";
import type { Landing } from "../api/types.ts";
import { useFace } from "../app/place.tsx";
import { t } from "../text.ts";
import { Problem } from "../ui/kit.tsx";
import { complain } from "../ui/toasts.tsx";
import type { Review } from "./use_review.ts";

/** Return the newest landing made since this page was opened, by another door; the same after a lost connection. */
export function useElsewhere(conversation: string, review: Review): Landing | null {
  const before = useRef<ReadonlySet<string> | null>(null);
  const mine = useRef(new Set<string>());
  const [newest, setNewest] = useState<Landing | null>(null);
  if (review.landed) mine.current.add(review.landed.id);
  useEffect(() => {
    if (review.busy) return; // an own landing: its answer tells. Any other changes what there is to review.
    let here = true;
    api.landings(conversation).then((rows) => {
      before.current ??= new Set(rows.map((row) => row.id));
      if (here) setNewest(rows.find((row) => !before.current?.has(row.id)) ?? null);
    }, complain);
    return () => {
      here = false;
    };
  }, [conversation, review.files, review.busy]);
  const isMine = newest !== null && (mine.current.has(newest.id) || mine.current.has(newest.undoes ?? ""));
  return review.busy || isMine ? null : newest;
}

export function Elsewhere({ landing, answerLost }: { landing: Landing | null; answerLost: boolean }) {
  const face = useFace();
  if (!landing) return null;
  const who = landing.actor && landing.actor !== "local" ? landing.actor : t.somebody;
  const door = landing.door && landing.door !== "web" ? t.through(landing.door) : t.inAnotherWindow;
  const words = landing.kind === "undo" ? t.takenBackBy : face === "dev" ? t.landedBy : t.keptBy;
  return (
    <div className="outcome" data-testid="elsewhere">
      <Problem tone="info">
        <p>{answerLost ? (face === "dev" ? t.landedUnheard : t.keptUnheard)(landing.entries.length) : words(landing.entries.length, who, door)}</p>
      </Problem>
    </div>
  );
}
