import assert from "node:assert/strict";
import { test } from "node:test";
import type { ConversationRow } from "../src/api/types.ts";
import { withOlder } from "../src/sessions/list.ts";

const row = (id: string, updated_at: string): ConversationRow => ({ id, updated_at }) as ConversationRow;
const ids = (rows: readonly ConversationRow[]): string => rows.map((one) => one.id).join(" ");

test("a new first page keeps the older rows that it pushes down, and none twice", () => {
  const known = [row("d", "4"), row("c", "3"), row("b", "2"), row("a", "1")];
  assert.equal(ids(withOlder([row("e", "5"), row("d", "4")], known)), "e d c b a");
  assert.equal(ids(withOlder([row("a", "6"), row("d", "4")], known)), "a d c b", "one that is used again is no older one");
  assert.equal(ids(withOlder([row("d", "4"), row("b", "2")], known)), "d b a", "one that is gone from the page is gone");
  assert.equal(ids(withOlder([], known)), "");
});
