/** Tool calls in plain words, for people who never asked what a tool is (UI-7). Pure. */

import { seenName, seenText } from "./hidden_marks.ts";
import { t } from "../text.ts";
import type { Entry, ToolEntry } from "./entries.ts";

type Verb = "read" | "write" | "run" | "search" | "web" | "plan" | "ask" | "help" | "other";

const FAMILIES: readonly (readonly [RegExp, Verb])[] = [
  [/^(write_file|edit_file|delete_file|move_file|apply_patch|create_)/, "write"],
  [/^(read_file|ls|list_files|show_changes|list_symbols)/, "read"],
  [/^(search_files|find_references|grep|glob)/, "search"],
  [/^(bash|run_|background_|check_background|cancel_background|execute)/, "run"],
  [/^web_/, "web"],
  [/^ask_user/, "ask"],
  [/^(task$|run_tournament|(spawn|merge|discard|read)_(subagents?|teammate)|list_teammates|send_message|read_inbox|broadcast|answer_message)/, "help"],
  [/^(todo_|task|think|compact|enter_plan|exit_plan|skill|load_skill)/, "plan"],
];

const TESTS = /\b(pytest|npm (run )?test|go test|cargo test|unittest|make (check|test))\b/;

function verb(tool: string): Verb {
  return FAMILIES.find(([pattern]) => pattern.test(tool))?.[1] ?? "other";
}

/** Return the parameter that says most about a call: `/a.py`, `pytest -q`. */
export function keyParameter(input: Record<string, unknown>): string {
  for (const name of ["path", "command", "code", "query", "pattern", "url", "source", "name", "question"]) {
    const value = input[name];
    if (typeof value === "string" && value) return firstLine(value);
  }
  const first = Object.values(input).find((value) => typeof value === "string");
  return typeof first === "string" ? firstLine(first) : "";
}

const firstLine = (text: string): string => seenText(text.split("\n", 1)[0] ?? "");

/** Return what a call was given as text that can be read: a command as it was, several members by their names. */
export function readableInput(input: Record<string, unknown>): string {
  const members = Object.entries(input);
  const text = (value: unknown): string => seenText(typeof value === "string" ? value : JSON.stringify(value, null, 2));
  const [only] = members;
  if (members.length === 1 && only && typeof only[1] === "string") return text(only[1]);
  return members
    .map(([name, value]) => {
      const said = text(value);
      return said.includes("\n") ? `${name}:\n${said.replace(/^/gm, "  ")}` : `${name}: ${said}`;
    })
    .join("\n");
}

function fileName(path: unknown): string {
  return typeof path === "string" ? seenName(path.split("/").filter(Boolean).pop() ?? path) : t.aFile;
}

export type Step = Pick<ToolEntry, "tool" | "input" | "status">;

/** Return one step as a sentence: “Changed notes.md”; what did not happen is not said as if it had. */
export function stepInWords(entry: Step): string {
  if (entry.status === "ok" || entry.status === "running") return words(entry, entry.status === "running");
  // A command that failed did run; a file that could not be written was not.
  const ran = entry.status === "error" && verb(entry.tool) === "run";
  return `${words(entry, !ran)} – ${t.stepEnded[entry.status] ?? entry.status}`;
}

function words(entry: Step, goes: boolean): string {
  return t.stepWords[kindOf(entry)](fileName(entry.input["path"]))[goes ? 0 : 1];
}

function kindOf(entry: Step): keyof typeof t.stepWords {
  const kind = verb(entry.tool);
  if (kind === "write") return entry.tool === "delete_file" ? "remove" : entry.tool === "write_file" ? "write" : "change";
  if (kind === "read") return entry.tool === "ls" || entry.tool === "list_files" ? "list" : "read";
  if (kind === "run") return TESTS.test(keyParameter(entry.input)) ? "test" : "run";
  return kind;
}

/** Return how a run of work stands: going, or how the step ended that its words are about. */
export function standing(entries: readonly Entry[]): string {
  const tools = entries.filter((entry) => entry.kind === "tool");
  const goes = entries.some((entry) => (entry.kind === "tool" || entry.kind === "subagent") && entry.status === "running");
  if (goes) return "running";
  return tools.some((tool) => tool.status === "ok" && verb(tool.tool) === "write") ? "ok" : (tools.at(-1)?.status ?? "ok");
}

const RULE = /^(\w+)\((.*)\)$/s;

/** Return what a rule covers, without names of tools: `bash(git push *)` is “commands that begin with “git push””. */
export function ruleInWords(rule: string): string {
  const [, tool = rule, pattern = ""] = RULE.exec(rule) ?? [];
  const [, head = pattern, more] = /^(.*?)( \*|(?<=\/)\*{1,2})?$/s.exec(pattern) ?? [];
  const what = head.replace(/\[([*?[])\]/g, "$1"); // a star that is meant as one
  const kind = verb(tool);
  if (!what) return t.ruleOf.whole(tool);
  if (kind === "run") return more ? t.ruleOf.commands(what) : t.ruleOf.command(what);
  if (kind === "write") return more ? t.ruleOf.changes(what) : t.ruleOf.change(what);
  if (kind === "read" || kind === "search") return t.ruleOf.read(what);
  return kind === "web" ? t.ruleOf.web(what) : t.ruleOf.other(tool, what);
}

/** Return what the pill says of a run of work: “Editing 2 files”, “Running the tests”. */
export function activity(entries: readonly Entry[]): string {
  const subagents = entries.filter((entry) => entry.kind === "subagent");
  const researching = subagents.filter((entry) => entry.status === "running").length;
  if (researching > 0) return t.researching(researching);
  const tools = entries.filter((entry) => entry.kind === "tool");
  const running = tools.filter((tool) => tool.status === "running");
  const done = tools.filter((tool) => tool.status === "ok" && verb(tool.tool) === "write");
  const written = new Set(done.map((tool) => fileName(tool.input["path"])));
  const last = running.at(-1);
  if (last) {
    const files = new Set(
      running.filter((tool) => verb(tool.tool) === "write").map((tool) => fileName(tool.input["path"])),
    );
    if (files.size > 0) return t.editing([...files][0] ?? "", files.size);
    return stepInWords(last);
  }
  if (written.size > 0) return t.edited([...written][0] ?? "", written.size);
  const newest = tools.at(-1);
  return newest ? stepInWords(newest) : t.lookedInto;
}

/** Return what a note about a landing says without names of records: “2 files are in your folder now.” */
export function landingInWords(said: string): string {
  const landed = /^landed (\d+) paths? as /.exec(said);
  if (landed) return t.keptNote(Number(landed[1]));
  return /^took \S+ back as /.test(said) ? t.takenBackNote : said;
}
