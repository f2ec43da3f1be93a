/** A text that is put together from pieces, whichever way they come (D-28): random ones, by a seed that is said. */

import assert from "node:assert/strict";
import { test } from "node:test";
import type { ServerFrame } from "../src/api/frames.ts";
import { reduce } from "../src/state/conversation.ts";
import { EMPTY } from "../src/state/entries.ts";
import { NOTHING, take } from "../src/state/pieces.ts";

/** More in the drill (`benchmarks/web_fold.py`). */
const RUNS = Number(process.env.FOLD_RUNS ?? 2000);
const LETTERS = ["a", "b", "é", "漢", "🐦", "\n", "e\u0301"].join("");

/** Whole numbers below `most`, the same for one seed. */
function dice(seed: number): (most: number) => number {
  let state = seed;
  return (most) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * most);
  };
}

/** A text, and spans of it that cover it, some of them twice, in any order. */
function cut(seed: number): { text: string; pieces: { content: string; offset: number }[] } {
  const roll = dice(seed);
  const letters = [...LETTERS];
  const whole = Array.from({ length: roll(30) }, () => letters[roll(letters.length)] ?? "");
  const places = [0, whole.length, ...Array.from({ length: roll(6) }, () => roll(whole.length + 1))].sort((a, b) => a - b);
  const spans = places.slice(1).map((end, at) => [places[at] ?? 0, end] as const);
  for (let more = roll(6); more > 0; more -= 1) {
    const ends = [roll(whole.length + 1), roll(whole.length + 1)].sort((a, b) => a - b);
    spans.splice(roll(spans.length + 1), 0, [ends[0] ?? 0, ends[1] ?? 0]);
  }
  for (let at = spans.length - 1; at > 0; at -= 1) {
    const other = roll(at + 1);
    const kept = spans[at] ?? [0, 0];
    spans[at] = spans[other] ?? [0, 0];
    spans[other] = kept;
  }
  return {
    text: whole.join(""),
    pieces: spans.map(([begin, end]) => ({ content: whole.slice(begin, end).join(""), offset: begin })),
  };
}

test("cut, repeated, late and early pieces give the same text", () => {
  for (let seed = 1; seed <= RUNS; seed += 1) {
    const { text, pieces } = cut(seed);
    const found = pieces.reduce((before, piece) => take(before, piece.content, piece.offset), NOTHING);
    assert.equal(found.text, text, `seed ${seed}`);
    assert.equal(found.length, [...text].length, `seed ${seed}`);
  }
});

test("so they do in a conversation, and what a broken stream left is forgotten", () => {
  const place = { message_id: "msg_3", turn_id: "t_1", cursor: 2 };
  for (let seed = 1; seed <= RUNS / 4; seed += 1) {
    const [old, next] = [cut(seed), cut(seed + 10_000)];
    const frames: ServerFrame[] = old.pieces.map((piece) => ({ type: "text_delta", ...piece, ...place }));
    if (seed % 2) frames.push({ type: "message_restart", message_id: "msg_3", reason: "lost", turn_id: "t_1", cursor: 2 });
    else frames.push({ type: "text_delta", content: next.pieces[0]?.offset === 0 ? next.pieces[0].content : "", offset: 0, replay: true, ...place });
    frames.push(...next.pieces.map((piece): ServerFrame => ({ type: "text_delta", ...piece, ...place })));
    const entry = reduce(EMPTY, frames).entries.find((each) => each.kind === "text");
    assert.equal(entry?.kind === "text" ? entry.text : "", next.text, `seed ${seed}`);
  }
});
