/** An open conversation against a real socket: what is said, folded, kept without a connection, read back (UI-16, UI-21, UI-86). */

import assert from "node:assert/strict";
import { after, before, test, type TestContext } from "node:test";
import { page } from "./support/globals.ts";
import { serve, type Peer, type Server } from "./support/server.ts";
import { LiveConversation, liveConversation, reconnectAll, type LiveView } from "../src/state/live.ts";

let server: Server;
before(async () => (server = await serve()));
after(() => server.stop());

const facts = (cursor: number, queued: object[] = []): object => ({ id: "c", title: "", cursor, queued });
const hello = (head: number, queued = 0): object => ({ type: "hello", state: "idle", tier: "overlay", viewers: 1, queued, head, cursor: 0, turn_id: null });
const thought = (cursor: number, content: string): object => ({ type: "thinking", content, effort: "high", turn_id: `t${cursor}`, cursor });
const text = (content: string, offset: number, cursor: number): object => ({ type: "text_delta", content, message_id: "m9", offset, cursor, turn_id: "t1" });

/** Resolves once the view is as wanted; the runner's own limit catches a hang. */
function until(live: LiveConversation, wanted: (view: LiveView) => boolean): Promise<void> {
  return new Promise((resolve) => {
    const stop = live.subscribe(() => look());
    const look = (): void => {
      if (!wanted(live.view())) return;
      queueMicrotask(stop);
      resolve();
    };
    look();
  });
}

/** Open a conversation until the test is over; its first connection. */
async function opened(context: TestContext, id: string, cursor = 0, queued: object[] = []): Promise<{ live: LiveConversation; peer: Peer }> {
  server.rest.set(`/api/conversations/${id}`, facts(cursor, queued));
  const live = liveConversation(id);
  context.after(live.subscribe(() => undefined));
  return { live, peer: await server.peer(id) };
}

test("deltas are folded by their offsets, and the beginning is said to be here", async (context) => {
  const { live, peer } = await opened(context, "short");
  assert.match(peer.url, /after=0/);
  peer.say(hello(0), { type: "turn_started", cursor: 1, turn_id: "t1" }, text("Hel", 0, 1), text("lo", 3, 1), text("lo", 3, 1));
  await until(live, (view) => view.state.entries.some((entry) => entry.kind === "text" && entry.text === "Hello"));
  await live.whole();
  assert.equal(live.view().connection, "open");
  assert.ok(live.view().ready);
});

test("what was said without a connection is sent once it is there, and kept until it is accepted", async (context) => {
  liveConversation("unsent").say("message", "Are you there?");
  const { live, peer } = await opened(context, "unsent");
  peer.say(hello(0));
  await until(live, (view) => view.ready);
  const said = live.view().unsent[0];
  assert.equal(said?.content, "Are you there?");
  while (peer.heard.length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
  assert.deepEqual(peer.heard[0], { type: "message", content: "Are you there?", id: said?.id });
  peer.say({ type: "accepted", id: said?.id, position: 0, duplicate: false, cursor: 0, turn_id: "t1" });
  await until(live, (view) => view.unsent.length === 0);
  assert.ok(live.send({ type: "cancel" }));
});

test("a cut connection comes back after the record that is known", async (context) => {
  const { live, peer } = await opened(context, "cut");
  peer.say(hello(1), { type: "turn_started", cursor: 1, turn_id: "t1" });
  await until(live, (view) => view.state.cursor === 1);
  peer.close(4500);
  await until(live, (view) => view.connection === "waiting");
  reconnectAll();
  const again = await server.peer("cut");
  assert.match(again.url, /after=1/);
  again.close(4004);
  await until(live, (view) => view.connection === "gone");
});

test("of a long history the end comes first, then what was before it", async (context) => {
  const { live, peer } = await opened(context, "long", 1000);
  assert.match(peer.url, /after=700/);
  peer.say(hello(1000), thought(999, "near the end"), { type: "turn_started", cursor: 1000, turn_id: "t1000" });
  const whole = live.whole();
  const reader = await server.peer("long");
  assert.match(reader.url, /after=0/);
  reader.close(4500); // the first reading fails; it is tried again
  const second = await server.peer("long");
  second.say(hello(1000), thought(1, "the first words"), thought(700, "the last of before"), thought(999, "near the end"));
  await whole;
  const words = live.view().state.entries.flatMap((entry) => (entry.kind === "thinking" ? [entry.text] : []));
  assert.deepEqual(words, ["the first words", "the last of before", "near the end"]);
});

test("queued messages are listed when the connection opens, and a hidden page goes on folding", async (context) => {
  const row = { inbox_id: "i1", turn_id: "t2", position: 1, kind: "message", content: "and then", sender: { name: "ann", door: "web" } };
  page.hidden = true;
  const { live, peer } = await opened(context, "queued", 0, [row, { ...row, inbox_id: "i2", sender: null }]);
  peer.say(hello(0, 2));
  await until(live, (view) => view.ready && view.state.queued.length === 2);
  assert.equal(live.view().state.queued[0]?.by, "ann");
  page.hidden = false;
});

test("one conversation has one live value, and only so many are kept", () => {
  const first = liveConversation("kept 0");
  assert.equal(liveConversation("kept 0"), first);
  for (let at = 1; at <= 8; at += 1) liveConversation(`kept ${at}`);
  assert.notEqual(liveConversation("kept 0"), first);
});
