/** A conversation: transcript, composer, panels. Binds the live state to the parts that draw it. */

import { CloudOff, FileQuestion, ListTodo, LoaderCircle, X } from "lucide-react";
import { lazy, Suspense, useCallback, useEffect, useMemo, useState, useSyncExternalStore } from "react";
import { useLocation } from "wouter";
import { api, upload } from "../api/client.ts";
import type { Connection } from "../api/socket.ts";
import type { Conversation } from "../api/types.ts";
import { useFace, useLinks } from "../app/place.tsx";
import { refreshSessions } from "../sessions/list.ts";
import { isBusy } from "../state/conversation.ts";
import type { ConversationState, Flags, UserEntry } from "../state/entries.ts";
import { liveConversation, type LiveView } from "../state/live.ts";
import { drafts } from "../state/preferences.ts";
import { t } from "../text.ts";
import { Empty, IconButton, Loading } from "../ui/kit.tsx";
import { complain, toast } from "../ui/toasts.tsx";
import { Composer } from "./composer.tsx";
import type { EntryActions } from "./entries.tsx";
import { ChatHead, type Panel } from "./head.tsx";
import { ReadyCard } from "./ready.tsx";
import { upToTurn } from "./rows.ts";
import { Transcript } from "./transcript.tsx";

const FilePanel = lazy(() => import("../files/panel.tsx"));
const Inspector = lazy(() => import("../dev/inspector.tsx"));

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

function Banner({ connection, retryAt, onRetry }: { connection: Connection; retryAt: number | null; onRetry: () => void }) {
  const [late, setLate] = useState(false);
  useEffect(() => {
    setLate(false);
    const timer = setTimeout(() => setLate(true), 700);
    return () => clearTimeout(timer);
  }, [connection === "open"]);
  if (connection === "open" || connection === "gone" || !late) return null;
  return (
    <div className={`banner ${retryAt ? "" : "quiet"}`} role="status" data-testid="connection">
      <CloudOff size={16} aria-hidden="true" />
      <span className="grow">{t.offline}</span>
      <button type="button" className="button small" onClick={onRetry}>
        {t.tryNow}
      </button>
    </div>
  );
}

function Todos({ state }: { state: ConversationState }) {
  const { todos } = state;
  if (todos.length === 0) return null;
  const done = todos.filter((todo) => todo.status === "completed").length;
  const now = todos.find((todo) => todo.status === "in_progress");
  return (
    <details className="todos card">
      <summary>
        <ListTodo size={15} aria-hidden="true" />
        <span className="clip grow">{now?.content ?? now?.subject ?? t.tasks}</span>
        <span className="muted">
          {done}/{todos.length}
        </span>
      </summary>
      <ul>
        {todos.map((todo, index) => (
          <li key={index} className={todo.status}>
            <span aria-hidden="true">{todo.status === "completed" ? "✓" : todo.status === "in_progress" ? "●" : "○"}</span>
            {todo.content ?? todo.subject}
          </li>
        ))}
      </ul>
    </details>
  );
}

function Queue({ conversation, state }: { conversation: string; state: ConversationState }) {
  if (state.queued.length === 0) return null;
  return (
    <ol className="queue" aria-label={t.queuedMessages}>
      {state.queued.map((row, index) => (
        <li key={row.inbox}>
          <span className="badge">{index + 1}</span>
          <span className="clip grow">{row.text}</span>
          <IconButton icon={X} size={15} className="plain small" label={t.withdraw} onClick={() => void api.takeBack(conversation, row.inbox).catch(complain)} />
        </li>
      ))}
    </ol>
  );
}

function ReplayBar({ turns, at, onAt, onFork, onClose }: { turns: number; at: number; onAt: (at: number) => void; onFork: () => void; onClose: () => void }) {
  return (
    <div className="replay-bar">
      <label htmlFor="replay">{t.turnOf(at, turns)}</label>
      <input id="replay" type="range" min={1} max={turns} value={at} onChange={(event) => onAt(Number(event.target.value))} />
      <button type="button" className="button small" onClick={onFork}>
        {t.forkHere}
      </button>
      <IconButton icon={X} label={t.close} onClick={onClose} />
    </div>
  );
}

function useAlerts(state: ConversationState): void {
  const newest = state.alerts.at(-1);
  useEffect(() => {
    if (newest) complain(new Error(newest.text));
  }, [newest]);
}

/** What entries may ask for. */
function useActions(id: string, view: LiveView): EntryActions {
  const links = useLinks();
  const [, go] = useLocation();
  const entries = view.state.entries;
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
      const ends = entries.filter((one) => one.kind === "end" && one.state === "done");
      const at = entries.indexOf(entry);
      const before = ends.filter((end) => entries.indexOf(end) < at).at(-1);
      const made = before?.turn ? await api.fork(id, before.turn) : await api.begin({});
      drafts.set(made.conversation_id, entry.text);
      go(links.chat(made.conversation_id));
    },
    [id, entries, go, links],
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

/** Whether a turn runs while nothing on the page moves: the model is being waited for. */
function isSilent(state: ConversationState): boolean {
  const last = state.entries.at(-1);
  if (state.status !== "running" || !last) return state.status === "running";
  if (last.kind === "text" || last.kind === "thinking") return last.done;
  return last.kind === "user" || ((last.kind === "tool" || last.kind === "subagent") && last.status !== "running") || last.kind === "request";
}

export function ChatPage({ id }: { id: string }) {
  const face = useFace();
  const live = liveConversation(id);
  const view = useLive(id);
  const { state, connection } = view;
  const facts = useFacts(id, state.factsVersion);
  const actions = useActions(id, view);
  const [panel, setPanel] = useState<Panel>(null);
  const [replayAt, setReplayAt] = useState<number | null>(null);
  useAlerts(state);
  const turns = useMemo(() => state.entries.filter((entry) => entry.kind === "end").length, [state.entries]);
  const shown = useMemo(() => (replayAt === null ? state.entries : upToTurn(state.entries, replayAt)), [state.entries, replayAt]);
  const busy = isBusy(state);
  useEffect(refreshSessions, [state.status]);
  if (connection === "gone") return <Gone />;
  const toggle = (flag: keyof Flags, enabled: boolean): void => {
    const types = { plan: "toggle_plan_mode", teams: "toggle_teams", approval: "toggle_approval" } as const;
    if (!live.send({ type: types[flag], enabled })) toast(t.offline);
  };
  const attach = (files: File[]): void => {
    upload(files, "", id, () => undefined).done.then((paths) => {
      toast(t.uploaded(paths.length));
      setPanel("files");
    }, complain);
  };
  const ready =
    face === "user" && !busy && replayAt === null && (state.changedCount ?? facts?.changed_files ?? 0) + state.filesVersion > 0 ? (
      <ReadyCard conversation={id} version={state.filesVersion} running={busy} />
    ) : busy && replayAt === null && isSilent(state) ? (
      <span className="at-work" role="status">
        <LoaderCircle size={15} className="spin state-running" aria-hidden="true" />
        {t.atWork}
      </span>
    ) : null;
  return (
    <>
      <ChatHead
        conversation={id}
        facts={facts}
        state={state}
        panel={panel}
        onPanel={setPanel}
        onToggle={toggle}
        onFork={() => actions.forkAfter("")}
        onReplay={() => (turns > 0 ? setReplayAt(turns) : toast(t.nothingToReplay))}
      />
      <Banner connection={connection} retryAt={view.retryAt} onRetry={() => live.reconnect()} />
      {replayAt !== null && (
        <ReplayBar
          turns={turns}
          at={Math.min(replayAt, turns)}
          onAt={setReplayAt}
          onFork={() => actions.forkAfter(shown.at(-1)?.turn ?? "")}
          onClose={() => setReplayAt(null)}
        />
      )}
      <div className="row">
        <div className="main" data-state={state.status} data-ready={view.ready}>
          {view.ready || shown.length > 0 || view.unsent.length > 0 ? (
            <Transcript key={replayAt === null ? "live" : "replay"} entries={shown} unsent={view.unsent} offline={connection !== "open"} actions={actions} foot={ready} />
          ) : (
            <Loading label={t.loading} />
          )}
          <Todos state={state} />
          <Composer
            place={id}
            busy={busy}
            autoFocus
            onSend={(kind, text) => live.say(kind, text)}
            onStop={() => live.send({ type: "cancel" })}
            onFiles={attach}
            above={<Queue conversation={id} state={state} />}
          />
        </div>
        {panel && <button type="button" className="scrim" aria-label={t.close} onClick={() => setPanel(null)} />}
        <Suspense fallback={null}>
          {panel === "files" && <FilePanel conversation={id} version={state.filesVersion} onClose={() => setPanel(null)} />}
          {panel === "traffic" && <Inspector live={live} onClose={() => setPanel(null)} />}
        </Suspense>
      </div>
    </>
  );
}

function Gone() {
  const links = useLinks();
  const [, go] = useLocation();
  return (
    <Empty icon={FileQuestion} title={t.goneTitle}>
      <p>{t.goneText}</p>
      <button type="button" className="button primary" onClick={() => go(links.home)}>
        {t.toStart}
      </button>
    </Empty>
  );
}
