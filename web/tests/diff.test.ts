/** A diff as rows and windows: words that changed, gaps, what is on the screen, where comments stand. */

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Diff, WireHunk } from "../src/api/types.ts";
import { colourLines, withEdits } from "../src/review/colours.ts";
import { answeredPlaces } from "../src/state/answers.ts";
import { browseRows } from "../src/state/file_tree.ts";
import { changeOf } from "../src/state/traffic.ts";
import { byAttempt, fileRows, heldByAgent, takeAll } from "../src/state/attempts.ts";
import { NOTHING, take } from "../src/state/pieces.ts";
import { commentedPlaces, isOutdated, lineNow, type ReviewComment } from "../src/state/comments.ts";
import { rowsOfFile, type DiffRow, type Shape } from "../src/state/diff_rows.ts";
import { gapsOf, hunkData } from "../src/state/hunks.ts";
import { filesOfPatch } from "../src/state/patch.ts";
import { changedFiles, type ChangedFile } from "../src/state/review.ts";
import { placeOf, rowAt, rowKey, windowOf } from "../src/state/window.ts";
import { changedWords } from "../src/state/word_edits.ts";

const SHAPE: Shape = { view: "unified", ignoreSpace: false, large: false, gaps: {} };

function wire(start: number, text: string): WireHunk {
  const lines = text.trimEnd().split("\n");
  const count = (marks: string): number => lines.filter((line) => marks.includes(line[0] ?? "")).length;
  return { id: `h${start}`, old_start: start, old_lines: count(" -"), new_start: start, new_lines: count(" +"), text };
}

function fileWith(hunks: WireHunk[] | null, more: Partial<Diff["written"][number]> = {}): ChangedFile {
  const row: Diff["written"][number] = {
    path: "/a.py", kind: "modify", type: "file", size: 10, mode: 420, old_mode: 420, binary: false, added: 1, removed: 1,
    renamed_from: null, base: "exact", flags: [], hunks, ...more,
  }; // prettier-ignore
  const [file] = changedFiles({ written: [row], deleted: [] }, null);
  assert.ok(file);
  return file;
}

const kinds = (rows: readonly DiffRow[]): string[] => rows.map((row) => (row.kind === "body" ? row.what : row.kind));
const HUNK = wire(10, " a\n b\n c\n-old words\n+new words\n d\n e\n f\n");

test("only the words that changed are marked, and none in lines with nothing in common", () => {
  assert.deepEqual(changedWords("open(path)", "open(path, encoding)"), [[], [[9, 19]]]);
  assert.deepEqual(changedWords("a = one + two", "a = two + two"), [[[4, 7]], [[4, 7]]]);
  assert.equal(changedWords("first thing", "import json"), null);
});

test("lines that a diff leaves out are between its hunks, and behind them unless the file ends there", () => {
  const gaps = gapsOf([HUNK, wire(30, " x\n-y\n+z\n")].map(hunkData));
  assert.deepEqual(gaps.map((gap) => gap && [gap.newFrom, gap.newTo]), [[1, 9], [17, 29], null]);
});

test("opened lines of a gap carry both numbers, and what is left is said", () => {
  const longer = wire(10, " a\n b\n c\n+1\n+2\n d\n e\n f\n");
  const text = Array.from({ length: 40 }, (_, at) => `line ${at + 1}`);
  const known = { hunks: null, problem: null, text, gone: null };
  const rows = rowsOfFile(fileWith([longer]), known, { ...SHAPE, gaps: { "gap:18": { top: 5, bottom: 0 } } });
  assert.deepEqual(kinds(rows), ["gap", "hunk", "lines", "lines", "gap"]);
  const opened = rows[3];
  assert.ok(opened?.kind === "lines");
  assert.deepEqual([opened.unified[0]?.content, opened.unified[0]?.oldLine, opened.unified[0]?.newLine], ["line 18", 16, 18]);
  const rest = rows[4];
  assert.ok(rest?.kind === "gap");
  assert.equal(rest.left, 18);
});

test("a file without lines to compare says what it is, a huge one waits to be asked for", () => {
  const what = (more: Partial<Diff["written"][number]>, hunks: WireHunk[] | null = []): string[] => kinds(rowsOfFile(fileWith(hunks, more), null, SHAPE));
  assert.deepEqual(what({ binary: true, path: "/logo.png" }), ["image"]);
  assert.deepEqual(what({ binary: true, path: "/a.bin" }), ["binary"]);
  assert.deepEqual(what({ type: "symlink" }), ["special"]);
  assert.deepEqual(what({ added: 50_000 }, null), ["large"]);
  assert.deepEqual(what({}, null), ["loading"]);
});

test("a file of 50,000 lines is cut into pieces, of which a screen shows few", () => {
  const text = "+line of a long file\n".repeat(50_000);
  const rows = rowsOfFile(fileWith([wire(1, text)], { added: 50_000 }), null, { ...SHAPE, large: true });
  const lines = rows.filter((row) => row.kind === "lines");
  assert.equal(lines.reduce((sum, row) => sum + row.unified.length, 0), 50_000);
  const seen = windowOf([{ key: "/a.py", head: 60, rows }], new Map(), 400_000, 402_000).sections[0];
  assert.ok(seen && seen.to - seen.from < 8);
  assert.equal(seen.before + seen.after + rows.slice(seen.from, seen.to).reduce((sum, row) => sum + row.estimate, 0), rows.reduce((sum, row) => sum + row.estimate, 0));
});

test("measured heights move what comes after them", () => {
  const sections = ["a", "b"].map((key) => ({ key, head: 50, rows: [{ key: "1", estimate: 100 }, { key: "2", estimate: 100 }] }));
  assert.equal(placeOf(sections, new Map(), "b", "2"), 400);
  const heights = new Map([[rowKey("a", "1"), 180], [rowKey("a", ""), 60]]);
  assert.equal(placeOf(sections, heights, "b", "2"), 490);
  assert.equal(placeOf(sections, heights, "c", null), null);
});

test("what stands at a place is named by section and row, and how far it has gone above the edge (UI-33)", () => {
  const sections = ["a", "b"].map((key) => ({ key, head: 40, rows: [{ key: "1", estimate: 100 }] }));
  assert.deepEqual(rowAt(sections, new Map(), 10), { section: "a", row: null, above: 10 });
  assert.deepEqual(rowAt(sections, new Map(), 60), { section: "a", row: "1", above: 20 });
  assert.deepEqual(rowAt(sections, new Map([[rowKey("a", ""), 60]]), 165), { section: "b", row: null, above: 5 });
  assert.equal(rowAt(sections, new Map(), 280), null);
});

const comment = (more: Partial<ReviewComment> = {}): ReviewComment => ({
  id: "1", path: "/a.py", side: "new", line: 13, endLine: null, text: "Why?", quote: "new words", sent: true, ...more,
}); // prettier-ignore

test("a comment goes with its line, and is outdated when the line is gone (UI-29)", () => {
  const moved = wire(20, " a\n b\n c\n-old words\n+new words\n d\n");
  assert.equal(lineNow(comment(), [HUNK].map(hunkData)), 13);
  assert.equal(lineNow(comment(), [moved].map(hunkData)), 23);
  assert.equal(isOutdated(comment(), fileWith([moved])), false);
  assert.equal(isOutdated(comment(), fileWith([wire(20, " a\n-old words\n+other words\n d\n")])), true);
  assert.equal(isOutdated(comment({ sent: false, quote: "gone" }), fileWith([HUNK])), false);
});

test("a message of comments is read back into places, and the turn's last words answer them", () => {
  const words = "Review comments on your changes:\n\n/src/a.py line 3:\n> x = 1\nWhy one?\n\n/b.md lines 4-5 (before the change):\n> gone\nBring it back.";
  const places = commentedPlaces(words);
  assert.deepEqual(places?.map((place) => [place.path, place.line, place.endLine, place.old, place.text]), [
    ["/src/a.py", 3, null, false, "Why one?"],
    ["/b.md", 4, 5, true, "Bring it back."],
  ]);
  assert.equal(commentedPlaces("Hello"), null);
  const base = { turn: "t_1", mode: "message", by: null, door: null };
  const answers = answeredPlaces([
    { kind: "user", key: "in:1", text: words, ...base },
    { kind: "text", key: "text:1", turn: "t_1", ...take(NOTHING, "First words.", 0), done: true },
    { kind: "text", key: "text:2", turn: "t_1", ...take(NOTHING, "Done.", 0), done: true },
    { kind: "text", key: "text:3", turn: "t_2", ...take(NOTHING, "Else.", 0), done: true },
  ]);
  assert.deepEqual([...answers.keys()], ["text:2"]);
});

test("colours are made per side, and changed words are cut out of them", () => {
  const { lines } = hunkData(HUNK);
  const colours = colourLines(lines, (text) => [{ type: "element", properties: { className: ["token"] }, children: [{ type: "text", value: text }] }]);
  assert.deepEqual(lines.map((line) => colours.get(line)?.[0]?.text), lines.map((line) => line.content));
  const cut = withEdits([{ text: "new words", colour: "token", edited: false }], [[0, 3]]);
  assert.deepEqual(cut.map((piece) => [piece.text, piece.edited]), [["new", true], [" words", false]]);
});

test("a subagent's patch is read as files with hunks", () => {
  const patch = "diff --git a/a.py b/a.py\nindex 1..2 100644\n--- a/a.py\n+++ b/a.py\n@@ -1,2 +1,2 @@\n same\n--- old\n+++ new\ndiff --git a/b.py b/b.py\n@@ -0,0 +1 @@\n+x\n";
  const row = (path: string) => ({ path, kind: "modify" as const, size: 3, added: 1, removed: 1 });
  const files = filesOfPatch({ written: [row("/a.py"), row("/b.py")], deleted: ["/c.py"], patch, patch_truncated: false });
  assert.deepEqual(files.map((file) => [file.path, file.hunks?.length ?? null]), [["/a.py", 1], ["/b.py", 1], ["/c.py", null]]);
  assert.equal(files[0]?.hunks?.[0]?.text, " same\n--- old\n+++ new\n");
});

test("files of several attempts are composed (UI-32)", () => {
  const diff = (paths: string[]) => ({ written: paths.map((path) => ({ path, kind: "modify" as const, size: 1, added: 1, removed: 0 })), deleted: [], patch: "", patch_truncated: false });
  const rows = fileRows({ subagent_0: diff(["/a", "/b"]), subagent_1: diff(["/b", "/c"]) });
  assert.deepEqual(rows.map((row) => row.path), ["/a", "/b", "/c"]);
  const composition = { ...takeAll(rows, "subagent_0"), "/b": "subagent_1" };
  assert.deepEqual([...byAttempt(composition)], [["subagent_0", ["/a"]], ["subagent_1", ["/b"]]]);
});

test("a tournament that the agent held is read from its call's result (UI-32)", () => {
  const row = { handle: "subagent_1", rank: 1, status: "completed", passed: 1, failed: 0, checks: [], files: 1, added: 1, removed: 0, touched_checks: false, cost: 0, tokens: 1, seconds: 1, error: null };
  const call = { key: "call:c_1", input: { task: "Do it", checks: ["true"] }, result: JSON.stringify({ winner: "subagent_1", ranking: [row] }) };
  const found = heldByAgent("abc", call, []);
  assert.deepEqual([found?.id, found?.task, found?.winner, found?.checks], ["c_1", "Do it", "subagent_1", ["true"]]);
  assert.equal(heldByAgent("abc", { ...call, result: '{"error": "no room"}' }, []), null);
  assert.equal(heldByAgent("abc", { ...call, result: "cut of" }, []), null);
});

test("files are browsed by folder, what changed first (UI-33)", () => {
  const file = (path: string, state = "landed") => ({ path, state, size: 1 }) as Parameters<typeof browseRows>[0][number];
  const files = [file("b/c/one.py"), file("top.txt"), file("b/two.py"), file("b/c/new.py", "unlanded")];
  const shown = (query: string, ...turned: string[]) => browseRows(files, query, new Set(turned)).map((row) => `${"  ".repeat(row.depth)}${row.name}`);
  assert.deepEqual(shown(""), ["b/c/new.py", "b", "  c", "    one.py", "  two.py", "top.txt"]);
  assert.deepEqual(shown("", "b/c/"), ["b/c/new.py", "b", "  c", "  two.py", "top.txt"]);
  assert.deepEqual(shown("ONE"), ["b/c/one.py"]);
  const many = Array.from({ length: 100 }, (_, at) => file(`d/${at}`));
  assert.deepEqual(browseRows(many, "", new Set()).map((row) => row.name), ["d"], "many folders are shut at first");
});

test("a model request is shown as what it adds to the one before (UI-34)", () => {
  const first = { seq: 1, model: "a", messages: [{ role: "user", text: "x" }] };
  const next = { seq: 2, model: "b", messages: [...first.messages, { role: "assistant", text: "y" }] };
  assert.deepEqual(changeOf(first, next), { kept: 1, gone: 0, added: [{ role: "assistant", text: "y" }], members: { model: "b" } });
  assert.deepEqual(changeOf(next, { ...next, messages: [{ role: "user", text: "summary" }] }), { kept: 0, gone: 2, added: [{ role: "user", text: "summary" }], members: {} });
});

test("no name of a file hides another file's section (engine 5)", () => {
  const row = (path: string) => ({ path, kind: "modify" as const, size: 9, added: 1, removed: 1 });
  const section = (name: string, line: string) =>
    `diff --git a/${name} b/${name}\nindex 1..2 100644\n--- a/${name}\n+++ b/${name}\n@@ -1 +1 @@\n-old\n+${line}\n`;
  const patch = section("z.py", "evil") + section("zz b/z.py", "hello") + 'diff --git "a/t\\tb" "b/t\\tb"\nold mode 100644\n';
  const files = filesOfPatch({ written: [row("/z.py"), row("/zz b/z.py")], deleted: [], patch, patch_truncated: false });
  assert.deepEqual(files.map((file) => file.hunks?.[0]?.text), ["-old\n+evil\n", "-old\n+hello\n"]);
  const link = "diff --git a/l b/l\ndeleted file mode 100644\n@@ -1 +0,0 @@\n-a\ndiff --git a/l b/l\nnew file mode 120000\n@@ -0,0 +1 @@\n+b\n";
  const [changed] = filesOfPatch({ written: [row("/l")], deleted: [], patch: link, patch_truncated: false });
  assert.deepEqual(changed?.hunks?.map((hunk) => hunk.text), ["-a\n", "+b\n"]);
});
