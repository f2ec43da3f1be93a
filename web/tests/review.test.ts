/** The review as values: what is chosen, what a landing is asked for, what counts as moved. */

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Diff, LandingPlan, WireHunk } from "../src/api/types.ts";
import { gapsOf, hunkData, paired, withoutWhitespace } from "../src/state/hunks.ts";
import { keptChoice, reviewed } from "../src/state/kept_choice.ts";
import {
  changedFiles,
  firstChoice,
  flagDetail,
  flagReason,
  gravestFirst,
  isLandedAlready,
  landRequest,
  markReasons,
  seenOf,
  setAll,
  setFile,
  setHunk,
  summary,
} from "../src/state/review.ts";
import { grownBlocks, splitBlocks, type Blocks } from "../src/ui/blocks.ts";

const hunk = (id: string, start = 1): WireHunk => ({
  id,
  old_start: start,
  old_lines: 2,
  new_start: start,
  new_lines: 2,
  text: " same\n-old\n+new\n",
});
const written = (path: string, hunks: WireHunk[], flags: string[] = []): Diff["written"][number] => ({
  path,
  kind: "modify",
  type: "file",
  size: 10,
  mode: 420,
  old_mode: null,
  binary: false,
  added: 1,
  removed: 1,
  renamed_from: null,
  base: "exact",
  flags,
  grade: flags.length > 0 ? ("needs_accept" as const) : ("free" as const),
  reasons: [],
  hunks,
});
const diff: Diff = {
  written: [written("/a.py", [hunk("h1"), hunk("h2", 20)]), written("/.github/workflows/ci.yml", [hunk("h3")], ["ci"])],
  deleted: ["/old.txt"],
};
const entry = (path: string, more: object = {}) => ({
  path,
  op: "modify",
  base: "b",
  current: "b",
  new: "n",
  drift: "none" as const,
  flags: [],
  ignored: false,
  grade: "free" as const,
  reasons: [],
  tainted: false,
  taint: [],
  hunks: [],
  ...more,
});
const plan: LandingPlan = { plan: "sha256:1", entries: [entry("/a.py"), entry("/old.txt")] };
const files = changedFiles(diff, plan);
const file = (path: string) => files.find((one) => one.path === path)!;

test("a review begins with everything but what needs a look of its own (UI-28)", () => {
  assert.deepEqual(firstChoice(files), { "/a.py": "all", "/old.txt": "all" });
});

test("choosing all leaves the red lane out, ticking it by itself accepts it", () => {
  const all = setAll({}, files, true);
  assert.equal(all["/.github/workflows/ci.yml"], undefined);
  const ticked = setFile(all, file("/.github/workflows/ci.yml"), true);
  assert.deepEqual(landRequest(files, ticked).accept, ["/.github/workflows/ci.yml"]);
});

test("one hunk of two is landed by its id, beside whole files", () => {
  const choice = setHunk(firstChoice(files), file("/a.py"), "h2", false);
  assert.deepEqual(landRequest(files, choice), { paths: ["/a.py", "/old.txt"], hunks: ["h1"], accept: [], include: [] });
  assert.deepEqual(summary(files, choice), { files: 2, of: 3, hunks: 1, red: 0 });
});

test("a file without any chosen hunk is not landed, with all of them it is landed whole", () => {
  const none = setHunk(setHunk(firstChoice(files), file("/a.py"), "h1", false), file("/a.py"), "h2", false);
  assert.equal(none["/a.py"], undefined);
  assert.equal(setHunk(setHunk(none, file("/a.py"), "h1", true), file("/a.py"), "h2", true)["/a.py"], "all");
});

test("marks on hunks that are still there stay when the branch moves (UI-30)", () => {
  const choice = { "/a.py": ["h1"] };
  const moved = changedFiles({ ...diff, written: [written("/a.py", [hunk("h1"), hunk("h9", 30)])] }, plan);
  assert.deepEqual(keptChoice(choice, files, moved), { "/a.py": ["h1"] });
});

test("a red file that changed since it was ticked must be looked at again", () => {
  const ticked = { "/.github/workflows/ci.yml": "all" as const };
  const moved = changedFiles({ written: [written("/.github/workflows/ci.yml", [hunk("h8")], ["ci"])], deleted: [] }, plan);
  assert.deepEqual(keptChoice(ticked, files, moved), {});
});

test("a choice outlives the page, by what it was made for and no content of it (UI-27)", () => {
  const ci = "/.github/workflows/ci.yml";
  const choice = { [ci]: "all" as const, "/a.py": ["h2"] };
  const left = JSON.parse(JSON.stringify(reviewed(files))) as ReturnType<typeof reviewed>;
  assert.deepEqual(keptChoice(choice, left, files), choice);
  assert.ok(!JSON.stringify(left).includes("+new"));
  const moved = changedFiles({ written: [written("/a.py", [hunk("h2")]), written(ci, [hunk("h8")], ["ci"]), written("/b.py", [])], deleted: [] }, plan);
  assert.deepEqual(keptChoice(choice, left, moved), { "/a.py": ["h2"], "/b.py": "all" });
});

test("what was chosen of a file whose hunks are not here yet stays; what conflicts by now does not land (UI-30)", () => {
  const choice = { "/a.py": ["h2"], "/old.txt": "all" as const };
  const apart = changedFiles({ written: [{ ...written("/a.py", []), hunks: null }], deleted: ["/old.txt"] }, plan);
  assert.deepEqual(keptChoice(choice, files, apart), choice);
  const told = { plan: "p", entries: [entry("/a.py", { drift: "conflict" }), entry("/old.txt")] };
  assert.deepEqual(keptChoice(choice, files, changedFiles(diff, told)), { "/old.txt": "all" });
  assert.deepEqual(reviewed(apart).find((one) => one.path === "/a.py")?.hunks, null);
});

test("held files are marked and chosen, conflicting ones are not chosen (D-5)", () => {
  const held = { grade: "held" as const, flags: ["tainted"], tainted: true, taint: ["web_fetch https://a.example/"] };
  const told = { plan: "p", entries: [entry("/a.py", held), entry("/old.txt", { drift: "conflict" })] };
  const seen = changedFiles(diff, told);
  assert.deepEqual(firstChoice(seen), { "/a.py": "all" });
  const marked = seen.find((one) => one.path === "/a.py")!;
  assert.deepEqual([marked.isMarked, marked.isRed, marked.taint], [true, false, ["web_fetch https://a.example/"]]);
  assert.deepEqual(landRequest(seen, { "/a.py": "all" }).accept, []);
});

test("a mark is explained by its flag's sentence, and by what the server adds for this path (UI-28)", () => {
  assert.equal(flagReason("ci"), "Runs on the build server, with its secrets.");
  assert.equal(flagDetail("ci", "runs on GitHub"), "runs on GitHub");
  assert.equal(flagDetail("ci", flagReason("ci")), "");
  assert.equal(flagDetail("ci", undefined), "");
});

test("a list that is cut shows the gravest first, and says why files are marked (D-5)", () => {
  const held = { grade: "held" as const, flags: ["tainted"], tainted: true, taint: ["web_fetch https://a.example/"] };
  const seen = changedFiles(diff, { plan: "p", entries: [entry("/a.py"), entry("/old.txt", held)] });
  const order = gravestFirst(seen).map((one) => one.path);
  assert.deepEqual(order, ["/.github/workflows/ci.yml", "/old.txt", "/a.py"]);
  assert.deepEqual(markReasons(seen), [flagReason("tainted"), "It had read: web_fetch https://a.example/."]);
});

test("the stricter grade of the two ends of a rename counts", () => {
  const moved = { ...written("/b.py", []), renamed_from: "/old.txt" };
  const told = { plan: "p", entries: [entry("/b.py"), entry("/old.txt", { grade: "needs_accept", flags: ["ci"] })] };
  const [one] = changedFiles({ written: [moved], deleted: ["/old.txt"] }, told);
  assert.deepEqual([one!.grade, one!.flags], ["needs_accept", ["ci"]]);
});

test("a landing sends the state of what was drawn, of the chosen paths alone", () => {
  const drawn = { plan: "p", entries: [entry("/a.py", { state: "1" }), entry("/old.txt", { state: "2" })] };
  assert.deepEqual(seenOf(drawn), { "/a.py": "1", "/old.txt": "2" });
  assert.deepEqual(seenOf(drawn, ["/old.txt", "/gone"]), { "/old.txt": "2" });
});

test("lines of a hunk carry the numbers of both sides", () => {
  const { lines } = hunkData(hunk("h", 7));
  assert.deepEqual(
    lines.map((line) => [line.type, line.oldLine, line.newLine]),
    [["normal", 7, 7], ["delete", 8, null], ["insert", null, 8]],
  );
});

test("a change of white space alone can be hidden, and columns pair old with new", () => {
  const space = hunkData({ ...hunk("h"), text: "-a b\n+a  b\n" });
  assert.deepEqual(withoutWhitespace(space).lines.map((line) => [line.type, line.oldLine, line.newLine]), [["normal", 1, 1]]);
  const two = hunkData({ ...hunk("h"), text: "-a\n-b\n+c\n" });
  assert.deepEqual(paired(two.lines).map((pair) => pair.map((line) => line?.content ?? null)), [["a", "c"], ["b", null]]);
});

test("a file that only moved is one change, which lands with both its paths", () => {
  const moved = { ...written("/new.py", [hunk("h1")]), kind: "create" as const, renamed_from: "/old.txt" };
  const [one, ...others] = changedFiles({ written: [moved], deleted: ["/old.txt"] }, null);
  assert.equal(others.length, 0);
  assert.deepEqual([one?.kind, one?.hunks], ["rename", []]);
  assert.deepEqual(landRequest([one!], { "/new.py": "all" }).paths, ["/old.txt", "/new.py"]);
});

test("what changed in a moved file is shown, and lands with the whole of it (UI-87)", () => {
  const edits = [{ ...hunk("e1"), text: " a\n-b\n+c\n" }];
  const moved = { ...written("/new.py", [hunk("h1")]), kind: "create" as const, added: 50, renamed_from: "/old.txt", similarity: 98, edits };
  const [one] = changedFiles({ written: [moved], deleted: ["/old.txt"] }, null);
  assert.deepEqual([one!.added, one!.removed, one!.hunks], [1, 1, edits]);
  const off = setHunk({ "/new.py": "all" }, one!, "e1", false);
  assert.deepEqual(off, {});
  assert.deepEqual(landRequest([one!], setHunk(off, one!, "e1", true)), { paths: ["/old.txt", "/new.py"], accept: [], include: [] });
});

test("a text that grows by any pieces has the blocks of the whole", () => {
  const lines = ["# One", "", "Two", "```", "a", "", "~~~", "- x", "  z", "1. y", "    four", "> q", "", "", "| a |"];
  let state = 7;
  const roll = (most: number): number => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * most);
  };
  for (let round = 0; round < 400; round += 1) {
    const text = Array.from({ length: roll(14) }, () => lines[roll(lines.length)]).join("\n");
    let grown: Blocks | null = null;
    for (let at = 0; at <= text.length; at += 1 + roll(6)) {
      grown = grownBlocks(grown, text.slice(0, at));
      assert.deepEqual([...grown.blocks], splitBlocks(text.slice(0, at)));
    }
    assert.deepEqual([...grownBlocks(grown, "another").blocks], ["another"]);
  }
});

test("Markdown is cut only between blocks, and never inside a fence", () => {
  const text = "# One\n\nTwo\n\n```py\na\n\nb\n```\n\n- x\n\n- y\n\n  z\n\nend";
  const blocks = splitBlocks(text);
  assert.deepEqual(blocks, ["# One", "Two", "```py\na\n\nb\n```\n\n- x\n\n- y\n\n  z", "end"]);
  assert.equal(blocks.join("\n\n"), text);
});

test("what others landed meanwhile is no decision of this person", () => {
  const row = (reason: string) => ({ path: "/a", reason });
  assert.equal(isLandedAlready({ code: "stale", refused: [] }), true);
  assert.equal(isLandedAlready({ code: "nothing_to_land", refused: [] }), true);
  assert.equal(isLandedAlready({ code: "landing_refused", refused: [row("unchanged"), row("unchanged")] }), true);
  assert.equal(isLandedAlready({ code: "landing_refused", refused: [row("unchanged"), row("both_modified")] }), false);
  assert.equal(isLandedAlready({ code: "conflict", refused: [] }), false);
});
