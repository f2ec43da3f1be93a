/** Every frame that the server sends changes what a conversation shows, or there is a reason why not. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { EXAMPLES } from "../generated/frame_examples.ts";
import { LINES } from "../generated/frames.ts";
import type { ServerFrame } from "../src/api/frames.ts";
import { NOT_SHOWN } from "../src/state/asides.ts";
import { reduce } from "../src/state/conversation.ts";
import { EMPTY, type ConversationState } from "../src/state/entries.ts";

const FIRST = ["turn_queued", "turn_started", "text_delta", "tool_call", "tool_approval_request"];
const example = (type: string): ServerFrame => EXAMPLES.find((frame) => frame.type === type) as ServerFrame;
const before = reduce(EMPTY, FIRST.map(example), 1000);
const QUESTIONS = ["plan_ready", "budget_exceeded"]; // they have the id of the one that is open
const withoutCursor = (state: ConversationState): ConversationState => ({ ...state, cursor: 0 });

for (const frame of EXAMPLES) {
  test(`the page draws ${frame.type}, or says why not`, () => {
    const base = [...FIRST, ...QUESTIONS].includes(frame.type) ? EMPTY : before;
    // What a refused connection or another state changes is drawn; that nothing changed need not be.
    const shown = frame.type === "egress" ? { ...frame, verdict: "refused: not allowed" } : frame;
    const isSame = isEqual(withoutCursor(reduce(base, [shown], 1000)), withoutCursor(base));
    const reason = NOT_SHOWN[frame.type];
    assert.equal(isSame, reason !== undefined, reason ?? `no drawer for ${frame.type} in web/src/state`);
  });
}

test("a frame with a line and nothing else is said in that line", () => {
  const line = example("egress");
  const state = reduce(EMPTY, [{ ...line, verdict: "refused: x" } as ServerFrame]);
  assert.deepEqual(state.entries.map((entry) => entry.kind === "note" && entry.text), ["network: pypi.org:443 refused: x"]);
  assert.ok("sandbox_tier" in LINES);
});

function isEqual(a: unknown, b: unknown): boolean {
  try {
    assert.deepEqual(a, b);
    return true;
  } catch {
    return false;
  }
}
