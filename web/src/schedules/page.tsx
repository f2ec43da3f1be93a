/** Scheduled tasks: what runs next, how it went; made, run, paused and cancelled here (UI-35). */

import { CalendarClock, Plus } from "lucide-react";
import { useCallback, useEffect, useState } from "react";
import { Page } from "../app/page.tsx";
import { useFace } from "../app/place.tsx";
import { agenda, lineOf } from "../state/schedules.ts";
import { day } from "../state/words.ts";
import { t } from "../text.ts";
import { Empty } from "../ui/kit.tsx";
import "../styles/schedules.css";
import { schedules, type Schedule } from "./calls.ts";
import { MakeSchedule } from "./making.tsx";
import { Task } from "./task.tsx";

const LOOK_MS = 5000;

const clock = (iso: string): string => new Date(iso).toLocaleTimeString(undefined, { timeStyle: "short" });

function Calendar({ tasks }: { tasks: readonly Schedule[] }) {
  const days = agenda(tasks);
  if (days.length === 0) return null;
  return (
    <section>
      <h2 className="section-title">{t.calendar}</h2>
      <ol className="calendar" aria-label={t.calendar}>
        {days.map(({ key, runs }) => (
          <li key={key} className="card">
            <h3>{day(key)}</h3>
            <ul>
              {runs.map((run) => (
                <li key={`${run.id} ${run.at}`}>
                  <time dateTime={run.at}>{clock(run.at)}</time>
                  <span className="clip">{lineOf(run.prompt, 60)}</span>
                </li>
              ))}
            </ul>
          </li>
        ))}
      </ol>
    </section>
  );
}

export default function SchedulesPage() {
  const face = useFace();
  const [rows, setRows] = useState<Schedule[] | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const [making, setMaking] = useState(false);
  const load = useCallback((): void => {
    schedules.list().then(
      (found) => {
        setRows(found);
        setProblem(null);
      },
      (error: unknown) => setProblem(error instanceof Error ? error.message : String(error)),
    );
  }, []);
  useEffect(() => {
    load();
    const timer = setInterval(() => document.hidden || load(), LOOK_MS);
    return () => clearInterval(timer);
  }, [load]);
  return (
    <Page
      title={t.schedules}
      about={t.schedulesAbout}
      problem={problem}
      ready={rows !== null}
      actions={
        <button type="button" className="button primary" onClick={() => setMaking(true)}>
          <Plus size={17} aria-hidden="true" /> {t.newSchedule}
        </button>
      }
    >
      {rows?.length === 0 && (
        <Empty icon={CalendarClock} title={t.noSchedules}>
          <p>{t.noSchedulesText}</p>
        </Empty>
      )}
      {rows && face === "dev" && <Calendar tasks={rows} />}
      {rows && rows.length > 0 && (
        <ul className="landings">
          {rows.map((task) => (
            <Task key={task.id} task={task} onChange={load} />
          ))}
        </ul>
      )}
      {making && (
        <MakeSchedule
          onClose={() => setMaking(false)}
          onDone={() => {
            setMaking(false);
            load();
          }}
        />
      )}
    </Page>
  );
}
