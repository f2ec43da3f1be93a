/** All landings, the newest first, each with what it changed, to be taken back (UI-31). */

import { ChevronDown, ChevronRight, History } from "lucide-react";
import { lazy, Suspense, useCallback, useEffect, useState } from "react";
import { api, ApiError } from "../api/client.ts";
import type { Landing, Refused } from "../api/types.ts";
import { Page } from "../app/page.tsx";
import { useFace } from "../app/place.tsx";
import { changedFiles, undoReason, type ChangedFile } from "../state/review.ts";
import { ago, count, moment } from "../state/words.ts";
import { seenName } from "../state/hidden_marks.ts";
import { t } from "../text.ts";
import { Empty, Loading, Problem } from "../ui/kit.tsx";
import { useMore } from "../ui/more.tsx";
import { complain, toast } from "../ui/toasts.tsx";

const ReadOnlyDiff = lazy(() => import("./read_only.tsx"));
const SHOWN = 6;

function useUndo(landing: Landing, onChange: () => void) {
  const [refused, setRefused] = useState<readonly Refused[]>([]);
  const [busy, setBusy] = useState(false);
  const undo = async (force: boolean): Promise<void> => {
    setBusy(true);
    try {
      await api.undo(landing.id, force);
      toast(t.undone);
      setRefused([]);
      onChange();
    } catch (error) {
      if (error instanceof ApiError && error.refused.length > 0) setRefused(error.refused);
      else complain(error);
    } finally {
      setBusy(false);
    }
  };
  return { refused, busy, undo };
}

function Changes({ landing }: { landing: Landing }) {
  const [files, setFiles] = useState<readonly ChangedFile[] | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  useEffect(() => {
    api.landingDiff(landing.id).then(
      (diff) => setFiles(changedFiles(diff, null)),
      (error: unknown) => setProblem(error instanceof Error ? error.message : String(error)),
    );
  }, [landing.id]);
  if (problem) return <Problem>{problem}</Problem>;
  if (!files) return <Loading label={t.loading} />;
  return (
    <div className="landing-diff">
      <Suspense fallback={<Loading label={t.loading} />}>
        <ReadOnlyDiff files={files} label={t.changesOf(landing.id)} />
      </Suspense>
    </div>
  );
}

function Row({ landing, onChange }: { landing: Landing; onChange: () => void }) {
  const face = useFace();
  const { refused, busy, undo } = useUndo(landing, onChange);
  const [open, setOpen] = useState(false);
  const files = landing.entries;
  const isUndo = landing.kind === "undo";
  const Chevron = open ? ChevronDown : ChevronRight;
  return (
    <li className="card landing-row" data-landing={landing.id}>
      <header>
        <span className={`badge ${isUndo ? "warn" : "ok"}`}>{isUndo ? t.takenBack : face === "dev" ? t.landedWord : t.keptWord}</span>
        <strong>{count(files.length, t.fileWord, t.filesWord)}</strong>
        <span className="muted" title={moment(landing.at)}>
          {ago(landing.at)}
        </span>
        {landing.actor && landing.actor !== "local" && <span className="muted">{landing.actor}</span>}
        {face === "dev" && <code className="muted wide-only">{landing.id}</code>}
        <span className="grow" />
        <button type="button" className="button small plain" aria-expanded={open} aria-label={t.changesOf(landing.id)} onClick={() => setOpen(!open)}>
          <Chevron size={15} aria-hidden="true" />
          <span className="roomy">{t.changes}</span>
        </button>
        {landing.state === "undone" ? (
          <span className="badge">{t.takenBack}</span>
        ) : (
          <button type="button" className="button small" disabled={busy} onClick={() => void undo(false)}>
            {t.undo}
          </button>
        )}
      </header>
      {!open && (
        <ul>
          {files.slice(0, SHOWN).map((file) => (
            <li key={file.path} className="clip" title={file.path}>
              <span className="op">{t.ops[file.op] ?? file.op}</span> {seenName(file.path.replace(/^\//, ""))}
            </li>
          ))}
          {files.length > SHOWN && <li>{t.andMore(files.length - SHOWN)}</li>}
        </ul>
      )}
      {refused.length > 0 && (
        <Problem
          tone="warn"
          actions={
            <button type="button" className="button small" disabled={busy} onClick={() => void undo(true)}>
              {t.undoAnyway}
            </button>
          }
        >
          <p>
            <strong>{t.undoRefused}</strong>
          </p>
          {refused.map((row) => (
            <p key={row.path}>
              <span className="mono">{seenName(row.path.replace(/^\//, ""))}</span> – {undoReason(row.reason)}
            </p>
          ))}
        </Problem>
      )}
      {open && <Changes landing={landing} />}
    </li>
  );
}

const PAGE = 100;

/** Ask for all landings, page by page. */
async function allLandings(): Promise<Landing[]> {
  const rows: Landing[] = [];
  for (let page = await api.landings(); ; page = await api.landingsAfter(page.at(-1)!.id)) {
    rows.push(...page);
    if (page.length < PAGE) return rows;
  }
}

export default function LandingsPage() {
  const face = useFace();
  const [rows, setRows] = useState<Landing[] | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const [shown, more] = useMore(rows ?? []);
  const load = useCallback((): void => {
    allLandings().then(setRows, (error: unknown) => setProblem(error instanceof Error ? error.message : String(error)));
  }, []);
  useEffect(load, [load]);
  return (
    <Page title={face === "dev" ? t.landings : t.keptChanges} problem={problem} ready={rows !== null}>
      {rows?.length === 0 && (
        <Empty icon={History} title={t.noLandings}>
          <p>{t.noLandingsText}</p>
        </Empty>
      )}
      {rows && rows.length > 0 && (
        <ul className="landings">
          {shown.map((landing) => (
            <Row key={landing.id} landing={landing} onChange={load} />
          ))}
        </ul>
      )}
      {more}
    </Page>
  );
}
