/** A conflict in three panes: what it was, yours, the agent's; and what to do about it (UI-30). */

import { useEffect, useMemo, useRef, useState, type UIEvent } from "react";
import { api, ApiError } from "../api/client.ts";
import type { Refused } from "../api/types.ts";
import { liveConversation } from "../state/live.ts";
import { refusalReason, type ChangedFile } from "../state/review.ts";
import { baseOf } from "../state/base.ts";
import { t } from "../text.ts";
import { Dialog } from "../ui/kit.tsx";
import { complain, toast } from "../ui/toasts.tsx";

interface ConflictProps {
  conversation: string;
  refused: Refused;
  file: ChangedFile | null;
  onForce: () => void;
  onLeaveOut: () => void;
  onClose: () => void;
}

const MOST_QUOTED = 20_000;

async function textOf(path: string, conversation: string): Promise<string | null> {
  try {
    return (await api.file(path, conversation)).content;
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return null;
    throw error;
  }
}

/** The first hunk whose old lines are no longer in `mine`: there both sides changed something. */
function placeOf(file: ChangedFile | null, mine: string | null): number {
  const hunks = file?.hunks ?? [];
  const gone = hunks.find((hunk) => mine !== null && !`\n${mine}\n`.includes(`\n${oldText(hunk.text)}\n`));
  return (gone ?? hunks[0])?.new_start ?? 1;
}

function oldText(hunk: string): string {
  const lines = hunk.replace(/\n$/, "").split("\n");
  return lines.filter((line) => line.startsWith(" ") || line.startsWith("-")).map((line) => line.slice(1)).join("\n");
}

/** A text whose lines are marked where the texts it is compared with have no such line. */
function Marked({ text, before }: { text: string; before: ReadonlySet<string> | null }) {
  if (!before) return text;
  return text.split("\n").map((line, at) => (
    <span key={at} className={before.has(line) ? undefined : "differs"}>
      {line}
      {"\n"}
    </span>
  ));
}

export function ConflictDialog({ conversation, refused, file, onForce, onLeaveOut, onClose }: ConflictProps) {
  const [mine, setMine] = useState<string | null>(null);
  const [agents, setAgents] = useState<string | null>(null);
  const [here, setHere] = useState(false);
  const path = refused.path;
  useEffect(() => {
    Promise.all([textOf(path.slice(1), "none"), textOf(path.slice(1), conversation)]).then(([yours, theirs]) => {
      setMine(yours);
      setAgents(theirs);
      setHere(true);
    }, complain);
  }, [path, conversation]);
  const panes = useRef<HTMLDivElement>(null);
  const firstLine = useMemo(() => placeOf(file, mine), [file, mine]);
  useEffect(() => {
    // All three begin at the place in question.
    for (const pre of panes.current?.querySelectorAll("pre") ?? []) {
      pre.scrollTop = Math.max(0, firstLine - 3) * Number.parseFloat(getComputedStyle(pre).lineHeight);
    }
  }, [here, firstLine]);
  const together = (event: UIEvent<HTMLPreElement>): void => {
    const { scrollTop, scrollLeft } = event.currentTarget;
    for (const pre of panes.current?.querySelectorAll("pre") ?? []) pre.scrollTo(scrollLeft, scrollTop);
  };
  const base = agents !== null && file?.hunks ? baseOf(agents, file.hunks) : null;
  const ask = (): void => {
    liveConversation(conversation).say("message", t.resolveMessage(path.slice(1), (mine ?? "").slice(0, MOST_QUOTED)));
    toast(t.askedAgent);
    onClose();
  };
  const before = useMemo(() => new Set((base ?? "").split("\n")), [base]);
  // Of the beginning, what one side no longer has.
  const kept = useMemo(() => {
    const theirs = new Set((agents ?? "").split("\n"));
    return new Set((mine ?? "").split("\n").filter((line) => theirs.has(line)));
  }, [mine, agents]);
  const pane = (title: string, text: string | null, others = before) => (
    <section>
      <h3>{title}</h3>
      <pre tabIndex={0} aria-label={title} onScroll={together}>
        {here && <Marked text={text ?? t.notThere} before={text === null || base === null ? null : others} />}
      </pre>
    </section>
  );
  return (
    <Dialog
      wide
      title={path.slice(1)}
      onClose={onClose}
      foot={
        <>
          <button type="button" className="button" onClick={onLeaveOut}>
            {t.keepMine}
          </button>
          <button type="button" className="button" onClick={ask}>
            {t.askResolve}
          </button>
          <button type="button" className="button primary" onClick={onForce}>
            {t.takeAgents}
          </button>
        </>
      }
    >
      <p>{refusalReason(refused.reason)}</p>
      <div className="panes" ref={panes}>
        {pane(t.baseVersion, base, kept)}
        {pane(t.yourVersion, mine)}
        {pane(t.agentVersion, agents)}
      </div>
    </Dialog>
  );
}
