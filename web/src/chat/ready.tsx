/** “Changes ready” in the user face: what changed, Keep or Discard, details (UI-14). */

import { FilePen, FilePlus, FileX, PackageCheck, ShieldAlert, TriangleAlert } from "lucide-react";
import { lazy, Suspense, useCallback, useEffect, useRef, useState } from "react";
import { Link } from "wouter";
import { api, ApiError } from "../api/client.ts";
import type { Landing, LandingPlan, Refused } from "../api/types.ts";
import { useLinks } from "../app/place.tsx";
import { changedFiles, gravestFirst, isByItself, isLandedAlready, markReasons, pathsOf, refusalReason, seenOf, type ChangedFile } from "../state/review.ts";
import { count } from "../state/words.ts";
import { seenName } from "../state/hidden_marks.ts";
import { t } from "../text.ts";
import { Dialog, Loading, Problem } from "../ui/kit.tsx";
import { complain, toast } from "../ui/toasts.tsx";

const ReadOnlyDiff = lazy(() => import("../review/read_only.tsx"));

const ICONS = { create: FilePlus, modify: FilePen, delete: FileX, rename: FilePen };
const SHOWN = 6;

export function ReadyCard({ conversation, version, running }: { conversation: string; version: number; running: boolean }) {
  const links = useLinks();
  const [files, setFiles] = useState<readonly ChangedFile[]>([]);
  const [drawn, setDrawn] = useState<LandingPlan | null>(null);
  const [landing, setLanding] = useState<Landing | null>(null);
  const [refused, setRefused] = useState<readonly Refused[]>([]);
  const [busy, setBusy] = useState(false);
  const [asking, setAsking] = useState(false);
  const [looking, setLooking] = useState<ChangedFile | null>(null);
  const asked = useRef(0);
  const load = useCallback(async (): Promise<void> => {
    const mine = (asked.current += 1);
    try {
      const { diff, plan } = await api.review(conversation);
      if (mine !== asked.current) return; // a later look answers
      setFiles(gravestFirst(changedFiles(diff, plan)));
      setDrawn(plan);
    } catch (error) {
      complain(error);
    }
  }, [conversation]);
  useEffect(() => {
    void load();
    return () => {
      asked.current += 1;
    };
  }, [load, version]);
  const work = async (todo: () => Promise<void>): Promise<void> => {
    setBusy(true);
    setRefused([]);
    try {
      await todo();
    } catch (error) {
      if (error instanceof ApiError && isLandedAlready(error)) toast(t.keptElsewhere);
      else if (error instanceof ApiError && error.refused.length > 0) setRefused(error.refused);
      else complain(error);
    } finally {
      await load(); // whatever came of it, what is drawn is what there is now
      setBusy(false);
    }
  };
  const ordinary = files.filter((file) => !isByItself(file));
  const red = files.length - ordinary.length;
  const marked = ordinary.filter((file) => file.isMarked).length;
  const keep = (): Promise<void> =>
    work(async () => {
      const paths = ordinary.flatMap(pathsOf);
      if (drawn) setLanding(await api.land(conversation, { paths, seen: seenOf(drawn, paths) }));
    });
  const undo = (): Promise<void> =>
    work(async () => {
      if (landing) await api.undo(landing.id);
      setLanding(null);
    });
  const discard = (): Promise<void> =>
    work(async () => {
      setAsking(false);
      await api.discard(conversation);
      setFiles([]);
    });
  if (files.length === 0 && !landing) return null;
  return (
    <section className="card pad ready-card" aria-label={t.changesReady}>
      <h2>
        <PackageCheck size={18} aria-hidden="true" style={{ verticalAlign: "-3px", marginRight: 8 }} />
        {landing && files.length === 0 ? t.kept(landing.entries.length) : t.changesReady}
      </h2>
      {files.length > 0 && (
        <ul>
          {files.slice(0, SHOWN).map((file) => {
            const Icon = isByItself(file) ? TriangleAlert : file.isMarked ? ShieldAlert : ICONS[file.kind];
            return (
              <li key={file.path}>
                <Icon size={15} aria-hidden="true" />
                <button type="button" className="name clip" title={t.beforeAfter} onClick={() => setLooking(file)}>
                  {seenName(file.path.slice(1))}
                </button>
                <span className="muted">{isByItself(file) ? t.needsLook : file.isMarked ? t.isMarked(t.kinds[file.kind]) : t.kinds[file.kind]}</span>
              </li>
            );
          })}
          {files.length > SHOWN && <li className="muted">{t.andMore(files.length - SHOWN)}</li>}
        </ul>
      )}
      {marked > 0 && (
        <p className="muted">
          {t.markedKept(marked)} {markReasons(files).join(" ")}
        </p>
      )}
      {red > 0 && <p className="muted">{t.redLeftOut(red)}</p>}
      {refused.length > 0 && (
        <Problem tone="warn">
          {refused.map((row) => (
            <p key={row.path}>
              <strong>{seenName(row.path.slice(1))}</strong>: {refusalReason(row.reason)}
            </p>
          ))}
        </Problem>
      )}
      <div className="actions">
        {ordinary.length > 0 && (
          <button type="button" className="button primary" disabled={busy || running} onClick={() => void keep()}>
            {t.keep(count(ordinary.length, t.fileWord, t.filesWord))}
          </button>
        )}
        {landing && (
          <button type="button" className="button" disabled={busy} onClick={() => void undo()}>
            {t.undo}
          </button>
        )}
        {files.length > 0 && (
          <>
            <Link className="button" href={links.review(conversation)}>
              {t.lookCloser}
            </Link>
            <button type="button" className="button plain danger" disabled={busy || running} onClick={() => setAsking(true)}>
              {t.discard}
            </button>
          </>
        )}
      </div>
      {looking && (
        <Dialog wide title={seenName(looking.path.slice(1))} onClose={() => setLooking(null)}>
          <div className="dialog-diff">
            <Suspense fallback={<Loading label={t.loading} />}>
              <ReadOnlyDiff files={[looking]} label={t.beforeAfter} sideBySide />
            </Suspense>
          </div>
        </Dialog>
      )}
      {asking && (
        <Dialog
          title={t.discardAll}
          onClose={() => setAsking(false)}
          foot={
            <>
              <button type="button" className="button" onClick={() => setAsking(false)}>
                {t.cancel}
              </button>
              <button type="button" className="button primary" onClick={() => void discard()}>
                {t.discard}
              </button>
            </>
          }
        >
          <p>{t.discardText(files.length)}</p>
        </Dialog>
      )}
    </section>
  );
}
