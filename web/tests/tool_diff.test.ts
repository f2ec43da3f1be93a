/** What a call changed, as numbered lines (UI-70); comments as threads (UI-91). */

import assert from "node:assert/strict";
import { test } from "node:test";
import { threadsOf, withComment, type ReviewComment } from "../src/state/comments.ts";
import { diffLines, isCut } from "../src/state/tool_diff.ts";

test("lines have the numbers of both sides, hunks have a gap between them", () => {
  const diff = { text: "@@ -1,2 +1,2 @@\n x\n-y\n+z\n@@ -9,1 +9,2 @@\n a\n+b\n\\ No newline at end of file\n", added: 2, removed: 1 };
  const lines = diffLines(diff);
  const told = lines.map((one) => (one.kind === "line" ? `${one.line.oldLine ?? ""}/${one.line.newLine ?? ""}${one.line.content}` : one.kind));
  assert.deepEqual(told, ["1/1x", "2/y", "/2z", "gap", "9/9a", "/10b"]);
  assert.equal(isCut(diff, lines), false);
});

test("of several files each has its path, and a line that looks like a header is one of the file", () => {
  const diff = { text: "--- a.sql\n+++ a.sql\n@@ -1,2 +1,1 @@\n-- a\n-@@ -1,1 +1,1 @@\n+++ b\n--- c\n+++ c\n@@ -0,0 +1,1 @@\n+n\n", added: 2, removed: 2 };
  const told = diffLines(diff).map((one) => (one.kind === "line" ? one.line.content : one.kind === "path" ? one.path : "gap"));
  assert.deepEqual(told, ["a.sql", "- a", "@@ -1,1 +1,1 @@", "++ b", "c", "n"]);
});

test("what the server cut is said to be cut, and rubbish is nothing", () => {
  const diff = { text: "@@ -1,3 +1,3 @@\n x\n-y\n", added: 1, removed: 1 };
  assert.equal(isCut(diff, diffLines(diff)), true);
  assert.deepEqual(diffLines({ text: "nonsense\n", added: 0, removed: 0 }), []);
  assert.deepEqual(diffLines({ text: "", added: 0, removed: 0 }), []);
});

const comment = (id: string, line: number, more: Partial<ReviewComment> = {}): ReviewComment => ({
  id, path: "/a", side: "new", line, endLine: null, text: id, quote: "q", sent: true, ...more,
}); // prettier-ignore

test("comments on the same lines are a thread, resolved when all of it is", () => {
  const threads = threadsOf([comment("a", 1), comment("b", 2, { resolved: true }), comment("c", 1, { resolved: true })]);
  assert.deepEqual(threads.map((one) => [one.comments.map((each) => each.id), one.resolved]), [[["a", "c"], false], [["b"], true]]);
});

test("a word in a thread that was resolved opens it again, others stay", () => {
  const now = [comment("a", 1, { resolved: true }), comment("b", 2, { resolved: true })];
  const next = withComment(now, comment("c", 1, { sent: false }));
  assert.deepEqual(next.map((one) => [one.id, one.resolved ?? false]), [["a", false], ["b", true], ["c", false]]);
  assert.deepEqual(withComment(next, comment("c", 1, { text: "new" })).map((one) => one.text), ["a", "b", "new"]);
});
