/** Plain words for steps: nothing is said as done that was not. */

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Entry, ToolEntry } from "../src/state/entries.ts";
import { activity, landingInWords, readableInput, ruleInWords, standing, stepInWords } from "../src/state/plain.ts";

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

test("a command that failed did run, and its row does not look as if it had gone well", () => {
  assert.equal(stepInWords(tool("bash", { command: "make test" }, "error")), "Ran the tests – it did not work");
  assert.equal(stepInWords(tool("bash", { command: "ls" }, "denied")), "Running a command – not allowed");
  assert.equal(standing([tool("bash", { command: "ls" }, "error")]), "error");
  assert.equal(standing([tool("bash", { command: "ls" }, "error"), tool("bash", { command: "ls" })]), "ok");
  assert.equal(standing([tool("write_file", { path: "/a" }), tool("bash", { command: "ls" }, "error")]), "ok");
  assert.equal(standing([tool("bash", { command: "ls" }, "running")]), "running");
  assert.equal(standing([]), "ok");
});

test("helpers are called helpers", () => {
  assert.equal(stepInWords(tool("spawn_subagents", {})), "Worked with a helper");
  assert.equal(stepInWords(tool("spawn_teammate", { name: "ann" }, "running")), "Working with a helper");
  assert.equal(stepInWords(tool("task_create", {})), "Thought it through");
});

test("a rule is said in words, a whole tool by its name", () => {
  assert.equal(ruleInWords("bash(git push *)"), "commands that begin with “git push”");
  assert.equal(ruleInWords("bash(rm -rf build[*])"), "the command “rm -rf build*”");
  assert.equal(ruleInWords("edit_file(report.py)"), "changes to report.py");
  assert.equal(ruleInWords("write_file(src/**)"), "changes in src/");
  assert.equal(ruleInWords("read_file(a.md)"), "reading a.md");
  assert.equal(ruleInWords("web_fetch(example.org)"), "going to example.org");
  assert.equal(ruleInWords("todo_write"), "every use of “todo_write”");
  assert.equal(ruleInWords("send(x)"), "“send” with x");
});

test("what a call was given is read as it was written", () => {
  assert.equal(readableInput({ command: "ls\nwc" }), "ls\nwc");
  assert.equal(readableInput({ path: "/a", content: "1\n2", deep: { n: 1 }, count: 3 }), 'path: /a\ncontent:\n  1\n  2\ndeep:\n  {\n    "n": 1\n  }\ncount: 3');
  assert.equal(readableInput({}), "");
});
