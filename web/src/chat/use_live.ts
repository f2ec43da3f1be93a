/** A conversation as pages read it: the live state and what REST knows. */

import { useEffect, useState, useSyncExternalStore } from "react";
import { api } from "../api/client.ts";
import type { Conversation } from "../api/types.ts";
import { refreshSessions } from "../sessions/list.ts";
import { liveConversation, type LiveView } from "../state/live.ts";

export function useLive(id: string): LiveView {
  const live = liveConversation(id);
  return useSyncExternalStore(live.subscribe, live.view);
}

/** What REST knows of a conversation, asked again when a turn ends or a setting changes. */
export function useFacts(id: string, version: number): Conversation | null {
  const [facts, setFacts] = useState<Conversation | null>(null);
  useEffect(() => {
    let here = true;
    api.conversation(id).then(
      (found) => here && setFacts(found),
      () => undefined, // the socket says what is wrong, in its banner
    );
    refreshSessions();
    return () => {
      here = false;
    };
  }, [id, version]);
  return facts;
}
