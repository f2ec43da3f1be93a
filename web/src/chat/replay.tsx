/** The slider over the turns of a conversation: what was said and which files there were by then (UI-24). */

import { ChevronLeft, ChevronRight, FolderTree, GitFork, Pencil, X } from "lucide-react";
import { useFace } from "../app/place.tsx";
import type { Entry } from "../state/entries.ts";
import { t } from "../text.ts";
import { IconButton } from "../ui/kit.tsx";
import { useLeaving } from "../ui/leaving.ts";
import type { EntryActions } from "./entries.tsx";

interface ReplayBarProps {
  turns: number;
  at: number;
  /** The entries up to the end of turn `at`. */
  shown: readonly Entry[];
  actions: EntryActions;
  onAt: (at: number) => void;
  onFiles: () => void;
  onClose: () => void;
}

export function ReplayBar({ turns, at, shown, actions, onAt, onFiles, onClose }: ReplayBarProps) {
  const face = useFace();
  useLeaving(true, onClose);
  const words =
    face === "dev"
      ? { name: t.replay, of: t.turnOf, before: t.turnBefore, after: t.turnAfter, fork: t.forkHere, edit: t.editAndResend }
      : { name: t.lookBack, of: t.messageOf, before: t.messageBefore, after: t.messageAfter, fork: t.goOnFromHere, edit: t.askDifferently };
  const turn = shown.at(-1)?.turn ?? "";
  const asked = shown.find((entry) => entry.kind === "user" && entry.turn === turn);
  return (
    <div className="replay-bar" role="group" aria-label={words.name}>
      <label htmlFor="replay" className="nowrap">{words.of(at, turns)}</label>
      <IconButton icon={ChevronLeft} label={words.before} disabled={at <= 1} onClick={() => onAt(at - 1)} />
      <input id="replay" type="range" min={1} max={turns} value={at} onChange={(event) => onAt(Number(event.target.value))} />
      <IconButton icon={ChevronRight} label={words.after} disabled={at >= turns} onClick={() => onAt(at + 1)} />
      <span className="actions">
        <button type="button" className="button small" onClick={onFiles}>
          <FolderTree size={14} aria-hidden="true" />
          {t.filesThen}
        </button>
        <button type="button" className="button small" onClick={() => actions.forkAfter(turn)}>
          <GitFork size={14} aria-hidden="true" />
          {words.fork}
        </button>
        {asked?.kind === "user" && (
          <button type="button" className="button small" onClick={() => actions.editAndResend(asked)}>
            <Pencil size={14} aria-hidden="true" />
            {words.edit}
          </button>
        )}
      </span>
      <IconButton icon={X} label={t.close} onClick={onClose} />
    </div>
  );
}
