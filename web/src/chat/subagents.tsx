/** Subagents: a card each, its transcript and changes, merging and discarding (UI-8); teammates beside them. */

import { Bot, FileDiff, MessagesSquare, Users } from "lucide-react";
import { createContext, lazy, memo, Suspense, useContext, useEffect, useMemo, useReducer, useState, type ReactNode } from "react";
import { api } from "../api/client.ts";
import type { Subagent, SubagentWhole, TranscriptRow } from "../api/types.ts";
import type { ConversationState, SubagentEntry } from "../state/entries.ts";
import { filesOfPatch, type PatchedDiff } from "../state/patch.ts";
import { keyParameter } from "../state/plain.ts";
import { makerCount, stateOfSubagent, type SubagentState } from "../state/subagents.ts";
import { count, dollars, seconds, short } from "../state/words.ts";
import { t } from "../text.ts";
import { Dialog, Empty, Loading, Problem } from "../ui/kit.tsx";
import { Markdown } from "../ui/markdown.tsx";
import { complain, toast } from "../ui/toasts.tsx";

const ReadOnlyDiff = lazy(() => import("../review/read_only.tsx"));

interface Known {
  conversation: string;
  records: ReadonlyMap<string, Subagent>;
  /** Ask for the records again: something was merged or discarded. */
  refresh: () => void;
}

const Records = createContext<Known>({ conversation: "", records: new Map(), refresh: () => undefined });

/** Records of a conversation's subagents, asked for when there may be any. */
export function useSubagents(conversation: string, state: ConversationState, ready: boolean): { rows: readonly Subagent[]; refresh: () => void } {
  const [rows, setRows] = useState<readonly Subagent[]>([]);
  const [again, refresh] = useReducer((count: number) => count + 1, 0);
  const makers = makerCount(state.entries);
  useEffect(() => {
    if (makers === 0 || !ready) return;
    let here = true;
    api.subagents(conversation).then((found) => here && setRows(found), complain);
    return () => {
      here = false;
    };
  }, [conversation, makers, again, ready, state.factsVersion]);
  return { rows, refresh };
}

interface RecordsProps {
  conversation: string;
  rows: readonly Subagent[];
  refresh: () => void;
  children: ReactNode;
}

/** Gives the records of subagents to the cards below. */
export function SubagentRecords({ conversation, rows, refresh, children }: RecordsProps) {
  const value = useMemo(() => ({ conversation, records: new Map(rows.map((row) => [row.session, row])), refresh }), [conversation, rows, refresh]);
  return <Records value={value}>{children}</Records>;
}

const TONES: Readonly<Record<SubagentState, string>> = {
  running: "accent",
  finished: "ok",
  merged: "purple",
  failed: "danger",
  discarded: "",
  stopped: "warn",
};

/** What a subagent changed, once it has ended; null while that is not known. */
function useChanged(conversation: string, handle: string | null, state: SubagentState): PatchedDiff | null {
  const [diff, setDiff] = useState<PatchedDiff | null>(null);
  const ended = state === "finished" || state === "failed" || state === "merged";
  useEffect(() => {
    if (!handle || !ended) return;
    let here = true;
    api.subagent(conversation, handle, 1).then(
      (whole) => here && setDiff(whole.diff),
      () => undefined, // it was discarded elsewhere: the card says so with the next records
    );
    return () => {
      here = false;
    };
  }, [conversation, handle, ended]);
  return diff;
}

function Changed({ diff }: { diff: PatchedDiff }) {
  const files = diff.written.length + diff.deleted.length;
  if (files === 0) return <span className="muted">{t.changedNothing}</span>;
  const sum = (key: "added" | "removed"): number => diff.written.reduce((total, row) => total + row[key], 0);
  return (
    <span>
      {count(files, t.fileChanged, t.filesChanged)}{" "}
      <span className="counts">
        <span className="plus">+{sum("added")}</span> <span className="minus">−{sum("removed")}</span>
      </span>
    </span>
  );
}

export const SubagentCard = memo(function SubagentCard({ entry }: { entry: SubagentEntry }) {
  const { conversation, records, refresh } = useContext(Records);
  const [open, setOpen] = useState<"transcript" | "changes" | null>(null);
  const [busy, setBusy] = useState(false);
  const record = records.get(entry.key.slice("sub:".length)) ?? null;
  const handle = record?.handle ?? entry.handle;
  const state = stateOfSubagent(entry, record);
  const changed = useChanged(conversation, handle, state);
  const hasChanges = changed === null || changed.written.length + changed.deleted.length > 0;
  const mayDecide = handle !== null && (state === "finished" || state === "failed");
  const work = (todo: () => Promise<string>): void => {
    setBusy(true);
    todo()
      .then((words) => toast(words), complain)
      .finally(() => {
        setBusy(false);
        refresh();
      });
  };
  const figures = [
    entry.toolCount !== null ? t.steps(entry.toolCount) : "",
    entry.tokens !== null ? t.tokens(short(entry.tokens)) : "",
    record && entry.status !== "running" ? dollars((record.usage as { cost?: number | null }).cost) : "",
    entry.elapsed !== null ? seconds(entry.elapsed * 1000) : "",
  ].filter(Boolean);
  return (
    <article className="card subagent" aria-label={t.subagentOf(entry.agentType)}>
      <header>
        <Bot size={16} aria-hidden="true" />
        <strong>{entry.agentType}</strong>
        {handle && <code className="muted">{handle}</code>}
        <span className={`badge ${TONES[state]}`}>{t.subagentStates[state]}</span>
        <span className="figures">{figures.join(" · ")}</span>
      </header>
      <p className="task">{entry.task}</p>
      {changed && <Changed diff={changed} />}
      {entry.summary && (
        <details>
          <summary>{state === "failed" ? t.whatHappened : t.summaryWord}</summary>
          <Markdown text={entry.summary} />
        </details>
      )}
      {handle && state !== "discarded" && (
        <div className="actions">
          <button type="button" className="button small plain" onClick={() => setOpen("transcript")}>
            <MessagesSquare size={14} aria-hidden="true" />
            {t.transcript}
          </button>
          <button type="button" className="button small plain" onClick={() => setOpen("changes")}>
            <FileDiff size={14} aria-hidden="true" />
            {t.changes}
          </button>
          <span className="grow" />
          {mayDecide && (
            <>
              {hasChanges && (
                <button type="button" className="button small" disabled={busy} onClick={() => work(() => merge(conversation, handle))}>
                  {t.mergeWork}
                </button>
              )}
              <button type="button" className="button small plain danger" disabled={busy} onClick={() => work(() => discard(conversation, handle))}>
                {t.discard}
              </button>
            </>
          )}
        </div>
      )}
      {open && handle && <SubagentDialog conversation={conversation} handle={handle} begin={open} onClose={() => setOpen(null)} />}
    </article>
  );
});

/** Merge a subagent's work into the conversation's branch; return what to say. */
export async function merge(conversation: string, handle: string, paths?: string[]): Promise<string> {
  const done = await api.mergeSubagent(conversation, handle, paths ? { paths } : {});
  const count = done.written.length + done.deleted.length;
  return done.conflicts.length > 0 ? t.mergedWithConflicts(count, done.conflicts) : t.mergedWork(count);
}

async function discard(conversation: string, handle: string): Promise<string> {
  await api.discardSubagent(conversation, handle);
  return t.discardedWork;
}

export function useSubagent(conversation: string, handle: string): { whole: SubagentWhole | null; problem: string | null } {
  const [whole, setWhole] = useState<SubagentWhole | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  useEffect(() => {
    let here = true;
    api.subagent(conversation, handle).then(
      (found) => here && setWhole(found),
      (error: unknown) => here && setProblem(error instanceof Error ? error.message : String(error)),
    );
    return () => {
      here = false;
    };
  }, [conversation, handle]);
  return { whole, problem };
}

interface DialogProps {
  conversation: string;
  handle: string;
  begin: "transcript" | "changes";
  onClose: () => void;
}

export function SubagentDialog({ conversation, handle, begin, onClose }: DialogProps) {
  const [tab, setTab] = useState(begin);
  const { whole, problem } = useSubagent(conversation, handle);
  return (
    <Dialog title={whole ? `${whole.agent_type} · ${handle}` : handle} wide onClose={onClose}>
      <div className="tabs" role="group" aria-label={t.view}>
        {(["transcript", "changes"] as const).map((name) => (
          <button key={name} type="button" className="button small plain" aria-pressed={tab === name} onClick={() => setTab(name)}>
            {name === "transcript" ? t.transcript : t.changes}
          </button>
        ))}
      </div>
      {problem && <Problem>{problem}</Problem>}
      {!whole && !problem && <Loading label={t.loading} />}
      {whole && tab === "transcript" && <Transcript rows={whole.transcript} error={whole.error} />}
      {whole && tab === "changes" && <Changes whole={whole} />}
    </Dialog>
  );
}

function Changes({ whole }: { whole: SubagentWhole }) {
  if (!whole.diff) return <Empty icon={FileDiff} title={t.noLongerThere} />;
  const files = filesOfPatch(whole.diff);
  if (files.length === 0) return <Empty icon={FileDiff} title={t.changedNothing} />;
  return (
    <>
      {whole.diff.patch_truncated && <Problem tone="info">{t.patchCut}</Problem>}
      <div className="dialog-diff">
        <Suspense fallback={<Loading label={t.loading} />}>
          <ReadOnlyDiff files={files} label={t.changesOf(whole.handle)} />
        </Suspense>
      </div>
    </>
  );
}

function Transcript({ rows, error }: { rows: readonly TranscriptRow[]; error: string | null }) {
  const results = new Map(rows.flatMap((row) => (row.role === "tool" && row.id ? [[row.id, row] as const] : [])));
  return (
    <div className="sub-transcript">
      {rows.map((row) => {
        if (row.role === "tool") return null;
        return (
          <div key={row.cursor} className={row.role === "user" ? "said" : "answered"}>
            {row.role === "user" ? <div className="bubble">{row.content}</div> : row.content && <Markdown text={row.content} />}
            {row.tool_calls?.map((call) => {
              const result = results.get(call.id);
              return (
                <details key={call.id} className="tool">
                  <summary>
                    <span className="name">{call.tool}</span>
                    <span className="key clip">{keyParameter(call.input)}</span>
                    {result?.status && result.status !== "ok" && <span className="badge danger">{result.status}</span>}
                  </summary>
                  <div className="body">
                    <pre tabIndex={0}>{JSON.stringify(call.input, null, 2)}</pre>
                    {result && <pre tabIndex={0}>{result.content}</pre>}
                  </div>
                </details>
              );
            })}
          </div>
        );
      })}
      {error && <Problem>{error}</Problem>}
    </div>
  );
}

/** Who works beside the lead, and at what (DE-61). */
export function Team({ state }: { state: ConversationState }) {
  const members = Object.entries(state.teammates);
  if (members.length === 0) return null;
  const tone = (status: string): string => (status === "working" ? "accent" : status === "error" ? "danger" : status === "idle" ? "ok" : "");
  return (
    <ul className="team" aria-label={t.team}>
      <li aria-hidden="true">
        <Users size={14} />
      </li>
      {members.map(([name, mate]) => (
        <li key={name} className={`badge ${tone(mate.status)}`} title={mate.role}>
          {name} <span className="role">{mate.role}</span> {t.mateStates[mate.status] ?? mate.status}
        </li>
      ))}
    </ul>
  );
}
