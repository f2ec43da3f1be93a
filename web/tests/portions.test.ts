/** A long text in rows: no word is lost or moved, whatever pieces it came in, and what is done stays (UI-92). */

import assert from "node:assert/strict";
import { test } from "node:test";
import { placeOfRead } from "../src/chat/held_place.ts";
import { Parting, rowsOf, sameRow, type Row } from "../src/chat/rows.ts";
import type { Entry, TextEntry } from "../src/state/entries.ts";
import { splitBlocks } from "../src/ui/blocks.ts";
import { grownPortions, type Parted } from "../src/ui/portions.ts";

const LINES = ["# One", "", "", "Two words", "```", "code here", "", "~~~", "- x", "  z", "1. y", "    four", "> q", "| a |", "long ".repeat(200)];

function dice(seed: number): (most: number) => number {
  let state = seed;
  return (most) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * most);
  };
}

const textsOf = ({ portions }: Parted): string[] => portions.map(({ text }) => text);

test("a text that grows by any pieces is parted as the whole is", () => {
  const roll = dice(11);
  for (let round = 0; round < 150; round += 1) {
    const text = Array.from({ length: roll(120) }, () => LINES[roll(LINES.length)]).join("\n");
    let grown: Parted | null = null;
    for (let at = 0; at <= text.length; at += 1 + roll(900)) {
      const before: Parted | null = grown;
      grown = grownPortions(before, text.slice(0, at), false);
      assert.deepEqual(textsOf(grown), textsOf(grownPortions(null, text.slice(0, at), false)));
      for (const [place, portion] of (before?.portions.slice(0, -1) ?? []).entries()) assert.equal(grown.portions[place], portion);
    }
    const whole = grownPortions(grown, text, true);
    assert.equal(textsOf(whole).join(""), text);
    assert.ok(whole.portions.every(({ done }) => done));
    assert.deepEqual(textsOf(whole).flatMap((one) => splitBlocks(one)), splitBlocks(text));
  }
});

test("what stands in one row is bounded, however many blocks a text has", () => {
  const many = Array.from({ length: 3000 }, (_, at) => `Paragraph ${at}.`).join("\n\n");
  const { portions } = grownPortions(null, many, true);
  assert.ok(portions.length > 20 && portions.every(({ text }) => splitBlocks(text).length < 110));
});

test("another text under the same name is parted anew", () => {
  const first = grownPortions(null, "A paragraph.\n\n".repeat(900), false);
  const other = grownPortions(first, "Another one.\n\n".repeat(900), false);
  assert.equal(textsOf(other).join(""), "Another one.\n\n".repeat(900));
});

test("a complete text with footnotes is one portion, so that they are found", () => {
  const text = `Said[^1] here.\n\n${"A paragraph.\n\n".repeat(300)}[^1]: The note.`;
  assert.ok(grownPortions(null, text, false).portions.length > 1);
  assert.deepEqual(grownPortions(null, text, true).portions, [{ text, done: true }]);
});

const said = (text: string, done: boolean): TextEntry => ({ kind: "text", key: "text:m_1", turn: "t_1", text, length: text.length, early: new Map(), done });

test("rows of a text that grows stay, but for the last", () => {
  const parting = new Parting();
  const text = "A paragraph.\n\n".repeat(2000);
  const rows = (length: number, done: boolean): Row[] => rowsOf([said(text.slice(0, length), done)] as Entry[], "user", parting);
  const before = rows(20_100, false);
  const after = rows(20_104, false);
  assert.ok(before.length > 3);
  assert.deepEqual(after.map((row) => row.key), before.map((row) => row.key));
  assert.deepEqual(after.map((row, at) => sameRow(row, before[at]!)), before.map((_, at) => at < before.length - 1));
  const whole = rows(text.length, true);
  assert.deepEqual(whole.slice(0, 3).map((row, at) => sameRow(row, before[at]!)), [true, true, true]);
  assert.deepEqual(whole.map((row) => row.key), rowsOf([said(text, true)], "user").map((row) => row.key));
  assert.equal(new Set(whole.map((row) => row.key)).size, whole.length);
});

test("who read a row of a text that became one row finds the text", () => {
  const rows = rowsOf([said("Short.", true)], "user");
  assert.equal(placeOfRead({ row: "text:m_1#4", turn: "t_1", above: 10 }, { rows, whole: true }), 0);
});
