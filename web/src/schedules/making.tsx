/** The dialogue that makes a scheduled task. */

import { useState } from "react";
import { useFace } from "../app/place.tsx";
import { cronOf } from "../state/schedules.ts";
import { t } from "../text.ts";
import { Dialog, Problem } from "../ui/kit.tsx";
import { schedules, type NewSchedule } from "./calls.ts";

const KINDS = ["daily", "weekdays", "interval", "once", "cron"] as const;
const CATCH_UPS = ["one", "skip", "all"] as const;
type Kind = (typeof KINDS)[number];

const INPUTS: Record<Kind, string> = { daily: "time", weekdays: "time", interval: "number", once: "datetime-local", cron: "text" };
const LABELS: Record<Kind, string> = { daily: t.atTime, weekdays: t.atTime, interval: t.secondsBetween, once: t.timeOfRun, cron: t.cronLine };
const FIRST: Record<Kind, string> = { daily: "08:00", weekdays: "08:00", interval: "3600", once: "", cron: "0 8 * * *" };

/** The type and the value that the server knows. */
function timing(kind: Kind, value: string): { type: string; value: string } {
  if (kind === "daily" || kind === "weekdays") return { type: "cron", value: cronOf({ time: value, weekdays: kind === "weekdays" }) };
  return { type: kind, value };
}

const here = (): string => Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";

function Value({ kind, value, onChange }: { kind: Kind; value: string; onChange: (value: string) => void }) {
  const hint = kind === "cron" ? t.cronHint : kind === "interval" ? t.intervalHint : null;
  return (
    <label className="field">
      <span>{LABELS[kind]}</span>
      <input
        className={`input ${kind === "cron" ? "mono" : ""}`}
        type={INPUTS[kind]}
        min={kind === "interval" ? 1 : undefined}
        required
        value={value}
        onChange={(event) => onChange(event.target.value)}
      />
      {hint && <span className="muted">{hint}</span>}
    </label>
  );
}

export function MakeSchedule({ onDone, onClose }: { onDone: () => void; onClose: () => void }) {
  const face = useFace();
  const [prompt, setPrompt] = useState("");
  const [kind, setKind] = useState<Kind>("daily");
  const [values, setValues] = useState(FIRST);
  const [zone, setZone] = useState(here);
  const [catchUp, setCatchUp] = useState<(typeof CATCH_UPS)[number]>("one");
  const [tier, setTier] = useState("");
  const [problem, setProblem] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);
  const make = (): void => {
    const wanted: NewSchedule = { prompt, ...timing(kind, values[kind]), tz: zone || null, catch_up: catchUp, model_tier: tier.trim() || null };
    setBusy(true);
    schedules.add(wanted).then(onDone, (error: unknown) => {
      setBusy(false);
      setProblem(error instanceof Error ? error.message : String(error));
    });
  };
  return (
    <Dialog
      title={t.newSchedule}
      onClose={onClose}
      foot={
        <>
          <button type="button" className="button" onClick={onClose}>
            {t.cancel}
          </button>
          <button type="button" className="button primary" disabled={busy || !prompt.trim() || !values[kind].trim()} onClick={make}>
            {t.make}
          </button>
        </>
      }
    >
      {problem && <Problem>{problem}</Problem>}
      <label className="field">
        <span>{t.whatToDo}</span>
        <textarea className="input" rows={4} maxLength={10_000} autoFocus value={prompt} onChange={(event) => setPrompt(event.target.value)} />
        <span className="muted">{t.whatToDoHint}</span>
      </label>
      <label className="field">
        <span>{t.when}</span>
        <select className="input" value={kind} onChange={(event) => setKind(event.target.value as Kind)}>
          {KINDS.map((each) => (
            <option key={each} value={each}>
              {t.scheduleTypes[each]}
            </option>
          ))}
        </select>
      </label>
      <Value kind={kind} value={values[kind]} onChange={(value) => setValues({ ...values, [kind]: value })} />
      {kind !== "interval" && (
        <label className="field">
          <span>{t.timeZone}</span>
          <input className="input" value={zone} onChange={(event) => setZone(event.target.value)} />
        </label>
      )}
      {face === "dev" && (
        <>
          {kind !== "once" && (
            <label className="field">
              <span>{t.missedRuns}</span>
              <select className="input" value={catchUp} onChange={(event) => setCatchUp(event.target.value as typeof catchUp)}>
                {CATCH_UPS.map((each) => (
                  <option key={each} value={each}>
                    {t.catchUps[each]}
                  </option>
                ))}
              </select>
            </label>
          )}
          <label className="field">
            <span>{t.tierOfModel}</span>
            <input className="input" value={tier} onChange={(event) => setTier(event.target.value)} />
            <span className="muted">{t.tierHint}</span>
          </label>
        </>
      )}
    </Dialog>
  );
}
