/** A conversation: transcript, composer, panels. Binds the live state to the parts that draw it. */

import { CloudOff, FileQuestion, ListTodo, LoaderCircle, MessagesSquare, X } from "lucide-react";
import { lazy, Suspense, useCallback, useEffect, useMemo, useRef, useState } from "react";
import { useLocation } from "wouter";
import { api } from "../api/client.ts";
import type { InputKind } from "../api/frames.ts";
import type { Connection } from "../api/socket.ts";
import { useFace, useLinks } from "../app/place.tsx";
import { SidebarButton } from "../app/shell.tsx";
import { transferred, type ShowTransfer } from "../files/transfer.tsx";
import { refreshSessions } from "../sessions/list.ts";
import { fromFirstWhole, isBusy, openRequests } from "../state/conversation.ts";
import type { ConversationState, Flags } from "../state/entries.ts";
import { liveConversation } from "../state/live.ts";
import { withRecords } from "../state/subagents.ts";
import { t } from "../text.ts";
import { Empty, IconButton, Loading } from "../ui/kit.tsx";
import { OpenFile } from "../ui/file_link.tsx";
import { useLeft } from "../ui/left.ts";
import { placeOf, type FilePlace } from "../ui/places.ts";
import { complain, toast } from "../ui/toasts.tsx";
import { Composer } from "./composer.tsx";
import { useActions } from "./actions.ts";
import { ChatHead, useHeadState, type Panel } from "./head.tsx";
import { ModelPicker } from "./model_picker.tsx";
import { ReadyCard } from "./ready.tsx";
import { upToTurn } from "./rows.ts";
import { ReplayBar } from "./replay.tsx";
import { SubagentRecords, Team, useSubagents } from "./subagents.tsx";
import { Transcript } from "./transcript.tsx";
import { useFacts, useLive } from "./use_live.ts";

const FilePanel = lazy(() => import("../files/panel.tsx"));
const Inspector = lazy(() => import("../dev/inspector.tsx"));

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

interface QueueProps {
  conversation: string;
  queued: ConversationState["queued"];
  /** A question is open: what waits is read once it is answered. */
  asks: boolean;
}

function Queue({ conversation, queued, asks }: QueueProps) {
  if (queued.length === 0) return null;
  return (
    <ol className="queue" aria-label={t.queuedMessages}>
      {asks && <li className="muted">{t.questionFirst}</li>}
      {queued.map((row, index) => (
        <li key={row.inbox}>
          <span className="badge">{index + 1}</span>
          <span className="clip grow">{row.text}</span>
          <IconButton icon={X} size={15} className="plain small" label={t.withdraw} onClick={() => void api.takeBack(conversation, row.inbox).catch(complain)} />
        </li>
      ))}
    </ol>
  );
}

interface OwnActions {
  say: (kind: InputKind, text: string) => void;
  stop: () => void;
  toggle: (flag: keyof Flags, enabled: boolean) => void;
  pick: (name: string) => void;
  attach: (files: File[], show: ShowTransfer) => Promise<readonly string[]>;
}

/** What the head and the box do: the same functions at each word of an answer, so that neither is drawn again. */
function useOwnActions(id: string, setModel: (name: string | null) => void): OwnActions {
  return useMemo(
    () => ({
      say: (kind, text) => liveConversation(id).say(kind, text),
      stop: () => void liveConversation(id).send({ type: "cancel" }),
      toggle: (flag, enabled) => {
        const types = { plan: "toggle_plan_mode", teams: "toggle_teams", approval: "toggle_approval" } as const;
        if (!liveConversation(id).send({ type: types[flag], enabled })) toast(t.offline);
      },
      pick: (name) => {
        setModel(name);
        api.settings(id, { model: name }).catch((error: unknown) => {
          setModel(null); // it still runs on the one before
          complain(error);
        });
      },
      attach: async (files, show) => {
        const paths = await transferred(files, "", id, show);
        if (paths.length > 0) toast(t.uploaded(paths.length));
        return paths;
      },
    }),
    [id, setModel],
  );
}

const SAID_BY_PAGES = ["not_found", "unauthorized"];

function useAlerts(state: ConversationState): void {
  const newest = state.alerts.at(-1);
  useEffect(() => {
    // That it is not there, or that nobody is signed in, is said by the page itself.
    if (newest && !SAID_BY_PAGES.includes(newest.code ?? "")) complain(new Error(newest.text));
  }, [newest]);
}

/** Whether a turn runs while nothing on the page moves: the model is being waited for. */
function isSilent(state: ConversationState): boolean {
  const last = state.entries.at(-1);
  if (state.status !== "running" || !last) return state.status === "running";
  if (last.kind === "text" || last.kind === "thinking") return last.done;
  return last.kind === "user" || ((last.kind === "tool" || last.kind === "subagent") && last.status !== "running") || last.kind === "request";
}

/** What stands beside the transcript; who comes back finds it open, with its file. */
function usePanel() {
  const picked = useRef<FilePlace | null>(null);
  const [left, keepAs] = useLeft<{ panel: Panel; place: FilePlace | null }>("panel");
  // An address may name a place in a file: `#file:…`.
  const [place, setPlace] = useState<FilePlace | null>(() => (left ? left.place : placeOf(location.hash)));
  const [panel, setPanel] = useState<Panel>(() => (left ? left.panel : place ? "files" : null));
  keepAs(() => ({ panel, place: panel === "files" ? picked.current : null }));
  const onPicked = useCallback((found: FilePlace | null): void => {
    picked.current = found;
  }, []);
  return { place, setPlace, panel, setPanel, onPicked };
}

const LAST_TURN = Number.MAX_SAFE_INTEGER;

export default function ChatPage({ id }: { id: string }) {
  const face = useFace();
  const live = liveConversation(id);
  const view = useLive(id);
  const { state, connection } = view;
  // A history that is read back is no change: what it led to is asked for once.
  const facts = useFacts(id, view.ready ? state.factsVersion : 0);
  const actions = useActions(id, facts);
  const { place, setPlace, panel, setPanel, onPicked } = usePanel();
  const openFile = useCallback((found: FilePlace): void => {
    setPlace({ ...found });
    setPanel("files");
  }, []);
  const onPanel = useCallback((wanted: Panel): void => {
    setPlace(null);
    setPanel(wanted);
  }, []);
  const [replayAt, setReplayAt] = useState<number | null>(null);
  const [model, setModel] = useState<string | null>(null);
  useAlerts(state);
  const turns = useMemo(() => state.entries.filter((entry) => entry.kind === "end").length, [state.entries]);
  const subagents = useSubagents(id, state, view.ready);
  const entries = useMemo(() => (view.whole ? state.entries : fromFirstWhole(state.entries)), [view.whole, state.entries]);
  const whole = useMemo(() => withRecords(entries, view.whole ? subagents.rows : []), [entries, view.whole, subagents.rows]);
  const shown = useMemo(() => (replayAt === null ? whole : upToTurn(whole, replayAt)), [whole, replayAt]);
  const busy = isBusy(state);
  useEffect(refreshSessions, [state.status]);
  const head = useHeadState(state);
  const own = useOwnActions(id, setModel);
  const onFork = useCallback(() => actions.forkAfter(""), [actions]);
  // Of a long history the beginning may still be on its way: the slider comes when it can be moved there.
  const onReplay = useCallback(() => void live.whole().then(() => setReplayAt((now) => (now === null ? LAST_TURN : null))), [live]);
  const asks = openRequests(state).length > 0;
  const above = useMemo(() => <Queue conversation={id} queued={state.queued} asks={asks} />, [id, state.queued, asks]);
  const named = model ?? facts?.model ?? null;
  const picker = useMemo(() => named !== null && <ModelPicker current={named} onPick={own.pick} />, [named, own]);
  if (connection === "gone") return <Gone />;
  const ready =
    face === "user" && view.ready && !busy && replayAt === null && (state.changedCount ?? facts?.changed_files ?? 0) + state.filesVersion > 0 ? (
      <ReadyCard conversation={id} version={state.filesVersion} running={busy} />
    ) : busy && replayAt === null && isSilent(state) ? (
      <span className="at-work" role="status">
        <LoaderCircle size={15} className="spin state-running" aria-hidden="true" />
        {t.atWork}
      </span>
    ) : null;
  const isBlank = view.ready && !busy && replayAt === null && shown.length + view.unsent.length + state.queued.length === 0;
  return (
    <>
      <ChatHead
        conversation={id}
        facts={facts}
        state={head}
        panel={panel}
        onPanel={onPanel}
        onToggle={own.toggle}
        onFork={onFork}
        onReplay={turns > 0 ? onReplay : null}
      />
      <Banner connection={connection} retryAt={view.retryAt} onRetry={() => live.reconnect()} />
      {replayAt !== null && (
        <ReplayBar turns={turns} at={Math.min(replayAt, turns)} shown={shown} actions={actions} onAt={setReplayAt} onFiles={() => onPanel("files")} onClose={() => setReplayAt(null)} />
      )}
      <div className="row">
        <div className="main" data-state={state.status} data-ready={view.ready}>
          {isBlank ? (
            <Empty icon={MessagesSquare} title={t.nothingSaid}>
              <p>{t.nothingSaidText}</p>
            </Empty>
          ) : view.ready || shown.length > 0 || view.unsent.length > 0 ? (
            <SubagentRecords conversation={id} rows={subagents.rows} refresh={subagents.refresh}>
              <OpenFile value={openFile}>
                <Transcript key={replayAt === null ? "live" : "replay"} kept={replayAt === null ? "live" : "replay"} entries={shown} whole={view.whole || replayAt !== null} unsent={view.unsent} offline={connection !== "open"} actions={actions} foot={ready} />
              </OpenFile>
            </SubagentRecords>
          ) : (
            <Loading label={t.loading} />
          )}
          {replayAt === null && (
            <>
              <Todos state={state} />
              {face === "dev" && <Team state={state} />}
              <Composer
                place={id}
                conversation={id}
                busy={busy}
                autoFocus
                onSend={own.say}
                onStop={own.stop}
                onFiles={own.attach}
                above={above}
                model={picker}
              />
            </>
          )}
        </div>
        {panel && <button type="button" className="scrim" aria-label={t.close} onClick={() => onPanel(null)} />}
        <Suspense fallback={null}>
          {panel === "files" && <FilePanel conversation={id} version={state.filesVersion} at={replayAt === null ? null : (shown.at(-1)?.turn ?? null)} place={place} onPicked={onPicked} onClose={() => onPanel(null)} />}
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
    <>
      <header className="head">
        <SidebarButton />
      </header>
      <Empty page icon={FileQuestion} title={t.goneTitle}>
        <p>{t.goneText}</p>
        <button type="button" className="button primary" onClick={() => go(links.home)}>
          {t.toStart}
        </button>
      </Empty>
    </>
  );
}
