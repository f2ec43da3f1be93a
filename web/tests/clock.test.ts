import assert from "node:assert/strict";
import { test } from "node:test";
import { hearServerTime, serverNow } from "../src/state/clock.ts";
import { ago } from "../src/state/words.ts";

const NOON = Date.parse("2026-11-20T12:00:00Z");
const said = new Date(NOON).toUTCString();

test("a clock that is hours off says what the server's says", () => {
  hearServerTime(said, NOON - 5 * 3_600_000);
  assert.equal(serverNow(NOON - 5 * 3_600_000), NOON);
  hearServerTime(said, NOON + 3 * 3_600_000);
  assert.equal(serverNow(NOON + 3 * 3_600_000 + 1000), NOON + 1000);
});

test("seconds between the clocks are none, and a clock that was set is believed again", () => {
  hearServerTime(said, NOON - 3_600_000);
  hearServerTime(said, NOON + 12_000);
  assert.equal(serverNow(NOON), NOON);
});

test("an answer without a date, or with none that can be read, changes nothing", () => {
  hearServerTime(said, NOON - 3_600_000);
  hearServerTime(null, NOON);
  hearServerTime("yesterday", NOON);
  assert.equal(serverNow(NOON - 3_600_000), NOON);
  hearServerTime(said, NOON);
});

test("how long ago something was is counted from the server's time", () => {
  const device = Date.now();
  hearServerTime(new Date(device + 7_200_000).toUTCString(), device);
  assert.equal(ago(new Date(device + 3_500_000).toISOString()), "1 hr. ago");
  hearServerTime(new Date(device).toUTCString(), device);
});
