/** SV-47: what a person typed reaches the server whatever a cut left of its characters. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { asJson } from "../src/api/json.ts";

test("half a character is replaced, whole ones stay", () => {
  const cut = "🙂🙂".slice(0, 3);
  assert.deepEqual(JSON.parse(asJson({ type: "message", content: cut, n: [1, null, "\ude42"] })), {
    type: "message",
    content: "🙂\ufffd",
    n: [1, null, "\ufffd"],
  });
  assert.equal(asJson("né 🙂"), JSON.stringify("né 🙂"));
});
