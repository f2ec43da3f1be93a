/** Texts of scheduled tasks. */

export const schedules = {
  schedules: "Schedules",
  schedulesAbout: "Prompts that run by themselves at their times. All runs of one share a conversation; nothing they change lands without you.",
  newSchedule: "New schedule",
  noSchedules: "Nothing is scheduled",
  noSchedulesText: "Make a schedule here, or ask the agent: “Every weekday at eight, …”.",
  calendar: "What runs next",
  whatToDo: "What is to be done",
  whatToDoHint: "Complete in itself: nobody is there to ask.",
  when: "When",
  scheduleTypes: { cron: "by a cron line", interval: "again and again", once: "once" } as Readonly<Record<string, string>>,
  cronHint: "Minute, hour, day, month, weekday: 0 8 * * 1-5 is every weekday at eight.",
  intervalHint: "Seconds between two runs: 3600 is every hour.",
  timeZone: "Time zone",
  missedRuns: "Runs missed while no server ran",
  catchUps: { one: "make up for them with one run", skip: "leave them out", all: "run each (up to 10)" } as Readonly<Record<string, string>>,
  tierOfModel: "Tier of the model",
  tierHint: "Empty: the usual model.",
  make: "Make it",
  every: (seconds: number): string =>
    seconds % 86_400 === 0 ? plural(seconds / 86_400, "day") : seconds % 3600 === 0 ? plural(seconds / 3600, "hour") : seconds % 60 === 0 ? plural(seconds / 60, "minute") : plural(seconds, "second"),
  nextRun: "Next run",
  lastRuns: "Last runs",
  noRuns: "It has not run yet.",
  runNow: "Run now",
  runBegun: "The run has begun.",
  pause: "Pause",
  paused: "paused",
  resumeTask: "Resume",
  cancelTask: "Cancel it",
  cancelTaskText: "It never runs again. Its conversation stays.",
  taskCancelled: "The schedule is cancelled.",
  openRuns: "Open the conversation",
  outcome: "Outcome",
  due: "Due",
  took: "Took",
  cost: "Cost",
  runStates: { running: "running", retrying: "failed, tried again soon", done: "done", failed: "failed", cancelled: "cancelled" } as Readonly<Record<string, string>>,
  goesTo: (channel: string): string => `answers go to ${channel}`,
};

function plural(value: number, unit: string): string {
  return value === 1 ? `every ${unit}` : `every ${value} ${unit}s`;
}
