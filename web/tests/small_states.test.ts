/** What a person chose, who that is, subagents of records, memories, words for numbers (UI-8, UI-15, UI-35, UI-94). */

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { createElement } from "react";
import { renderToStaticMarkup } from "react-dom/server";
import { dark, local, page, paper } from "./support/globals.ts";
import { serve, type Server } from "./support/server.ts";
import type { Subagent, Tournament } from "../src/api/types.ts";
import { columnsOf, takeAll, tournamentCalls } from "../src/state/attempts.ts";
import type { Entry, SubagentEntry, ToolEntry } from "../src/state/entries.ts";
import { askWhoIAm, useMay, whenIAmKnown, type Role } from "../src/state/me.ts";
import { linesChanged } from "../src/state/memory.ts";
import { isAway } from "../src/ui/browser.ts";
import { activity, keyParameter, stepInWords } from "../src/state/plain.ts";
import { applyTheme, chooseTheme, drafts, prefer, themeNow, usePreferences } from "../src/state/preferences.ts";
import { undoReason } from "../src/state/review.ts";
import { makerCount, stateOfSubagent, withRecords } from "../src/state/subagents.ts";
import { day, month, thousands } from "../src/state/words.ts";

let server: Server;
before(async () => (server = await serve()));
after(() => server.stop());

/** What a hook gives to a component that is drawn once. */
function hook<Value>(use: () => Value): Value {
  let found: Value | undefined;
  renderToStaticMarkup(
    createElement(() => {
      found = use();
      return null;
    }),
  );
  return found as Value;
}

test("who this is is asked once, and decides what is offered", async () => {
  const may = (role: Role): boolean => hook(() => useMay(role));
  assert.deepEqual([may("user"), may("admin")], [true, false]);
  assert.equal(await askWhoIAm(), null); // the server is away
  server.rest.set("/api/auth/me", { authenticated: false });
  assert.equal(await askWhoIAm(), null);
  let told = 0;
  const stop = whenIAmKnown(() => (told += 1));
  for (const [role, name, user, admin] of [["viewer", "ann", false, false], ["admin", "", true, true], ["king", "bob", false, false]] as const) {
    server.rest.set("/api/auth/me", { authenticated: true, role, name, email: "a@example.org" });
    const me = await askWhoIAm();
    assert.deepEqual([me?.name, may("user"), may("admin")], [name || "a@example.org", user, admin]);
  }
  stop();
  await askWhoIAm();
  assert.equal(told, 3);
});

test("a theme follows the system until one was chosen, and storage that fails takes nothing away", () => {
  const root = page.documentElement.dataset;
  applyTheme("user");
  assert.deepEqual([themeNow(), root["theme"], root["face"]], ["system", "light", "user"]);
  dark.matches = true;
  dark.dispatchEvent(new Event("change"));
  assert.equal(root["theme"], "dark");
  chooseTheme("light");
  assert.deepEqual([themeNow(), root["theme"], page.colour], ["light", "light", "light colour"]);
  applyTheme("dev");
  chooseTheme("dark");
  assert.deepEqual([root["theme"], root["face"]], ["dark", "dev"]);
  for (const [onPaper, theme] of [[true, "light"], [false, "dark"]] as const) {
    paper.matches = onPaper;
    paper.dispatchEvent(new Event("change"));
    assert.equal(root["theme"], theme);
  }
  local.broken = true;
  assert.equal(themeNow(), "system");
  prefer({ enter: "queue" });
  drafts.set("c", "half a thou");
  assert.deepEqual([hook(usePreferences).enter, drafts.get("c")], ["queue", ""]);
  local.broken = false;
  drafts.set("c", "half a thou");
  assert.equal(drafts.get("c"), "half a thou");
  drafts.set("c", "");
  assert.equal(drafts.get("c"), "");
});

const card = (status: string): SubagentEntry => ({ kind: "subagent", key: "sub:c.sub0", turn: "t1", task: "Look", agentType: "explore", status, summary: "", toolCount: null, elapsed: null }) as SubagentEntry;
const record = (more: object = {}): Subagent =>
  ({ session: "c.sub0", handle: "subagent_0", task: 'Look at "it"', agent_type: "explore", state: "finished", created: "2026-01-01T00:00:00Z", ended: "2026-01-01T00:00:02Z", usage: { input_tokens: 5 }, result: "Seen.", error: null, ...more }) as unknown as Subagent;
const tool = (name: string, input: object, status = "ok"): ToolEntry => ({ kind: "tool", key: name, turn: "t1", tool: name, input, status, result: "" }) as unknown as ToolEntry;

test("a subagent's card says what its record says, once it is over", () => {
  assert.equal(stateOfSubagent(card("running"), null), "running");
  assert.equal(stateOfSubagent(card("ok"), null), "finished");
  assert.equal(stateOfSubagent(card("stopped"), null), "stopped");
  assert.equal(stateOfSubagent(card("strange"), null), "failed");
  assert.equal(stateOfSubagent(card("running"), record({ state: "merged" })), "merged");
});

test("subagents that nobody watched stand behind the call that named their task", () => {
  const calls: Entry[] = [tool("bash", {}), tool("task", { prompt: 'Look at "it"' }), tool("spawn_subagents", { tasks: [{ task: "Note it" }] }, "running")];
  assert.equal(makerCount(calls), 3);
  const rows = withRecords(calls, [record(), record({ session: "c.sub1", task: "Note it", ended: null, error: "gone wrong" })]);
  assert.deepEqual(rows.map((row) => row.kind), ["tool", "tool", "subagent", "tool", "subagent"]);
  assert.deepEqual([(rows[2] as SubagentEntry).elapsed, (rows[4] as SubagentEntry).status], [2, "running"]);
  assert.equal(withRecords([card("ok")], [record()]).length, 1);
});

test("a memory's versions differ by lines", () => {
  assert.deepEqual(linesChanged("a\n\nb\n", "b\nc\n"), { added: ["c"], removed: ["a"] });
});

test("attempts come best first, and one can be taken whole", () => {
  const attempt = (handle: string): object => ({ handle });
  const told = { attempts: [attempt("s0"), attempt("s1"), attempt("s2")], ranking: [{ handle: "s1", rank: 1 }] } as unknown as Tournament;
  assert.deepEqual(columnsOf(told).map((one) => [one.handle, one.ranked?.rank ?? null]), [["s1", 1], ["s0", null], ["s2", null]]);
  const rows = [{ path: "/a", cells: { s0: {} } }, { path: "/b", cells: { s1: {} } }] as unknown as Parameters<typeof takeAll>[0];
  assert.deepEqual(takeAll(rows, "s0"), { "/a": "s0" });
  assert.deepEqual(tournamentCalls([tool("bash", {}), tool("run_tournament", {})]).map((call) => call.tool), ["run_tournament"]);
});

test("numbers, days and months are written as people do", () => {
  assert.equal(thousands(50_000), new Intl.NumberFormat().format(50_000));
  assert.match(month("2026-11"), /2026/);
  assert.match(day("2026-11-20", true), /20.*2026|2026.*20/);
});

test("an undo that is refused is not told as what an agent did", () => {
  assert.equal(undoReason("modify_delete"), "It is no longer what the landing left.");
  assert.equal(undoReason("dir_gained").includes("directory"), true);
});

test("steps are sentences, and the pill tells what goes on", () => {
  assert.equal(keyParameter({ n: 1, label: "first\nsecond" }), "first");
  assert.equal(keyParameter({ n: 1 }), "");
  assert.notEqual(stepInWords(tool("write_file", {}) as never), "");
  assert.match(stepInWords(tool("bash", { command: "ls" }, "error") as never), /–/);
  assert.notEqual(activity([card("running")]), "");
  assert.notEqual(activity([tool("write_file", { path: "/a.md" }, "running")]), "");
  assert.notEqual(activity([tool("bash", { command: "ls" }, "running")]), "");
  assert.notEqual(activity([tool("write_file", { path: "/a.md" })]), "");
  assert.equal(typeof activity([tool("read_file", { path: "/a.md" })]), "string");
});

test("a part of the application that cannot be fetched is away, anything else is broken", () => {
  assert.equal(isAway(new TypeError("Failed to fetch dynamically imported module: /assets/flow.js")), true);
  assert.equal(isAway(new TypeError("error loading dynamically imported module")), true);
  assert.equal(isAway(new Error("Parse error on line 2")), false);
});
