/** Numbers and times in words, which words of a line changed, the ring of frames, answers: the small pure parts. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { answerOf } from "../src/state/answers.ts";
import type { Entry } from "../src/state/entries.ts";
import { hunkData } from "../src/state/hunks.ts";
import { fileMark, keptBeside, hunkChosen, toggled } from "../src/state/review.ts";
import type { ChangedFile } from "../src/state/review.ts";
import { changeOf, pairTraces, Traffic } from "../src/state/traffic.ts";
import { changedWords, wordEdits } from "../src/state/word_edits.ts";
import { ago, costOf, count, day, dollars, moment, percent, seconds, short, size } from "../src/state/words.ts";

test("numbers are as short as they can be read", () => {
  assert.deepEqual([999, 12_400, 999_499, 999_500, 2_000_000, 150_000].map(short), ["999", "12.4k", "999k", "1M", "2M", "150k"]);
  assert.deepEqual([0, 0.0041, 0.25, 3].map(dollars), ["$0", "$0.0041", "$0.25", "$3.00"]);
  assert.equal(dollars(null), dollars(undefined));
  assert.deepEqual([0, 0.004, 0.5].map(percent), ["0 %", "<1 %", "50 %"]);
  assert.deepEqual([5, 2048, 3 * 1024 * 1024].map(size), ["5 B", "2 KB", "3 MB"]);
  assert.deepEqual([-3, 12, 1500, 61_000].map(seconds), ["0 ms", "12 ms", "1.5 s", "1 min 1 s"]);
  assert.match(count(1234, "file", "files"), /^1.?234 files$/);
  assert.equal(count(1, "file", "files"), "1 file");
});

test("a sum with some calls of unknown price says what the others cost", () => {
  const row = { calls: 3, cost: null, known_cost: 0.5, unpriced_calls: 1 };
  assert.equal(costOf(row), "$0.50 + 1 unpriced");
  assert.equal(costOf({ ...row, unpriced_calls: 3 }), dollars(null));
  assert.equal(costOf({ calls: 3, cost: 0.5 }), "$0.50");
});

test("times are said from now, days by their name", () => {
  const now = new Date("2026-11-20T12:00:00Z").getTime();
  const said = ["2026-11-20T11:59:30Z", "2026-11-20T11:00:00Z", "2026-11-18T12:00:00Z", "2026-08-20T12:00:00Z", "2022-11-20T12:00:00Z"].map((iso) => ago(iso, now));
  assert.equal(new Set(said).size, 5);
  assert.match(said[4] ?? "", /4/);
  assert.match(day("2026-11-20", true), /2026/);
  assert.doesNotMatch(day("2026-11-20"), /2026/);
  assert.match(moment("2026-11-20T12:00:00Z"), /2026/);
});

test("what rounds up to a whole unit is said in that unit", () => {
  const now = new Date("2026-11-20T12:00:00Z").getTime();
  const passed = (value: number): string => ago(new Date(now - value * 1000).toISOString(), now);
  assert.equal(passed(59.7), passed(60));
  assert.equal(passed(3599), passed(3600));
  assert.deepEqual([59_960, 119_700].map(seconds), ["1 min 0 s", "2 min 0 s"]);
});

test("words that changed are found where the lines share enough", () => {
  const { lines } = hunkData({ id: "h", old_start: 1, old_lines: 1, new_start: 1, new_lines: 1, text: "-total = rows + 1\n+total = rows + 2\n" });
  const [before, after] = lines;
  const edits = wordEdits(lines);
  assert.ok(before && after);
  assert.deepEqual([edits.get(before), edits.get(after)], [[[15, 16]], [[15, 16]]]);
  assert.equal(changedWords("a".repeat(3000), "b"), null);
});

test("the ring of frames keeps the newest, pauses, and is seen by who looks later", async () => {
  const traffic = new Traffic();
  for (let at = 0; at < 6100; at += 1) traffic.add("in", { type: "pong" } as never, 1);
  let told = 0;
  const leave = traffic.subscribe(() => (told += 1));
  assert.equal(traffic.samples().length, 5000);
  assert.equal(traffic.samples().at(-1)?.number, 6100);
  traffic.pause(true);
  traffic.add("out", { type: "ping" }, 1);
  assert.equal(traffic.paused, true);
  traffic.pause(false);
  traffic.clear();
  traffic.add("out", { type: "ping" }, 1);
  await new Promise((resolve) => setTimeout(resolve, 150));
  assert.equal(traffic.samples().length, 1);
  assert.ok(told >= 1);
  leave();
});

test("requests and responses of a model are paired by their number, and what is new of a request is told", () => {
  const rows = [{ type: "llm_request", seq: 1, turn_id: "t" }, { type: "text_delta" }, { type: "llm_response", seq: 1, turn_id: "t" }, { type: "llm_request", seq: 2, turn_id: "t" }];
  const pairs = pairTraces(rows.map((body, at) => ({ body, at })));
  assert.deepEqual(pairs.map((pair) => [pair.key, pair.request !== null, pair.response !== null]), [["t:1", true, true], ["t:2", true, false]]);
  assert.deepEqual(changeOf({ messages: [1, 2], model: "a" }, { messages: [1, 3, 4], model: "b", seq: 9 }), { kept: 1, gone: 1, added: [3, 4], members: { model: "b" } });
  assert.deepEqual(changeOf({}, {}), { kept: 0, gone: 0, added: [], members: {} });
});

test("the answer of a turn is its last words", () => {
  const text = (words: string): Entry => ({ kind: "text", key: words, turn: "t", text: words, length: 0, early: new Map(), done: true });
  assert.equal(answerOf([text("first"), text("last "), text(" ")], "t"), "last");
  assert.equal(answerOf([text("first")], "other"), null);
});

test("what is ticked is all of a file, some of it or nothing", () => {
  const file = { path: "/a" } as ChangedFile;
  assert.deepEqual([{}, { "/a": "all" as const }, { "/a": ["h"] }].map((choice) => fileMark(choice, file)), ["none", "all", "some"]);
  assert.deepEqual(["h", "i"].map((hunk) => hunkChosen({ "/a": ["h"] }, "/a", hunk)), [true, false]);
  assert.equal(hunkChosen({ "/a": "all" }, "/a", "x"), true);
  assert.deepEqual(toggled(toggled(["a"], "b"), "a"), ["b"]);
  assert.deepEqual(keptBeside({ include: ["/x", "/y"], settings: ["/s"] }, { folded: [{ path: "/x" }] } as never), { include: ["/x"], settings: [] });
});
