/** Several attempts at one task beside each other: checks, size, cost; take one whole, or files of several (UI-32). */

import { Check, FileDiff, FlaskConical, MessagesSquare, Trophy, TriangleAlert, X } from "lucide-react";
import { useCallback, useEffect, useMemo, useState } from "react";
import { useLocation } from "wouter";
import { api } from "../api/client.ts";
import type { CheckRow, Tournament } from "../api/types.ts";
import { Page } from "../app/page.tsx";
import { useLinks } from "../app/place.tsx";
import { merge, SubagentDialog } from "../chat/subagents.tsx";
import { useFacts, useLive } from "../chat/use_live.ts";
import { byAttempt, columnsOf, fileRows, heldByAgent, takeAll, tournamentCalls, type Column, type Composition } from "../state/attempts.ts";
import type { Entry } from "../state/entries.ts";
import type { PatchedDiff } from "../state/patch.ts";
import { dollars, seconds, short } from "../state/words.ts";
import { seenTitle } from "../state/hidden_marks.ts";
import { t } from "../text.ts";
import { Empty, Problem } from "../ui/kit.tsx";
import { complain, toast } from "../ui/toasts.tsx";
import { NewAttempts, SELF } from "./new_attempts.tsx";

const LOOK_MS = 1500;

/** The tournaments that were begun beside turns, the newest first; looked at again while one runs. */
function useTournaments(conversation: string): { rows: readonly Tournament[] | null; problem: string | null; look: () => void } {
  const [rows, setRows] = useState<readonly Tournament[] | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const [looks, setLooks] = useState(0);
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    let here = true;
    const look = (): void => {
      api.tournaments(conversation).then(
        (seen) => {
          if (!here) return;
          setRows(seen);
          setProblem(null);
          if (seen.some((row) => row.state === "running")) timer = setTimeout(look, LOOK_MS);
        },
        (error: unknown) => here && setProblem(error instanceof Error ? error.message : String(error)),
      );
    };
    look();
    return () => {
      here = false;
      clearTimeout(timer);
    };
  }, [conversation, looks]);
  return { rows, problem, look: useCallback(() => setLooks((count) => count + 1), []) };
}

/** Those that the agent held in its turns, as the results of its calls tell of them. */
function useHeld(conversation: string, entries: readonly Entry[]): readonly Tournament[] {
  const calls = useMemo(() => tournamentCalls(entries), [entries]);
  const key = calls.map((call) => call.key).join();
  const [held, setHeld] = useState<readonly Tournament[]>([]);
  useEffect(() => {
    let here = true;
    if (calls.length > 0) {
      api.subagents(conversation).then((rows) => here && setHeld(calls.flatMap((call) => heldByAgent(conversation, call, rows) ?? [])), complain);
    }
    return () => {
      here = false;
    };
    // The calls are the same as long as their keys are.
  }, [conversation, key]);
  return held;
}

/** What each attempt changed; asked for once it has ended. */
function useDiffs(conversation: string, tournament: Tournament): Readonly<Record<string, PatchedDiff | null>> {
  const [diffs, setDiffs] = useState<Readonly<Record<string, PatchedDiff | null>>>({});
  const ended = tournament.attempts.filter((attempt) => attempt.state !== "running" && attempt.state !== "discarded");
  const key = ended.map((attempt) => attempt.handle).join();
  useEffect(() => {
    let here = true;
    for (const handle of key.split(",").filter(Boolean)) {
      api.subagent(conversation, handle).then((whole) => here && setDiffs((old) => ({ ...old, [handle]: whole.diff })), complain);
    }
    return () => {
      here = false;
    };
  }, [conversation, key]);
  return diffs;
}

function Checks({ rows }: { rows: readonly CheckRow[] }) {
  return (
    <ul className="checks">
      {rows.map((row) => {
        const ok = row.exit_code === 0;
        return (
          <li key={row.command}>
            <details>
              <summary>
                {ok ? <Check size={14} className="state-ok" aria-label={t.passed} /> : <X size={14} className="state-error" aria-label={t.failed} />}
                <code className="clip">{row.command}</code>
                {row.baseline_failed && <span className="badge warn">{t.baselineFailed}</span>}
              </summary>
              <pre tabIndex={0}>{row.output_tail.trim() || t.saidNothing}</pre>
            </details>
          </li>
        );
      })}
    </ul>
  );
}

interface AttemptProps {
  column: Column;
  winner: boolean;
  busy: boolean;
  onTake: () => void;
  onLook: (what: "transcript" | "changes") => void;
}

function Attempt({ column: { handle, attempt, ranked }, winner, busy, onTake, onLook }: AttemptProps) {
  const cost = ranked ? ranked.cost : (attempt.usage as { cost?: number | null }).cost;
  return (
    <article className={`card attempt ${winner ? "winner" : ""}`} aria-label={handle}>
      <header>
        {winner ? <Trophy size={16} aria-label={t.winner} /> : <FlaskConical size={16} aria-hidden="true" />}
        <strong>{ranked ? t.rank(ranked.rank) : handle}</strong>
        {ranked && <code className="muted">{handle}</code>}
        {attempt.agent !== SELF && <code className="clip">{attempt.agent}</code>}
        <span className={`badge ${attempt.state === "running" ? "accent" : ranked?.failed === 0 && ranked.status === "completed" ? "ok" : attempt.state === "failed" ? "danger" : ""}`}>
          {ranked ? t.checksPassed(ranked.passed, ranked.passed + ranked.failed) : t.subagentStates[attempt.state as "running"]}
        </span>
      </header>
      <p className="muted mono clip" title={t.model}>
        {attempt.model || t.usualModel}
      </p>
      {ranked && (
        <>
          <dl className="facts">
            <dt>{t.size}</dt>
            <dd>
              {t.manyFiles(ranked.files)}, <span className="counts"><span className="plus">+{ranked.added}</span> <span className="minus">−{ranked.removed}</span></span>
            </dd>
            <dt>{t.cost}</dt>
            <dd>{dollars(cost)}</dd>
            <dt>{t.tokensWord}</dt>
            <dd>{short(ranked.tokens)}</dd>
            <dt>{t.time}</dt>
            <dd>{seconds(ranked.seconds * 1000)}</dd>
          </dl>
          <Checks rows={ranked.checks} />
        </>
      )}
      {ranked?.touched_checks && (
        <p className="note">
          <TriangleAlert size={14} aria-hidden="true" />
          <span>{t.touchedChecks}</span>
        </p>
      )}
      {(ranked?.error ?? attempt.error) && <Problem>{ranked?.error ?? attempt.error}</Problem>}
      <div className="actions">
        <button type="button" className="button small plain" onClick={() => onLook("changes")}>
          <FileDiff size={14} aria-hidden="true" />
          {t.changes}
        </button>
        <button type="button" className="button small plain" onClick={() => onLook("transcript")}>
          <MessagesSquare size={14} aria-hidden="true" />
          {t.transcript}
        </button>
        <span className="grow" />
        {attempt.state !== "running" && attempt.state !== "discarded" && (
          <button type="button" className={`button small ${winner ? "primary" : ""}`} disabled={busy} onClick={onTake}>
            {t.takeThis}
          </button>
        )}
      </div>
    </article>
  );
}

/** Which attempt each file is taken from. */
function Compose({ columns, diffs, value, onChange }: { columns: readonly Column[]; diffs: ReturnType<typeof useDiffs>; value: Composition; onChange: (next: Composition) => void }) {
  const rows = useMemo(() => fileRows(diffs), [diffs]);
  if (rows.length === 0) return null;
  const set = (path: string, handle: string | null): void => {
    const { [path]: _, ...others } = value;
    onChange(handle ? { ...others, [path]: handle } : others);
  };
  return (
    <div className="card table-scroll" tabIndex={0} role="region" aria-label={t.composeFiles}>
      <table className="plain compose">
        <thead>
          <tr>
            <th scope="col">{t.file}</th>
            <th scope="col">{t.notTaken}</th>
            {columns.map((column) => (
              <th key={column.handle} scope="col">
                <button type="button" className="button small plain" onClick={() => onChange(takeAll(rows, column.handle))}>
                  {t.allOf(column.ranked ? t.rank(column.ranked.rank) : column.handle)}
                </button>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row.path}>
              <th scope="row" className="mono clip" title={row.path}>
                {row.path.slice(1)}
              </th>
              <td>
                <label className="check">
                  <input type="radio" name={row.path} aria-label={t.takeNone(row.path)} checked={!value[row.path]} onChange={() => set(row.path, null)} />
                </label>
              </td>
              {columns.map(({ handle }) => {
                const cell = row.cells[handle];
                return (
                  <td key={handle}>
                    {cell && (
                      <label className="check">
                        <input type="radio" name={row.path} aria-label={t.takeFrom(row.path, handle)} checked={value[row.path] === handle} onChange={() => set(row.path, handle)} />
                        <span className="counts">
                          {cell.deleted ? (
                            <span className="minus">{t.deletedShort}</span>
                          ) : (
                            <>
                              <span className="plus">+{cell.added}</span> <span className="minus">−{cell.removed}</span>
                            </>
                          )}
                        </span>
                      </label>
                    )}
                  </td>
                );
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Shown({ conversation, found }: { conversation: string; found: Tournament }) {
  const links = useLinks();
  const [, go] = useLocation();
  const diffs = useDiffs(conversation, found);
  const [composition, setComposition] = useState<Composition>({});
  const [busy, setBusy] = useState(false);
  const [look, setLook] = useState<{ handle: string; what: "transcript" | "changes" } | null>(null);
  const take = async (parts: ReadonlyMap<string, string[] | undefined>): Promise<void> => {
    setBusy(true);
    try {
      for (const [handle, paths] of parts) toast(await merge(conversation, handle, paths));
      go(links.review(conversation));
    } catch (error) {
      complain(error);
    } finally {
      setBusy(false);
    }
  };
  const columns = columnsOf(found);
  const chosen = Object.keys(composition).length;
  return (
    <section className="tournament" data-tournament={found.id}>
      <h2 className="section-title">
        <span className="clip-2">{found.task}</span>
        <span className={`badge ${found.state === "running" ? "accent" : found.state === "failed" ? "danger" : "ok"}`}>{t.tournamentStates[found.state] ?? found.state}</span>
      </h2>
      {found.error && <Problem>{found.error}</Problem>}
      {found.note && <Problem tone="info">{found.note}</Problem>}
      {found.state === "finished" && !found.winner && <Problem tone="warn">{t.noWinner}</Problem>}
      <div className="attempts">
        {columns.map((column) => (
          <Attempt
            key={column.handle}
            column={column}
            winner={column.handle === found.winner}
            busy={busy || found.state === "running"}
            onTake={() => void take(new Map([[column.handle, undefined]]))}
            onLook={(what) => setLook({ handle: column.handle, what })}
          />
        ))}
      </div>
      {found.state !== "running" && columns.length > 0 && (
        <>
          <Compose columns={columns} diffs={diffs} value={composition} onChange={setComposition} />
          {chosen > 0 && (
            <div className="actions">
              <button type="button" className="button primary" disabled={busy} onClick={() => void take(byAttempt(composition))}>
                {t.takeFiles(chosen)}
              </button>
            </div>
          )}
        </>
      )}
      {look && <SubagentDialog conversation={conversation} handle={look.handle} begin={look.what} onClose={() => setLook(null)} />}
    </section>
  );
}

export default function AttemptsPage({ id }: { id: string }) {
  const links = useLinks();
  const { state } = useLive(id);
  const facts = useFacts(id, 0);
  const { rows, problem, look } = useTournaments(id);
  const held = useHeld(id, state.entries);
  const [asking, setAsking] = useState(false);
  const begun = useCallback((): void => {
    look();
    setAsking(false);
  }, [look]);
  return (
    <Page
      wide
      title={t.attemptsOf(seenTitle(facts?.title))}
      problem={problem}
      ready={rows !== null}
      back={{ href: links.chat(id), label: t.toChat }}
      actions={
        <button type="button" className="button primary" onClick={() => setAsking(true)}>
          {t.newAttempts}
        </button>
      }
    >
      {rows?.length === 0 && held.length === 0 && (
        <Empty icon={FlaskConical} title={t.noAttempts}>
          <p>{t.noAttemptsText}</p>
        </Empty>
      )}
      {[...(rows ?? []), ...held].map((found) => (
        <Shown key={found.id} conversation={id} found={found} />
      ))}
      {asking && <NewAttempts conversation={id} onBegun={begun} onClose={() => setAsking(false)} />}
    </Page>
  );
}
