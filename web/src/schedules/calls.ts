/** What the schedules page asks the server for (SV-31). */

import type { components } from "../../generated/openapi";
import { call } from "../api/client.ts";

type Schemas = components["schemas"];
type Known<Schema> = { [Key in keyof Schema as string extends Key ? never : Key]: Schema[Key] };

export type Schedule = Known<Schemas["ScheduleShown"]>;
export type ScheduleRun = Known<Schemas["ScheduleRun"]>;
export type NewSchedule = Pick<Schemas["NewSchedule"], "prompt" | "type" | "value"> & Partial<Schemas["NewSchedule"]>;
export type ScheduleChange = Partial<Schemas["ScheduleChange"]>;

const at = (task: string, rest = ""): string => `/api/schedules/${encodeURIComponent(task)}${rest}`;

export const schedules = {
  list: () => call<Schedule[]>("GET", "/api/schedules"),
  add: (wanted: NewSchedule) => call<Schedule>("POST", "/api/schedules", wanted),
  change: (task: string, changes: ScheduleChange) => call<Schedule>("PATCH", at(task), changes),
  cancel: (task: string) => call<Schedule>("DELETE", at(task)),
  runNow: (task: string) => call<ScheduleRun>("POST", at(task, "/run")),
  runs: (task: string) => call<ScheduleRun[]>("GET", at(task, "/runs")),
};
