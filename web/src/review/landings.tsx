/** All landings, the newest first, each to be taken back (UI-31). */

import { History } from "lucide-react";
import { useCallback, useEffect, useState } from "react";
import { api, ApiError } from "../api/client.ts";
import type { Landing, Refused } from "../api/types.ts";
import { SidebarButton } from "../app/shell.tsx";
import { refusalReason } from "../state/review.ts";
import { ago, count, moment } from "../state/words.ts";
import { t } from "../text.ts";
import { Empty, Loading, Problem } from "../ui/kit.tsx";
import { complain, toast } from "../ui/toasts.tsx";

const SHOWN = 8;

function Row({ landing, onChange }: { landing: Landing; onChange: () => void }) {
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
  const files = landing.entries;
  return (
    <li className="card landing-row">
      <header>
        <span className={`badge ${landing.kind === "undo" ? "warn" : "ok"}`}>{landing.kind === "undo" ? t.takenBack : t.landedWord}</span>
        <strong>{count(files.length, t.fileWord, t.filesWord)}</strong>
        <span className="muted" title={moment(landing.at)}>
          {ago(landing.at)}
        </span>
        <code className="muted">{landing.id}</code>
        <span className="grow" />
        {landing.state === "undone" ? (
          <span className="badge">{t.takenBack}</span>
        ) : (
          <button type="button" className="button small" disabled={busy} onClick={() => void undo(false)}>
            {t.undo}
          </button>
        )}
      </header>
      <ul>
        {files.slice(0, SHOWN).map((file) => (
          <li key={file.path}>
            {t.ops[file.op] ?? file.op} {file.path.replace(/^\//, "")}
          </li>
        ))}
        {files.length > SHOWN && <li>{t.andMore(files.length - SHOWN)}</li>}
      </ul>
      {refused.length > 0 && (
        <Problem
          tone="warn"
          actions={
            <button type="button" className="button small" onClick={() => void undo(true)}>
              {t.undoAnyway}
            </button>
          }
        >
          <p>
            <strong>{t.undoRefused}</strong>
          </p>
          {refused.map((row) => (
            <p key={row.path}>
              <span className="mono">{row.path.replace(/^\//, "")}</span> – {refusalReason(row.reason)}
            </p>
          ))}
        </Problem>
      )}
    </li>
  );
}

export default function LandingsPage() {
  const [rows, setRows] = useState<Landing[] | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const load = useCallback((): void => {
    api.landings().then(setRows, (error: unknown) => setProblem(error instanceof Error ? error.message : String(error)));
  }, []);
  useEffect(load, [load]);
  return (
    <>
      <header className="head">
        <SidebarButton />
        <div className="head-title">
          <h1>{t.landings}</h1>
        </div>
      </header>
      <div className="page" tabIndex={0}>
        <div className="page-inner">
          {problem && <Problem>{problem}</Problem>}
          {rows === null && !problem && <Loading label={t.loading} />}
          {rows?.length === 0 && (
            <Empty icon={History} title={t.noLandings}>
              <p>{t.noLandingsText}</p>
            </Empty>
          )}
          {rows && rows.length > 0 && (
            <ul style={{ display: "grid", gap: "0.75rem" }}>
              {rows.map((landing) => (
                <Row key={landing.id} landing={landing} onChange={load} />
              ))}
            </ul>
          )}
        </div>
      </div>
    </>
  );
}
