/** Conflicts decided place by place, deleted directories as one change, lines too long to draw (UI-87, UI-89). */

import assert from "node:assert/strict";
import { test } from "node:test";
import type { ConflictPlace, Diff, LandingPlan, Taken } from "../src/api/types.ts";
import { bothOf, carried, endsOf, lostLines, resultOf, takesOf, undecided } from "../src/state/conflict.ts";
import { hunkData } from "../src/state/hunks.ts";
import { seenName, seenText, seenTitle, withMarks } from "../src/state/hidden_marks.ts";
import { EXCERPT, longChanges } from "../src/state/long_lines.ts";
import { keptChoice } from "../src/state/kept_choice.ts";
import { changedFiles, firstChoice, landRequest, setAll } from "../src/state/review.ts";

const place = (kind: ConflictPlace["kind"], base: string, ours = base, theirs = base): ConflictPlace => ({ kind, lines: 1, cut: 0, base, ours, theirs });
const places = [
  place("same", "a\n"),
  place("conflict", "b\n", "mine\n", "theirs\n"),
  place("theirs", "c\n", "c\n", "theirs too\n"),
  place("ours", "d\n", "mine alone\n", "d\n"),
  place("conflict", "e\n", "mine last", ""),
];

test("a landing is asked for once every place is decided", () => {
  const first: Taken = { take: "both", text: "" };
  const last: Taken = { take: "text", text: "own\n" };
  assert.equal(takesOf(places, new Map([[1, first]])), null);
  assert.equal(undecided(places, new Map([[1, first]])), 1);
  assert.deepEqual(takesOf(places, new Map([[4, last], [1, first]])), [first, last]);
  assert.equal(resultOf(places[1]!, first), "mine\ntheirs\n");
  assert.equal(resultOf(places[4]!, last), "own\n");
  assert.equal(bothOf({ ours: "no end", theirs: "t" }), "no end\nt");
});

test("decisions go along with their places; a text whose place is no more is not lost", () => {
  const both: Taken = { take: "both", text: "" };
  const own: Taken = { take: "text", text: "own\n" };
  const moved = [place("same", "new\n"), ...places];
  assert.deepEqual(carried(places, new Map([[4, own], [1, both]]), moved), { decisions: new Map([[2, both], [5, own]]), lost: [] });
  const other = [place("conflict", "b\n", "mine now\n", "theirs\n"), places[4]!];
  assert.deepEqual(carried(places, new Map([[1, own], [4, both]]), other), { decisions: new Map([[1, both]]), lost: ["own\n"] });
  assert.deepEqual(carried(places, new Map([[1, own], [4, own]]), []), { decisions: new Map(), lost: ["own\n", "own\n"] });
  const twice = [places[1]!, places[1]!];
  assert.deepEqual(carried(twice, new Map([[0, own], [1, both]]), twice).decisions, new Map([[0, own], [1, both]]));
});

test("what the agent's whole file throws away is named, also where nothing conflicts", () => {
  assert.deepEqual(lostLines(places), ["mine", "mine alone", "mine last"]);
});

test("a long stretch shows both its ends", () => {
  assert.deepEqual(endsOf({ ...place("same", "1\n2\n3\n7\n8\n9\n"), lines: 9, cut: 3 }), [["1", "2", "3"], ["7", "8", "9"]]);
  assert.deepEqual(endsOf(place("same", "1\n")), [["1"], []]);
});

const entry = (path: string, more: object = {}) => ({
  path, op: "delete", base: "b", current: "b", new: null, drift: "none" as const, flags: [], grade: "free" as const, reasons: [],
  ignored: false, tainted: false, taint: [], hunks: [], ...more,
});
const plan = (...entries: ReturnType<typeof entry>[]): LandingPlan => ({ plan: "p", entries });

test("a deleted directory is one change that lands, and is accepted, with all it held", () => {
  const deleted = ["/old", "/old/a", "/old/sub", "/old/sub/b", "/old.txt"];
  const files = changedFiles({ written: [], deleted }, plan(entry("/old", { op: "rmdir" }), entry("/old/sub/b", { flags: ["ci"], grade: "needs_accept" })));
  assert.deepEqual(files.map(({ path, type, inside, isRed }) => [path, type, inside.length, isRed]), [["/old", "dir", 2, true], ["/old.txt", "file", 0, false]]);
  assert.deepEqual(firstChoice(files), { "/old.txt": "all" });
  const wanted = landRequest(files, { "/old": "all" });
  assert.deepEqual([wanted.paths, wanted.accept], [["/old", "/old/a", "/old/sub/b"], ["/old", "/old/a", "/old/sub/b"]]);
});

test("a directory out of which a file moved stays in pieces, so that nothing goes without its other half", () => {
  const moved = { path: "/new", kind: "create" as const, type: "file", size: 1, mode: 420, old_mode: null, binary: false, added: 1, removed: 0, renamed_from: "/old/a", base: "exact" as const, flags: [], grade: "free" as const, reasons: [], hunks: [] };
  const files = changedFiles({ written: [moved], deleted: ["/old", "/old/a", "/old/b"] }, null);
  assert.deepEqual(files.map((file) => [file.path, file.inside]), [["/new", []], ["/old", []], ["/old/b", []]]);
});

const large = (more: object): Diff => ({
  written: [{ path: "/big", kind: "modify", type: "file", size: 9, mode: 420, old_mode: 420, binary: false, added: 1, removed: 1, renamed_from: null, base: "exact", flags: [], grade: "free", reasons: [], hunks: null, ...more }],
  deleted: [],
});

test("what nobody can see here is ticked by nobody but a person, and again after it changed", () => {
  for (const more of [{ too_large: true }, { long_lines: true }]) {
    const [one, other] = [changedFiles(large(more), plan(entry("/big", { new: "1" }))), changedFiles(large(more), plan(entry("/big", { new: "2" })))];
    assert.deepEqual(firstChoice(one), {});
    assert.deepEqual(setAll({}, one, true), {});
    assert.deepEqual(keptChoice({ "/big": "all" }, one, one), { "/big": "all" });
    assert.deepEqual(keptChoice({ "/big": "all" }, one, other), {});
  }
});

test("a file that came into conflict is no longer ticked", () => {
  const before = changedFiles(large({}), plan(entry("/big")));
  const after = changedFiles(large({}), plan(entry("/big", { drift: "conflict" })));
  assert.deepEqual(keptChoice({ "/big": "all" }, before, after), {});
  assert.deepEqual(keptChoice({ "/big": "all" }, after, after), { "/big": "all" });
});

test("a change in a line of two million characters is shown where it is", () => {
  const long = "x".repeat(1_000_000);
  const text = `-${long}old${long}\n+${long}${"new".repeat(EXCERPT)}${long}\n`;
  const hunk = hunkData({ id: "h", old_start: 3, old_lines: 1, new_start: 3, new_lines: 1, text });
  assert.deepEqual(longChanges([hunk]), [
    { line: 3, equal: 1_000_000, removed: "old", added: "new".repeat(EXCERPT / 3), removedMore: 0, addedMore: EXCERPT * 2 },
  ]);
});

test("what is not seen is named, and how a changed line ends is kept", () => {
  assert.deepEqual(withMarks("if a\u202e x"), [{ text: "if a", mark: false }, { text: "U+202E", mark: true }, { text: " x", mark: false }]);
  assert.equal(seenName("rev\u202etxt.exe"), "rev‹U+202E›txt.exe");
  assert.equal(seenName("plain.txt"), "plain.txt");
  assert.equal(seenName("two words.txt"), "two words.txt");
  assert.equal(seenName("new\nline\t.txt"), "new‹U+000A›line‹U+0009›.txt");
  assert.equal(seenName(" lead/ trail /x.txt  "), "‹U+0020›lead/‹U+0020›trail‹U+0020›/x.txt‹U+0020›‹U+0020›");
  assert.equal(seenName("a\u00a0b\u3000c\u007f"), "a‹U+00A0›b‹U+3000›c‹U+007F›");
  assert.equal(seenText("echo \u202egpj\u202c\n\tx "), "echo ‹U+202E›gpj‹U+202C›\n\tx ");
  assert.deepEqual(["   ", "", null, " A\u202eb "].map(seenTitle), ["New chat", "New chat", "New chat", "A‹U+202E›b"]);
  assert.deepEqual(withMarks("👨‍👩‍👧 é"), [{ text: "👨‍👩‍👧 é", mark: false }]);
  const hunk = hunkData({ id: "e", old_start: 1, old_lines: 2, new_start: 1, new_lines: 2, text: "-a\n+a\r\n-b\n+b\n\\ No newline at end of file\n" });
  assert.deepEqual(hunk.lines.map(({ content, cr, open }) => [content, cr ?? false, open ?? false]), [["a", false, false], ["a", true, false], ["b", false, false], ["b", false, true]]);
});
