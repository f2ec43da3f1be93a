/** The list of sessions beside every page: state, changed files, cost, age; search, rename, fork, delete. */

import { Code, Ellipsis, GitFork, Pencil, Plus, Search, Sparkles, Trash2 } from "lucide-react";
import { useEffect, useState } from "react";
import { Link, useLocation } from "wouter";
import { api } from "../api/client.ts";
import { base } from "../api/place.ts";
import type { ConversationRow } from "../api/types.ts";
import { titleWaits } from "../app/arrival.ts";
import { useFace, useLinks } from "../app/place.tsx";
import { useMay } from "../state/me.ts";
import { usePreferences } from "../state/preferences.ts";
import { ago, count, dollars } from "../state/words.ts";
import { seenTitle } from "../state/hidden_marks.ts";
import { t } from "../text.ts";
import { Dialog, Menu, Problem } from "../ui/kit.tsx";
import { complain, toast } from "../ui/toasts.tsx";
import { Account, FurtherPages } from "./account.tsx";
import { inOrder, refreshSessions, stateOf, useSessions } from "./list.ts";
import { useFound, withFound } from "./search.ts";

const UNDO_MS = 10_000;

function Facts({ row }: { row: ConversationRow }) {
  const face = useFace();
  const state = stateOf(row);
  return (
    <span className="facts">
      {state === "waiting" ? <strong>{t.waitsForYou}</strong> : <span>{state === "running" ? t.working : state === "stopped" ? t.state.stopped : ago(row.updated_at)}</span>}
      {row.changed_files > 0 && <span>{count(row.changed_files, t.fileChanged, t.filesChanged)}</span>}
      {face === "dev" && row.cost !== 0 && <span>{dollars(row.cost)}</span>}
    </span>
  );
}

function Session({ row, current, onRename }: { row: ConversationRow; current: boolean; onRename: () => void }) {
  const links = useLinks();
  const [, go] = useLocation();
  const mayWork = useMay("user");
  const title = seenTitle(row.title);
  const remove = async (): Promise<void> => {
    await api.remove(row.id);
    if (current) go(links.home);
    refreshSessions();
    const restore = (): void => void api.restore(row.id).then(refreshSessions, complain);
    toast(t.deleted(title), { label: t.undo, run: restore }, UNDO_MS);
  };
  const fork = async (): Promise<void> => {
    const made = await api.fork(row.id);
    refreshSessions();
    go(links.chat(made.conversation_id));
  };
  return (
    <li className={`session ${current ? "current" : ""}`}>
      <Link href={links.chat(row.id)} aria-current={current ? "page" : undefined}>
        <span className={`dot ${stateOf(row)}`} aria-hidden="true" />
        <span className="title clip" dir="auto">
          {title}
          <span className="hidden">, {t.state[stateOf(row)]}</span>
        </span>
        {row.found && <span className="found clip">{row.found.text}</span>}
        <Facts row={row} />
      </Link>
      {mayWork && <Menu
        small
        label={t.actionsOf(title)}
        icon={Ellipsis}
        items={[
          { label: t.rename, icon: Pencil, onPick: onRename },
          { label: t.fork, icon: GitFork, onPick: () => void fork().catch(complain) },
          "line",
          { label: t.delete, icon: Trash2, danger: true, onPick: () => void remove().catch(complain) },
        ]}
      />}
    </li>
  );
}

function Rename({ row, onClose }: { row: ConversationRow; onClose: () => void }) {
  const [title, setTitle] = useState(row.title ?? "");
  const save = (): void => {
    void api.rename(row.id, title.trim()).then(refreshSessions, complain);
    onClose();
  };
  return (
    <Dialog
      title={t.rename}
      onClose={onClose}
      foot={
        <button type="button" className="button primary" disabled={!title.trim()} onClick={save}>
          {t.save}
        </button>
      }
    >
      <label className="field">
        <span>{t.title}</span>
        <input
          className="input"
          autoFocus
          maxLength={500}
          value={title}
          onChange={(event) => setTitle(event.target.value)}
          onKeyDown={(event) => {
            if (event.key === "Enter" && title.trim() && !event.nativeEvent.isComposing) save();
          }}
        />
      </label>
    </Dialog>
  );
}

/** Tell the person when an answer is needed: in the title always, by a notification if they asked for it. */
function useAttention(rows: readonly ConversationRow[] | null): void {
  const { notify, push } = usePreferences();
  const waiting = (rows ?? []).filter((row) => stateOf(row) === "waiting");
  const names = waiting.map((row) => row.id).join();
  useEffect(() => {
    titleWaits(waiting.length);
    if (!names || !notify || push || !document.hidden || !("Notification" in window) || Notification.permission !== "granted") return;
    new Notification(t.needsYou, { body: seenTitle(waiting[0]?.title), tag: names });
    // Only who waits matters, not each new list.
  }, [names, notify, push]);
}

export function Sidebar({ current, onNew }: { current: string | null; onNew: () => void }) {
  const face = useFace();
  const links = useLinks();
  const { rows, error } = useSessions();
  const mayWork = useMay("user");
  const [query, setQuery] = useState("");
  const [renaming, setRenaming] = useState<ConversationRow | null>(null);
  useAttention(rows);
  const wanted = query.trim();
  const hits = useFound(wanted);
  const found = withFound(rows ?? [], wanted, hits?.rows ?? []);
  const { urgent, others } = inOrder(found);
  const list = (part: readonly ConversationRow[]) =>
    part.map((row) => (
      <Session key={row.id} row={row} current={row.id === current} onRename={() => setRenaming(row)} />
    ));
  return (
    <>
      <div className="brand">
        <Link href={links.home}>
          <img src={`${base()}/icon.svg`} alt="" width="28" height="28" />
          Bowerbird
        </Link>
      </div>
      <div className="side-top">
        {mayWork && (
          <button type="button" className={`button ${face === "user" ? "primary" : ""}`} onClick={onNew}>
            <Plus size={17} aria-hidden="true" />
            {t.newChat}
          </button>
        )}
        <label className="side-search">
          <span className="hidden">{t.searchSessions}</span>
          <Search size={15} aria-hidden="true" />
          <input className="input" type="search" placeholder={t.search} value={query} onChange={(event) => setQuery(event.target.value)} />
        </label>
      </div>
      <nav className="side-list" aria-label={t.sessions} tabIndex={0}>
        {error && rows === null && <Problem>{error.message}</Problem>}
        {urgent.length > 0 && (
          <>
            <h2>{t.now}</h2>
            <ul>{list(urgent)}</ul>
          </>
        )}
        {others.length > 0 && (
          <>
            <h2>{t.earlier}</h2>
            <ul>{list(others)}</ul>
          </>
        )}
        {rows !== null && found.length === 0 && (
          <p className="muted" style={{ padding: "1rem 0.75rem", fontSize: "var(--step--1)" }}>
            {wanted ? (hits ? t.nothingFound : t.searching) : t.noSessions}
          </p>
        )}
        {hits?.error && <Problem>{hits.error.message}</Problem>}
      </nav>
      <div className="side-foot">
        <Account />
        <FurtherPages />
        <Link
          className="button icon plain"
          href={face === "dev" ? (current ? `/c/${current}` : "/") : current ? `/dev/c/${current}` : "/dev"}
          aria-label={face === "dev" ? t.toUserFace : t.toDevFace}
          title={face === "dev" ? t.toUserFace : t.toDevFace}
        >
          {face === "dev" ? <Sparkles size={18} aria-hidden="true" /> : <Code size={18} aria-hidden="true" />}
        </Link>
      </div>
      {renaming && <Rename row={renaming} onClose={() => setRenaming(null)} />}
    </>
  );
}
