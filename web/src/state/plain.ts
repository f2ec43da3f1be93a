/** Tool calls in plain words, for people who never asked what a tool is (UI-7). Pure. */

import type { Entry, ToolEntry } from "./entries.ts";

type Verb = "read" | "write" | "run" | "search" | "web" | "plan" | "other";

const FAMILIES: readonly (readonly [RegExp, Verb])[] = [
  [/^(write_file|edit_file|delete_file|move_file|apply_patch|create_)/, "write"],
  [/^(read_file|ls|list_files|show_changes|list_symbols)/, "read"],
  [/^(search_files|find_references|grep|glob)/, "search"],
  [/^(bash|run_|background_|check_background|cancel_background|execute)/, "run"],
  [/^web_/, "web"],
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
    if (typeof value === "string" && value) return value.split("\n", 1)[0] ?? "";
  }
  const first = Object.values(input).find((value) => typeof value === "string");
  return typeof first === "string" ? (first.split("\n", 1)[0] ?? "") : "";
}

function fileName(path: unknown): string {
  return typeof path === "string" ? (path.split("/").filter(Boolean).pop() ?? path) : "a file";
}

const ENDED: Readonly<Record<string, string>> = {
  error: "it did not work",
  denied: "not allowed",
  interrupted: "stopped",
};

export type Step = Pick<ToolEntry, "tool" | "input" | "status">;

/** Return one step as a sentence: “Changed notes.md”; what did not happen is not said as if it had. */
export function stepInWords(entry: Step): string {
  if (entry.status === "ok" || entry.status === "running") return words(entry, entry.status === "running");
  return `${words(entry, true)} – ${ENDED[entry.status] ?? entry.status}`;
}

function words(entry: Step, goes: boolean): string {
  const file = fileName(entry.input["path"]);
  switch (verb(entry.tool)) {
    case "write":
      if (entry.tool === "delete_file") return goes ? `Removing ${file}` : `Removed ${file}`;
      if (entry.tool === "write_file") return goes ? `Writing ${file}` : `Wrote ${file}`;
      return goes ? `Changing ${file}` : `Changed ${file}`;
    case "read":
      if (entry.tool === "ls" || entry.tool === "list_files") {
        return goes ? "Looking through the files" : "Looked through the files";
      }
      return goes ? `Reading ${file}` : `Read ${file}`;
    case "search":
      return goes ? "Searching the files" : "Searched the files";
    case "run":
      if (TESTS.test(keyParameter(entry.input))) return goes ? "Running the tests" : "Ran the tests";
      return goes ? "Running a command" : "Ran a command";
    case "web":
      return goes ? "Looking on the web" : "Looked on the web";
    case "plan":
      return goes ? "Thinking it through" : "Thought it through";
    case "other":
      return goes ? "Working" : "Took a step";
  }
}

/** Return what the pill says of a run of work: “Editing 2 files”, “Running the tests”. */
export function activity(entries: readonly Entry[]): string {
  const subagents = entries.filter((entry) => entry.kind === "subagent");
  const researching = subagents.filter((entry) => entry.status === "running").length;
  if (researching > 0) return researching === 1 ? "Researching…" : `Researching… ${researching} at once`;
  const tools = entries.filter((entry) => entry.kind === "tool");
  const running = tools.filter((tool) => tool.status === "running");
  const done = tools.filter((tool) => tool.status === "ok" && verb(tool.tool) === "write");
  const written = new Set(done.map((tool) => fileName(tool.input["path"])));
  const last = running.at(-1);
  if (last) {
    const files = new Set(
      running.filter((tool) => verb(tool.tool) === "write").map((tool) => fileName(tool.input["path"])),
    );
    if (files.size > 0) return files.size === 1 ? `Editing ${[...files][0]}` : `Editing ${files.size} files`;
    return stepInWords(last);
  }
  if (written.size > 0) return written.size === 1 ? `Edited ${[...written][0]}` : `Edited ${written.size} files`;
  const newest = tools.at(-1);
  return newest ? stepInWords(newest) : "Looked into it";
}
