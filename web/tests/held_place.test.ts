/** Where reading goes on in a conversation: a row, its turn, or nowhere. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { placeOfRead } from "../src/chat/held_place.ts";
import type { Row } from "../src/chat/rows.ts";

const row = (key: string, turn: string): Row => ({ kind: "entry", key, entry: { kind: "note", key, turn, tone: "info", text: key, code: null, retryable: false } });
const rows = [row("a", "t_1"), row("b", "t_1"), row("c", "t_2"), row("d", "t_2")];

test("what was read is found by its row, else by its turn once all is here (UI-16)", () => {
  const read = { row: "d", turn: "t_2", above: 10 };
  assert.equal(placeOfRead(read, { rows, whole: false }), 3);
  const other = { ...read, row: "of another way to tell it" };
  assert.equal(placeOfRead(other, { rows, whole: false }), -1);
  assert.equal(placeOfRead(other, { rows, whole: true }), 2);
});

test("a turn that an address names is found as soon as it begins (UI-24)", () => {
  const named = { row: "", turn: "t_2", above: 0 };
  assert.equal(placeOfRead(named, { rows: rows.slice(0, 2), whole: false }), -1);
  assert.equal(placeOfRead(named, { rows: rows.slice(0, 3), whole: false }), 2);
});

test("what a conversation does not have is gone, not waited for", () => {
  assert.equal(placeOfRead({ row: "x", turn: "t_9", above: 0 }, { rows, whole: true }), null);
  assert.equal(placeOfRead({ row: "x", turn: "", above: 0 }, { rows, whole: true }), null);
  assert.equal(placeOfRead({ row: "x", turn: "t_9", above: 0 }, { rows, whole: false }), -1);
});
