/** The check before landing: asked for here, its result beside what will land (UI-27). Not here: what it runs. */

import { CircleCheck, CircleX, LoaderCircle, TriangleAlert } from "lucide-react";
import { useCallback, useEffect, useState } from "react";
import { api } from "../api/client.ts";
import type { LandingCheck } from "../api/types.ts";
import { seconds } from "../state/words.ts";
import { t } from "../text.ts";
import { Dialog } from "../ui/kit.tsx";
import { complain } from "../ui/toasts.tsx";

const LOOK_MS = 700;

/** What was found, looked at again while it runs and whenever the landing plan is another one. */
function useCheck(conversation: string, plan: string | null): { found: LandingCheck | null; begin: () => void } {
  const [found, setFound] = useState<LandingCheck | null>(null);
  const [looks, setLooks] = useState(0);
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    let here = true;
    const look = (): void => {
      api.check(conversation).then(
        (seen) => {
          if (!here) return;
          setFound(seen);
          if (seen.state === "running") timer = setTimeout(look, LOOK_MS);
        },
        () => undefined, // the review itself says what is wrong
      );
    };
    look();
    return () => {
      here = false;
      clearTimeout(timer);
    };
  }, [conversation, plan, looks]);
  const begin = useCallback((): void => {
    api.beginCheck(conversation).then((seen) => {
      setFound(seen);
      setLooks((count) => count + 1);
    }, complain);
  }, [conversation]);
  return { found, begin };
}

/** Whether the check passed, in one word and a colour; its output on demand. */
function Result({ found, old }: { found: LandingCheck; old: boolean }) {
  const [open, setOpen] = useState(false);
  const [Icon, words, tone] =
    found.state === "passed"
      ? ([CircleCheck, t.checkPassed, "ok"] as const)
      : found.state === "failed"
        ? ([CircleX, t.checkFailed, "danger"] as const)
        : ([TriangleAlert, t.checkUnable, "warn"] as const);
  return (
    <>
      <button type="button" className={`badge ${old ? "" : tone}`} title={t.checkOutput} onClick={() => setOpen(true)}>
        <Icon size={14} aria-hidden="true" />
        {words}
        {found.seconds !== null && ` · ${seconds(found.seconds * 1000)}`}
      </button>
      {old && <span className="muted">{t.checkOld}</span>}
      {open && (
        <Dialog title={words} wide onClose={() => setOpen(false)}>
          <p>
            <code>{found.command}</code>
          </p>
          {found.exit_code !== null && <p className="muted">{t.checkExit(found.exit_code, seconds((found.seconds ?? 0) * 1000))}</p>}
          {found.error && <p>{found.error}</p>}
          {found.exit_code !== null && (
            <pre className="check-output" tabIndex={0} aria-label={t.checkOutput}>
              {found.output_tail.trim() || t.saidNothing}
            </pre>
          )}
        </Dialog>
      )}
    </>
  );
}

/** Nothing where no check is configured. */
export function LandingCheckPart({ conversation, plan }: { conversation: string; plan: string | null }) {
  const { found, begin } = useCheck(conversation, plan);
  if (!found?.command) return null;
  const runs = found.state === "running";
  const old = found.plan !== null && found.plan !== plan;
  return (
    <span className="landing-check" data-testid="landing-check" role="status">
      {runs && (
        <span className="at-work">
          <LoaderCircle size={14} className="spin state-running" aria-hidden="true" />
          {t.checkRuns}
        </span>
      )}
      {!runs && found.state !== "none" && <Result found={found} old={old} />}
      {!runs && (
        <button type="button" className="button small" title={t.checkHint(found.command)} onClick={begin}>
          {found.state === "none" ? t.check : t.checkAgain}
        </button>
      )}
    </span>
  );
}
