/** What will land, and what a landing answered: done with Undo, refused with reasons, moved meanwhile (UI-27, UI-30). */

import { useEffect, useRef, useState } from "react";
import type { LandingProgress } from "../api/frames.ts";
import type { Landing, Refused } from "../api/types.ts";
import { useFace } from "../app/place.tsx";
import { pathsOf, refusalReason, summary, type ChangedFile } from "../state/review.ts";
import { seenName } from "../state/hidden_marks.ts";
import { count } from "../state/words.ts";
import { t } from "../text.ts";
import { Dialog, Problem } from "../ui/kit.tsx";
import { LandingCheckPart } from "./check.tsx";
import type { Review } from "./use_review.ts";

interface BarProps {
  conversation: string;
  review: Review;
  files: readonly ChangedFile[];
  drafts: number;
  /** Comments that are not resolved, drafts too. */
  open: number;
  running: boolean;
  landing: LandingProgress | null;
  viewed: number;
  onSendComments: () => void;
}

/** How far a landing or an undo of many files is, whoever asked for it (reliability 7). */
export function HowFar({ landing }: { landing: LandingProgress | null }) {
  const face = useFace();
  if (!landing) return null;
  const what = landing.kind === "undo" ? t.takingBackNow : face === "dev" ? t.landingNow : t.keepingNow;
  const words = t.howFar(what, t.landingPhases[landing.phase] ?? landing.phase, landing.done, landing.total);
  return (
    <p className="how-far" role="status" data-testid="how-far">
      <progress max={landing.total} value={landing.done} aria-label={what} /> {words}
    </p>
  );
}

/** Whether what lands is a commit, too (UI-78). */
function CommitPart({ review }: { review: Review }) {
  const { commit, setCommit } = review;
  if (!commit) return null;
  return (
    <div className="land-commit">
      <label className="check">
        <input type="checkbox" checked={commit.wanted} onChange={() => setCommit({ ...commit, wanted: !commit.wanted })} />
        {t.asCommit}
      </label>
      {commit.wanted && (
        <>
          <input
            className="input"
            aria-label={t.commitMessage}
            placeholder={t.commitMessageHint}
            value={commit.message}
            onChange={(event) => setCommit({ ...commit, message: event.target.value })}
          />
          <input
            className="input mono"
            aria-label={t.commitBranch}
            placeholder={t.commitBranchHint}
            title={t.commitBranchText}
            value={commit.branch}
            onChange={(event) => setCommit({ ...commit, branch: event.target.value })}
          />
        </>
      )}
    </div>
  );
}

export function LandBar({ conversation, review, files, drafts, open, running, landing, viewed, onSendComments }: BarProps) {
  const face = useFace();
  const [asking, setAsking] = useState(false);
  const chosen = summary(files, review.choice);
  const more = review.beside.include.length + review.beside.settings.length;
  const chosenPaths = files.filter((file) => review.choice[file.path] !== undefined).flatMap(pathsOf);
  return (
    <footer className="land-bar">
      <HowFar landing={landing} />
      <p className="what" data-testid="land-summary">
        <b>{t.willLand(chosen.files, chosen.of)}</b>
        {chosen.hunks > 0 && `, ${(face === "dev" ? count(chosen.hunks, t.hunk, t.hunks) : count(chosen.hunks, t.place, t.places))}`}
        {chosen.red > 0 && <span className="badge danger" style={{ marginLeft: 8 }}>{t.redChosen(chosen.red)}</span>}
        {more > 0 && `, ${t.andBeside([...review.beside.include, ...review.beside.settings].map((path) => path.slice(1)).join(", "))}`}
        {viewed > 0 && <span className="muted"> – {t.viewedOf(viewed, files.length)}</span>}
        {running && <span className="muted"> – {t.stillWorking}</span>}
      </p>
      {face === "dev" && <CommitPart review={review} />}
      <LandingCheckPart conversation={conversation} plan={review.plan} />
      {open > drafts && <span className="badge">{t.openComments(open)}</span>}
      {drafts > 0 && (
        <button type="button" className="button" onClick={onSendComments}>
          {t.sendComments(drafts)}
        </button>
      )}
      <button type="button" className="button danger" disabled={review.busy || running || files.length === 0} onClick={() => setAsking(true)}>
        {t.discard}
      </button>
      <button type="button" className="button primary" disabled={review.busy || chosen.files + more === 0} onClick={() => void review.land()}>
        {face === "dev" ? (review.commit?.wanted && review.commit.branch.trim() ? t.commitOnly(chosen.files) : t.land(chosen.files)) : chosen.files === 0 ? t.keepNothing : t.keep(count(chosen.files, t.fileWord, t.filesWord))}
      </button>
      {asking && (
        <Dialog
          title={t.discardAll}
          onClose={() => setAsking(false)}
          foot={
            <>
              <button type="button" className="button" onClick={() => setAsking(false)}>
                {t.cancel}
              </button>
              {chosen.files > 0 && chosen.files < files.length && (
                <button
                  type="button"
                  className="button"
                  onClick={() => {
                    setAsking(false);
                    void review.discard(chosenPaths);
                  }}
                >
                  {t.discardChosen(chosen.files)}
                </button>
              )}
              <button
                type="button"
                className="button primary"
                onClick={() => {
                  setAsking(false);
                  void review.discard();
                }}
              >
                {t.discardEverything}
              </button>
            </>
          }
        >
          <p>{t.discardText(files.length)}</p>
        </Dialog>
      )}
    </footer>
  );
}

/** What a landing says of git: refs that did not follow, with ways to bring them in, and what was left out (GI-3, GI-6). */
function LandedHistory({ landed }: { landed: Landing }) {
  const refs = (landed.history ?? []).flatMap((one) => one.refs.filter((ref) => ref.state !== "moved"));
  const notes = (landed.history ?? []).flatMap((one) => [...one.troubles, ...one.notes]);
  const made = (landed.history ?? []).flatMap((one) => (one.commit ? [one.commit] : []));
  if (refs.length + notes.length + made.length === 0) return null;
  return (
    <ul data-testid="landed-history">
      {made.map((one) => (
        <li key={one.branch}>
          {one.id ? t.committedOn(one.branch) : t.notCommitted(one.said)} {one.id && <code>{one.id.slice(0, 12)}</code>} {one.subject}
          {one.notes.map((note) => (
            <div key={note} className="muted">
              {note}
            </div>
          ))}
        </li>
      ))}
      {refs.map((ref) => (
        <li key={ref.kept_as}>
          <span className="mono">{ref.kept_as}</span>
          {ref.said && `: ${ref.said}`}
          {ref.commands.length > 0 && <> {t.bringIn} <code>{ref.commands[0]}</code></>}
        </li>
      ))}
      {notes.map((note) => (
        <li key={note}>{note}</li>
      ))}
    </ul>
  );
}

export function Outcome({ review, onDecide }: { review: Review; onDecide: (refused: Refused) => void }) {
  const face = useFace();
  const { landed, refused, moved, busy } = review;
  const told = useRef<HTMLDivElement>(null);
  // The button that was pressed can be pressed no more: the focus goes to what came of it, not back to the page's top.
  useEffect(() => {
    const at = document.activeElement;
    const isLost = at === null || at === document.body || (at instanceof HTMLButtonElement && at.disabled);
    if (!busy && isLost) told.current?.focus({ preventScroll: true });
  }, [landed, refused, moved, busy]);
  if (!landed && refused.length === 0 && moved.length === 0) return null;
  return (
    <div ref={told} className="outcome" data-testid="outcome" tabIndex={-1} role="group" aria-label={t.outcome}>
      {moved.length > 0 && (
        <Problem tone="warn">
          <p>
            <strong>{face === "dev" ? t.movedTitle : t.notKeptYet}</strong> {face === "dev" ? t.movedText : t.movedTextPlain}
          </p>
          <p className="mono">{moved.map((path) => path.slice(1)).join(", ")}</p>
        </Problem>
      )}
      {refused.length > 0 && (
        <Problem
          tone="warn"
          actions={
            landed && (
              <button type="button" className="button small" onClick={() => void review.undo(true)}>
                {t.undoAnyway}
              </button>
            )
          }
        >
          <p>
            <strong>{landed ? t.undoRefused : face === "dev" ? t.nothingLanded : t.nothingKept}</strong>
          </p>
          <ul>
            {refused.map((row) => (
              <li key={row.path} style={{ display: "flex", alignItems: "center", gap: "0.6rem", marginTop: "0.3rem" }}>
                <span className="grow">
                  <span className="mono">{seenName(row.path.replace(/^\//, ""))}</span> – {refusalReason(row.reason)}
                </span>
                {!landed && row.reason !== "unchanged" && (
                  <button type="button" className="button small" onClick={() => onDecide(row)}>
                    {t.resolve}
                  </button>
                )}
              </li>
            ))}
          </ul>
        </Problem>
      )}
      {landed && refused.length === 0 && (
        <Problem
          tone="info"
          actions={
            landed.kind !== "commit" && (
              <button type="button" className="button small" disabled={review.busy} onClick={() => void review.undo()}>
                {t.undo}
              </button>
            )
          }
        >
          <p>
            {landed.kind === "commit" ? t.onlyCommitted : face === "dev" ? t.landedText(landed.entries.length) : t.keptText(landed.entries.length)} {face === "dev" && landed.kind !== "commit" && <code>{landed.id}</code>}
          </p>
          <LandedHistory landed={landed} />
        </Problem>
      )}
    </div>
  );
}
