import assert from "node:assert/strict";
import test from "node:test";
import { agenda, cronOf, dailyOf, dayOf, lineOf } from "../src/state/schedules.ts";

const task = (id: string, ...next_runs: string[]) => ({ id, prompt: `Task ${id}`, next_runs });

test("the next runs of all tasks stand in their order, by day", () => {
  const days = agenda([
    task("a", "2026-11-20T12:00:00+00:00", "2026-11-22T12:00:00+00:00"),
    task("b", "2026-11-20T11:00:00+00:00"),
    task("paused"),
  ]);
  assert.deepEqual(
    days.map((day) => day.runs.map((run) => run.id)),
    [["b", "a"], ["a"]],
  );
  assert.equal(days[0]?.key, dayOf("2026-11-20T12:00:00+00:00"));
});

test("a list of thousands is cut to what is shown", () => {
  const many = Array.from({ length: 1000 }, (_, at) => task(String(at), "2026-11-20T12:00:00+00:00"));
  assert.equal(agenda(many)[0]?.runs.length, 60);
});

test("a prompt is shown by its first line", () => {
  assert.equal(lineOf("\n  Look.\nThen tell."), "Look.");
  assert.equal(lineOf("x".repeat(500)).length, 120);
});

test("a time of every day is a cron line and back", () => {
  for (const daily of [{ time: "08:05", weekdays: true }, { time: "00:00", weekdays: false }]) assert.deepEqual(dailyOf(cronOf(daily)), daily);
  assert.equal(cronOf({ time: "08:05", weekdays: true }), "5 8 * * 1-5");
  assert.equal(dailyOf("*/5 * * * *"), null);
});
