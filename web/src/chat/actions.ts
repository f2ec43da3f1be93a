/** What entries of a conversation may ask for: resume, fork, edit and resend (UI-24, UI-25). */

import { useCallback, useMemo } from "react";
import { useLocation } from "wouter";
import { api } from "../api/client.ts";
import type { Conversation, NewConversation } from "../api/types.ts";
import { useLinks } from "../app/place.tsx";
import { refreshSessions } from "../sessions/list.ts";
import type { UserEntry } from "../state/entries.ts";
import { liveConversation } from "../state/live.ts";
import { withoutAttachments } from "../state/mentions.ts";
import { drafts } from "../state/preferences.ts";
import { complain } from "../ui/toasts.tsx";
import type { EntryActions } from "./entries.tsx";

/** A conversation set up like another: what stands before the first turn. */
async function setUpLike(facts: Conversation | null): Promise<NewConversation> {
  if (!facts) return {};
  const places = facts.workspace ? await api.workspaces() : [];
  const place = places.find((row) => row.path.split("/").findLast(Boolean) === facts.workspace);
  return {
    title: facts.title,
    preset: facts.preset,
    model: facts.model,
    workspace: place?.name ?? null,
    enable_teams: facts.enable_teams,
    enable_tracing: facts.enable_tracing,
    enable_approval: facts.enable_approval,
    enable_plan_mode: facts.enable_plan_mode,
    enable_thinking: facts.enable_thinking,
  };
}

export function useActions(id: string, facts: Conversation | null): EntryActions {
  const links = useLinks();
  const [, go] = useLocation();
  const fork = useCallback(
    async (turn?: string): Promise<void> => {
      const made = await api.fork(id, turn);
      refreshSessions();
      go(links.chat(made.conversation_id));
    },
    [id, go, links],
  );
  const editAndResend = useCallback(
    async (entry: UserEntry): Promise<void> => {
      // Read when it is asked for: entries change with each word, and these functions must not.
      await liveConversation(id).whole();
      const { entries } = liveConversation(id).view().state;
      const ends = entries.filter((one) => one.kind === "end" && one.state === "done");
      const at = entries.findIndex((one) => one.key === entry.key);
      const before = ends.filter((end) => entries.indexOf(end) < at).at(-1);
      const made = before?.turn ? await api.fork(id, before.turn) : await api.begin(await setUpLike(facts));
      drafts.set(made.conversation_id, withoutAttachments(entry.text).words);
      refreshSessions();
      go(links.chat(made.conversation_id));
    },
    [id, facts, go, links],
  );
  return useMemo(
    () => ({
      conversation: id,
      resume: () => void liveConversation(id).send({ type: "resume" }),
      forkAfter: (turn: string) => void fork(turn || undefined).catch(complain),
      editAndResend: (entry: UserEntry) => void editAndResend(entry).catch(complain),
    }),
    [id, fork, editAndResend],
  );
}
