import assert from "node:assert/strict";
import { test } from "node:test";
import type { ConversationRow } from "../src/api/types.ts";
import { withFound } from "../src/sessions/search.ts";

const row = (id: string, title: string, more: Partial<ConversationRow> = {}): ConversationRow =>
  ({ id, title, status: "idle", ...more }) as ConversationRow;

test("titles fit at once, what was said when the server has looked (UI-82)", () => {
  const rows = [row("a1", "Taxes", { status: "running" }), row("b2", "Other"), row("c3", "More")];
  const place = { cursor: 3, role: "user", text: "the tax office" };
  assert.deepEqual(withFound(rows, "tax", []).map((found) => found.id), ["a1"]);
  const both = withFound(rows, "TAX", [row("a1", "Taxes"), row("b2", "Other", { found: place }), row("z9", "Far away", { found: place })]);
  assert.deepEqual(both.map((found) => found.id), ["a1", "b2", "z9"]);
  assert.equal(both[0]!.status, "running");
  assert.deepEqual([both[0]!.found, both[1]!.found], [null, place]);
  assert.equal(withFound(rows, "", []).length, 3);
});
