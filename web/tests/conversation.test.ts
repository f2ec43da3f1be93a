/** The fold over frames: what is shown for which frames, however often and in which pieces they come. */

import assert from "node:assert/strict";
import { test } from "node:test";
import type { ServerFrame, Usage } from "../src/api/frames.ts";
import { fromFirstWhole, isBusy, joined, openRequests, reduce, withQueue } from "../src/state/conversation.ts";
import { EMPTY, type ConversationState } from "../src/state/entries.ts";

const usage: Usage = {
  input_tokens: 10,
  output_tokens: 2,
  last_input_tokens: 10,
  plan_mode: false,
  cache_read_tokens: 0,
  cache_write_tokens: 0,
  reasoning_tokens: 0,
  cost: 0.1,
  subagents: {},
};
const turn_id = "t_1";
const input = (text: string, more: object = {}): ServerFrame =>
  ({ type: "turn_queued", inbox_id: "i_1", position: 0, content: text, turn_id, cursor: 0, ...more }) as ServerFrame;
const delta = (content: string, cursor = 2, more: object = {}): ServerFrame =>
  ({ type: "text_delta", content, message_id: "msg_3", offset: 0, turn_id, cursor, ...more }) as ServerFrame;
const from = (offset: number): object => ({ offset });
const started: ServerFrame = { type: "turn_started", turn_id, cursor: 1 };
const done: ServerFrame = { type: "done", usage, files: [], stop_reason: "end_turn", changed: 1, turn_id, cursor: 5 };
const call: ServerFrame = { type: "tool_call", tool: "bash", input: { command: "ls" }, id: "c1", turn_id, cursor: 3 };
const result: ServerFrame = { type: "tool_result", tool: "bash", result: "a", id: "c1", status: "ok", turn_id, cursor: 4 };

const after = (...frames: ServerFrame[]): ConversationState => reduce(EMPTY, frames, 1000);
const shape = (state: ConversationState): string[] =>
  state.entries.map((entry) => (entry.kind === "text" || entry.kind === "user" ? `${entry.kind}:${entry.text}` : entry.kind));

test("a turn reads as question, answer, call and end, in that order", () => {
  const state = after(input("hi"), started, delta("Let "), delta("me.", 2, from(4)), call, result, done);
  assert.deepEqual(shape(state), ["user:hi", "text:Let me.", "tool", "end"]);
  assert.equal(state.status, "idle");
  assert.equal(state.cursor, 5);
});

test("one frame at a time gives what all frames at once give", () => {
  const frames = [input("hi"), started, delta("Let "), delta("me.", 2, from(4)), call, result, done];
  const single = frames.reduce((state, frame) => reduce(state, [frame], 1000), EMPTY);
  assert.deepEqual(single, after(...frames));
});

test("a replayed piece stands for its whole message: nothing is shown twice (SV-46)", () => {
  const live = after(input("hi"), started, delta("Half a w"));
  const state = reduce(live, [delta("Half a word, whole.", 3, { replay: true })]);
  assert.deepEqual(shape(state), ["user:hi", "text:Half a word, whole."]);
});

test("who comes in the middle of an answer sees the rest of it as it is said (D-28)", () => {
  const state = after(started, delta("Half a w", 2, { replay: true }), delta("ord.", 2, from(8)), delta("ord.", 2, from(8)));
  assert.deepEqual(shape(state), ["text:Half a word."]);
});

test("frames that come again change nothing", () => {
  const frames = [input("hi"), started, delta("All.", 3, { replay: true }), call, result, done];
  const once = after(...frames);
  assert.deepEqual(shape(reduce(once, frames)), shape(once));
});

test("an input that the replay does not name is the one that was seen live", () => {
  const live = after(input("hi"), started);
  const again = input("hi", { inbox_id: "", cursor: 2, replay: true });
  assert.deepEqual(shape(reduce(live, [again, again])), ["user:hi"]);
  assert.deepEqual(shape(after(started, again)), ["user:hi"]);
});

test("a message said during a turn waits, and stands where its turn begins", () => {
  const busy = after(input("one"), started, delta("…"));
  const queued = reduce(busy, [input("two", { inbox_id: "i_2", turn_id: "t_2", position: 1 })]);
  assert.equal(queued.queued.length, 1);
  const next = reduce(queued, [done, { type: "turn_started", turn_id: "t_2", cursor: 6 }]);
  assert.deepEqual(shape(next), ["user:one", "text:…", "end", "user:two"]);
  assert.equal(next.queued.length, 0);
});

test("a message that is taken back is gone", () => {
  const busy = after(input("one"), started);
  const row = { inbox_id: "i_2", turn_id: "t_2", position: 1 };
  const state = reduce(busy, [input("two", row), input("two", { ...row, state: "cancelled" })]);
  assert.equal(state.queued.length, 0);
});

test("what waited before the viewer came is listed once", () => {
  const row = { inbox: "i_1", turn: "t_1", position: 0, kind: "message", text: "hi", by: null, door: null };
  assert.equal(withQueue(EMPTY, [row]).queued.length, 1);
  assert.equal(withQueue(after(input("hi"), started), [row]).queued.length, 0);
});

test("a question is open until it is answered, by whomever", () => {
  const asked: ServerFrame = { type: "tool_approval_request", request_id: "r1", tools: [], turn_id, cursor: 4 };
  const state = after(input("hi"), started, call, asked);
  assert.equal(openRequests(state).length, 1);
  assert.equal(state.status, "waiting");
  assert.ok(isBusy(state));
  const answered = reduce(state, [{ type: "tool_approval_result", decision: "approved", tools: [], request_id: "r1" }]);
  assert.equal(openRequests(answered).length, 0);
  assert.equal(answered.status, "running");
});

test("when a turn stops, what ran in it is over", () => {
  const state = after(input("hi"), started, call, { type: "interrupted", usage, files: [], turn_id, cursor: 5 });
  const tool = state.entries.find((entry) => entry.kind === "tool");
  assert.equal(tool?.kind === "tool" && tool.status, "interrupted");
});

test("the head that hello names is no place that was reached", () => {
  const state = after({ type: "hello", state: "running", tier: "overlay", viewers: 1, queued: 0, head: 90, cursor: 90 });
  assert.equal(state.cursor, 0);
});

test("an error of no turn is an alert, one of a turn stands in the conversation", () => {
  const state = after(
    { type: "error", message: "nothing runs", code: "not_running", turn_id: null },
    { type: "error", message: "no model", code: "model_error", turn_id, cursor: 3 },
  );
  assert.equal(state.alerts.length, 1);
  assert.deepEqual(shape(state), ["note"]);
});

test("the end of a history, read first, becomes the whole when its beginning comes (UI-16)", () => {
  const frames = [input("Hello", { replay: true, cursor: 1 }), started, delta("Looking.", 2, { replay: true }), call, result, done];
  const whole = reduce(EMPTY, frames);
  const end = frames.slice(4);
  const shown = reduce(EMPTY, end, 1000);
  assert.deepEqual(fromFirstWhole(shown.entries.filter((entry) => entry.kind === "tool")), [], "nor where nothing else has come yet");
  assert.deepEqual(fromFirstWhole(shown.entries).map((entry) => entry.kind), ["end"], "a result whose call is not here is not drawn");
  const both = joined(frames.slice(0, 4), end, shown, 2000);
  assert.deepEqual(both.entries.map((entry) => entry.key), whole.entries.map((entry) => entry.key));
  assert.equal(both.cursor, whole.cursor);
  assert.equal(both.filesVersion, shown.filesVersion, "nothing changed: more is known");
  const tool = both.entries.find((entry) => entry.kind === "tool");
  assert.ok(tool?.kind === "tool" && tool.input["command"] === "ls" && tool.endedAt === 1000);
  assert.equal(fromFirstWhole(both.entries), both.entries);
});

test("a board that changes is shown where it belongs, not in a chat that happens to be looked at", () => {
  const board = { type: "task_update", tasks: [{ id: 1, subject: "look", status: "pending" }], cursor: 4, turn_id: null } as unknown as ServerFrame;
  assert.equal(reduce(EMPTY, [board]).todos.length, 0);
  assert.equal(reduce({ ...EMPTY, flags: { teams: true } }, [board]).todos.length, 1);
  assert.equal(reduce(EMPTY, [{ ...board, turn_id: "t_1" } as ServerFrame]).todos.length, 1);
});
