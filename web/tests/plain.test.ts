/** Plain words for steps: nothing is said as done that was not. */

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Entry, ToolEntry } from "../src/state/entries.ts";
import { activity, landingInWords, stepInWords } from "../src/state/plain.ts";

const tool = (name: string, input: Record<string, unknown>, status = "ok"): ToolEntry => ({
  kind: "tool", key: `call:${Math.random()}`, turn: "t", tool: name, input, status, result: null, truncated: false,
  tainted: false, progress: "", startedAt: null, endedAt: null,
}); // prettier-ignore

test("a step is said as it is: going on, done, denied, failed", () => {
  const said = (status: string): string => stepInWords(tool("edit_file", { path: "/a/b.py" }, status));
  assert.equal(said("running"), "Changing b.py");
  assert.equal(said("ok"), "Changed b.py");
  assert.equal(said("denied"), "Changing b.py – not allowed");
  assert.equal(said("error"), "Changing b.py – it did not work");
});

test("the pill counts files, not calls, and only those that were really written", () => {
  const of = (...entries: Entry[]): string => activity(entries);
  assert.equal(of(tool("edit_file", { path: "/a" }), tool("edit_file", { path: "/a" })), "Edited a");
  assert.equal(of(tool("edit_file", { path: "/a" }), tool("write_file", { path: "/b" })), "Edited 2 files");
  assert.equal(of(tool("write_file", { path: "/a" }, "denied")), "Writing a – not allowed");
  assert.equal(of(tool("write_file", { path: "/a" }, "running"), tool("write_file", { path: "/b" }, "running")), "Editing 2 files");
});

test("tests that run are called tests", () => {
  assert.equal(stepInWords(tool("bash", { command: "pytest -q" }, "running")), "Running the tests");
  assert.equal(stepInWords(tool("bash", { command: "ls" })), "Ran a command");
});

test("a landing is told without the names of records", () => {
  assert.equal(landingInWords("landed 1 paths as l_01m88"), "1 file is in your folder now.");
  assert.equal(landingInWords("landed 12 paths as l_01m88"), "12 files are in your folder now.");
  assert.equal(landingInWords("took l_01m88 back as l_01m89"), "What was kept was taken back.");
  assert.equal(landingInWords("committed 2 paths on main"), "committed 2 paths on main");
});
