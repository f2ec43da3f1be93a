/** Where each face begins: the user face with a question, the developer face with all sessions. */

import { MessagesSquare } from "lucide-react";
import { lazy, Suspense, useState } from "react";
import { Link, useLocation } from "wouter";
import { api, ApiError } from "../api/client.ts";
import { base } from "../api/place.ts";
import type { ConversationRow } from "../api/types.ts";
import { useFace, useLinks } from "../app/place.tsx";
import { SidebarButton, useShell } from "../app/shell.tsx";
import { transferred, type ShowTransfer } from "../files/transfer.tsx";
import { inOrder, refreshSessions, stateOf, useSessions } from "../sessions/list.ts";
import { liveConversation } from "../state/live.ts";
import { useMay } from "../state/me.ts";
import { useSetup } from "../settings/use_setup.ts";
import { drafts } from "../state/preferences.ts";
import { ago, count, dollars } from "../state/words.ts";
import { seenTitle } from "../state/hidden_marks.ts";
import { t } from "../text.ts";
import { Empty, Loading, Problem } from "../ui/kit.tsx";
import { useMore } from "../ui/more.tsx";
import { complain } from "../ui/toasts.tsx";
import { Composer } from "./composer.tsx";
import { ModelPicker } from "./model_picker.tsx";

const NoModel = lazy(() => import("../settings/setup.tsx").then((module) => ({ default: module.NoModel })));

export function HomePage() {
  return useFace() === "dev" ? <Overview /> : <Welcome />;
}

/** Where the chat is remembered whose branch has files already, as the unsent words are. */
const NEW_CHAT = "new chat";

/** The chat that a first message goes into: the one that has its files, or a new one. */
async function chatFor(known: string, model: string): Promise<string> {
  const wanted = model ? { model } : {};
  if (known) {
    try {
      await (model ? api.settings(known, wanted) : api.conversation(known));
      return known;
    } catch (error) {
      if (!(error instanceof ApiError && error.status === 404)) throw error; // deleted meanwhile: a new one
    }
  }
  return (await api.begin(wanted)).conversation_id;
}

function Welcome() {
  const links = useLinks();
  const [, go] = useLocation();
  const [busy, setBusy] = useState(false);
  const mayWork = useMay("user");
  const setup = useSetup();
  const isMissing = setup !== null && !setup.usable;
  const [model, setModel] = useState("");
  // Files need a branch to lie on before anything is said: the chat that the message then goes into.
  const [chat, setChat] = useState(() => drafts.get(NEW_CHAT));
  const keep = (id: string): void => {
    setChat(id);
    drafts.set(NEW_CHAT, id);
  };
  const attach = async (files: File[], show: ShowTransfer): Promise<readonly string[]> => {
    try {
      const into = await chatFor(chat, model);
      keep(into);
      return await transferred(files, "", into, show);
    } catch (error) {
      complain(error);
      return [];
    }
  };
  const begin = async (text: string): Promise<void> => {
    setBusy(true);
    try {
      const into = await chatFor(chat, model);
      keep("");
      liveConversation(into).say("message", text);
      refreshSessions();
      go(links.chat(into));
    } catch (error) {
      complain(error);
      throw error;
    } finally {
      setBusy(false);
    }
  };
  return (
    <>
      <div className="head">
        <SidebarButton />
      </div>
      <div className="welcome">
        <header>
          <img src={`${base()}/icon.svg`} alt="" width="56" height="56" />
          <h1>{t.welcome}</h1>
          <p>{t.welcomeText}</p>
        </header>
        {isMissing && (
          <Suspense fallback={null}>
            <NoModel setup={setup} />
          </Suspense>
        )}
        {!mayWork && <Problem tone="info">{t.readsOnly}</Problem>}
        {mayWork && !isMissing && (
          <>
            <Composer place="new" conversation={chat || null} busy={false} disabled={busy} onSend={(_, text) => begin(text)} onFiles={attach} autoFocus model={<ModelPicker current={model} onPick={setModel} />} />
            <div className="ideas">
              {t.ideas.map((idea) => (
                <button key={idea} type="button" className="button" disabled={busy} onClick={() => void begin(idea).catch(() => undefined)}>
                  {idea}
                </button>
              ))}
            </div>
          </>
        )}
      </div>
    </>
  );
}

function SessionCard({ row }: { row: ConversationRow }) {
  const links = useLinks();
  const state = stateOf(row);
  return (
    <Link className="card" href={links.chat(row.id)}>
      <span className="title">
        <span className={`dot ${state}`} aria-hidden="true" />
        <strong className="clip grow" dir="auto">{seenTitle(row.title)}</strong>
        <span className={`badge ${state === "waiting" || state === "stopped" ? "warn" : state === "running" ? "accent" : state === "failed" ? "danger" : ""}`}>
          {t.state[state]}
        </span>
      </span>
      <span className="facts">
        {row.message_count > 0 && <span>{count(row.message_count, t.message, t.messagesWord)}</span>}
        {row.changed_files > 0 && <span>{count(row.changed_files, t.fileChanged, t.filesChanged)}</span>}
        {row.cost !== 0 && <span>{dollars(row.cost)}</span>}
        {row.workspace && <span>{row.workspace}</span>}
        <span>{ago(row.updated_at)}</span>
      </span>
    </Link>
  );
}

function Overview() {
  const { rows, error } = useSessions();
  const { newChat } = useShell();
  const mayWork = useMay("user");
  const setup = useSetup();
  const { urgent, others } = inOrder(rows ?? []);
  const [shown, more] = useMore(others);
  return (
    <>
      <div className="head">
        <SidebarButton />
        <div className="head-title">
          <h1>{t.sessions}</h1>
        </div>
        {mayWork && (
          <button type="button" className="button primary" onClick={newChat}>
            {t.newChat}
          </button>
        )}
      </div>
      <div className="page">
        <div className="page-inner">
          {setup && !setup.usable && (
            <Suspense fallback={null}>
              <NoModel setup={setup} />
            </Suspense>
          )}
          {error && <Problem>{error.message}</Problem>}
          {rows === null && !error && <Loading label={t.loading} />}
          {rows?.length === 0 && (
            <Empty icon={MessagesSquare} title={t.noSessions}>
              <p>{t.noSessionsText}</p>
              {mayWork && (
                <button type="button" className="button primary" onClick={newChat}>
                  {t.newChat}
                </button>
              )}
            </Empty>
          )}
          {urgent.length > 0 && (
            <section>
              <h2 className="section-title">{t.now}</h2>
              <div className="overview">
                {urgent.map((row) => (
                  <SessionCard key={row.id} row={row} />
                ))}
              </div>
            </section>
          )}
          {others.length > 0 && (
            <section>
              <h2 className="section-title">{t.earlier}</h2>
              <div className="overview">
                {shown.map((row) => (
                  <SessionCard key={row.id} row={row} />
                ))}
              </div>
              {more}
            </section>
          )}
        </div>
      </div>
    </>
  );
}
