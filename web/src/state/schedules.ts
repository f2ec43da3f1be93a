/** What runs next, by day, of several tasks; a time in words. Pure. */

export interface NextRun {
  id: string;
  prompt: string;
  at: string;
}

export interface Day {
  key: string;
  runs: NextRun[];
}

interface Task {
  id: string;
  prompt: string;
  next_runs: readonly string[];
}

/** The next runs of all tasks in their order, by the viewer's days. */
export function agenda(tasks: readonly Task[], most = 60): Day[] {
  const runs = tasks.flatMap((task) => task.next_runs.map((at) => ({ id: task.id, prompt: task.prompt, at })));
  runs.sort((one, other) => one.at.localeCompare(other.at));
  const days: Day[] = [];
  for (const run of runs.slice(0, most)) {
    const key = dayOf(run.at);
    const last = days[days.length - 1];
    if (last?.key === key) last.runs.push(run);
    else days.push({ key, runs: [run] });
  }
  return days;
}

/** The day of an instant as the viewer's clock has it: "2026-11-20". */
export function dayOf(iso: string): string {
  const at = new Date(iso);
  const two = (value: number): string => String(value).padStart(2, "0");
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
}

/** The first line of a prompt, cut. */
export function lineOf(prompt: string, most = 120): string {
  const line = prompt.trim().split("\n")[0] ?? "";
  return line.length > most ? `${line.slice(0, most - 1)}…` : line;
}

const DAILY = /^(\d{1,2}) (\d{1,2}) \* \* (\*|1-5)$/;

export interface Daily {
  /** "08:00" */
  time: string;
  weekdays: boolean;
}

/** The cron line of a time on every day, or every weekday. */
export function cronOf({ time, weekdays }: Daily): string {
  const [hour = "0", minute = "0"] = time.split(":");
  return `${Number(minute)} ${Number(hour)} * * ${weekdays ? "1-5" : "*"}`;
}

/** What such a line says, null for any other. */
export function dailyOf(line: string): Daily | null {
  const found = DAILY.exec(line.trim());
  if (!found) return null;
  const [, minute = "", hour = "", days] = found;
  return { time: `${hour.padStart(2, "0")}:${minute.padStart(2, "0")}`, weekdays: days === "1-5" };
}
