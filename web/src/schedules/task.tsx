/** One scheduled task: when it runs, how it went, and what can be done with it. */

import { Ban, CirclePause, CirclePlay, MessageSquare, Play } from "lucide-react";
import { useEffect, useState } from "react";
import { Link } from "wouter";
import { useFace, useLinks } from "../app/place.tsx";
import { dailyOf, lineOf } from "../state/schedules.ts";
import { ago, dollars, moment, seconds } from "../state/words.ts";
import { t } from "../text.ts";
import { Dialog } from "../ui/kit.tsx";
import { complain, toast } from "../ui/toasts.tsx";
import { schedules, type Schedule, type ScheduleRun } from "./calls.ts";

const RUNS_SHOWN = 10;
const RUNS_FOR_USERS = 3;

function words(task: Schedule): string {
  if (task.type === "interval") return t.every(Number(task.value));
  if (task.type === "once") return moment(task.next_run ?? task.value);
  const daily = dailyOf(task.value);
  const said = !daily ? task.value : daily.weekdays ? t.everyWeekdayAt(daily.time) : t.everyDayAt(daily.time);
  return `${said} (${task.tz ?? "UTC"})`;
}

function took(run: ScheduleRun): string {
  return run.ended_at ? seconds(new Date(run.ended_at).getTime() - new Date(run.started_at).getTime()) : "";
}

function tone(status: string | null): string {
  if (!status) return "";
  return status === "done" ? "ok" : status === "running" || status === "cancelled" ? "" : "bad";
}

function Runs({ rows, detailed }: { rows: readonly ScheduleRun[]; detailed: boolean }) {
  if (rows.length === 0) return <p className="muted">{t.noRuns}</p>;
  const heads = detailed ? [t.due, t.outcome, t.took, t.cost] : [t.due, t.outcome];
  return (
    <div className="table-scroll" tabIndex={0} role="region" aria-label={t.lastRuns}>
      <table className="plain left">
        <thead>
          <tr>
            {heads.map((head) => (
              <th key={head} scope="col">
                {head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.slice(0, detailed ? RUNS_SHOWN : RUNS_FOR_USERS).map((run) => (
            <tr key={run.due}>
              <td title={moment(run.due)}>{ago(run.due)}</td>
              <td title={run.error ?? undefined}>
                <span className={`badge ${tone(run.status)}`}>{t.runStates[run.status] ?? run.status}</span>
              </td>
              {detailed && (
                <>
                  <td>{took(run)}</td>
                  <td>{run.ended_at ? dollars(run.cost) : ""}</td>
                </>
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function AskCancel({ onDo, onClose }: { onDo: () => void; onClose: () => void }) {
  return (
    <Dialog
      title={t.cancelTask}
      onClose={onClose}
      foot={
        <button type="button" className="button danger" autoFocus onClick={onDo}>
          {t.cancelTask}
        </button>
      }
    >
      <p>{t.cancelTaskText}</p>
    </Dialog>
  );
}

export function Task({ task, onChange }: { task: Schedule; onChange: () => void }) {
  const face = useFace();
  const links = useLinks();
  const [runs, setRuns] = useState<ScheduleRun[]>([]);
  const [asking, setAsking] = useState(false);
  const id = task.id;
  useEffect(() => {
    schedules.runs(id).then(setRuns, complain);
  }, [id, task.last_run, task.last_status]);
  const then = (work: Promise<unknown>, said?: string): void => {
    work.then(() => {
      if (said) toast(said);
      onChange();
    }, complain);
  };
  return (
    <li className="card schedule" aria-label={lineOf(task.prompt)}>
      <header>
        <strong className="clip-2">{lineOf(task.prompt)}</strong>
        {task.paused && <span className="badge">{t.paused}</span>}
        {!task.paused && task.last_status && <span className={`badge ${tone(task.last_status)}`}>{task.last_status.split(":")[0]}</span>}
      </header>
      <p className="muted facts">
        <span>{words(task)}</span>
        {task.model_tier && <span>{task.model_tier}</span>}
        {task.channel && <span>{t.goesTo(task.channel)}</span>}
        {face === "dev" && <code>{task.id}</code>}
      </p>
      {task.last_status?.includes(":") && <p className="why">{task.last_status}</p>}
      {task.next_runs.length > 0 && (
        <p className="facts">
          <span className="muted">{t.nextRun}</span>
          {task.next_runs.map((at) => (
            <time key={at} dateTime={at}>
              {moment(at)}
            </time>
          ))}
        </p>
      )}
      <details open={face === "dev"}>
        <summary>{t.lastRuns}</summary>
        <Runs rows={runs} detailed={face === "dev"} />
      </details>
      <div className="actions">
        <button type="button" className="button small" onClick={() => then(schedules.runNow(id), t.runBegun)}>
          <Play size={15} aria-hidden="true" /> {t.runNow}
        </button>
        <button type="button" className="button small" onClick={() => then(schedules.change(id, { paused: !task.paused }))}>
          {task.paused ? <CirclePlay size={15} aria-hidden="true" /> : <CirclePause size={15} aria-hidden="true" />}
          {task.paused ? t.resumeTask : t.pause}
        </button>
        {runs.length > 0 && (
          <Link className="button small" href={links.chat(task.conversation_id)}>
            <MessageSquare size={15} aria-hidden="true" /> {t.openRuns}
          </Link>
        )}
        <button type="button" className="button small plain danger" onClick={() => setAsking(true)}>
          <Ban size={15} aria-hidden="true" /> {t.cancelTask}
        </button>
      </div>
      {asking && (
        <AskCancel
          onClose={() => setAsking(false)}
          onDo={() => {
            setAsking(false);
            then(schedules.cancel(id), t.taskCancelled);
          }}
        />
      )}
    </li>
  );
}
