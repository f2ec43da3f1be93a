/** What is seen before any script ran (UI-93). */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import vm from "node:vm";
import { firstPaint } from "../src/app/first_paint.ts";
import { t } from "../src/text.ts";

const theme = readFileSync(new URL("../public/theme.js", import.meta.url), "utf8");

/** What `theme.js` says on the root of a page at an address. */
function started(pathname: string, kept: Record<string, string> = {}, base = ""): Record<string, string> {
  const dataset: Record<string, string> = {};
  vm.runInNewContext(theme, {
    document: { documentElement: { dataset }, querySelector: (asked: string) => ({ getAttribute: () => (asked.includes("pages") ? "{}" : base) }) },
    location: { pathname },
    localStorage: { getItem: (key: string) => kept[key] ?? null },
    matchMedia: () => ({ matches: false }),
  });
  return dataset;
}

test("the first words are those of the page that follows, and nobody is told to use them", () => {
  for (const words of [t.welcome, t.welcomeText, t.sessions, t.landsNothing, ...t.ideas]) assert.ok(firstPaint.includes(words), words);
  assert.match(firstPaint, /aria-hidden="true"/);
  assert.doesNotMatch(firstPaint, /<(button|a|input|textarea|h1)\b/);
  assert.doesNotMatch(firstPaint, /src="\//); // below a prefix the server writes the address
});

test("the page's address and the sidebar's choice decide what of it is seen", () => {
  const closed = { "bowerbird.preferences": '{"sidebar":false}' };
  assert.equal(started("/")["start"], "welcome");
  assert.equal(started("/dev")["start"], "overview");
  assert.equal(started("/c/1")["start"], "page");
  assert.equal(started("/birds/", {}, "/birds")["start"], "welcome");
  assert.equal(started("/dev", closed)["start"], "overview wide");
  assert.equal(started("/", { "bowerbird.preferences": "{" })["start"], "welcome");
});
