/** Frames beside the dialogue itself: notices, errors, subagents. Pure. Not here: messages, tools, turns (`conversation.ts`). */

import { LINES } from "../../generated/frames.ts";
import type { FrameOf, ServerFrame } from "../api/frames.ts";
import { t } from "../text.ts";
import { change, put, type Draft } from "./draft.ts";
import type { NoteEntry } from "./entries.ts";

export function notes(draft: Draft, frame: ServerFrame, turn: string | null): void {
  switch (frame.type) {
    case "compact":
      return note(draft, turn, "info", frame.message, "compact");
    case "notice":
      return note(draft, turn, "info", frame.message, frame.kind);
    case "retrying":
      return note(
        draft,
        turn,
        "warn",
        t.retrying(frame.reason, Math.round(frame.delay_s * 10) / 10),
        "retrying",
        `retry:${turn}:${frame.attempt}:${draft.entries.length}`,
      );
    case "model_fallback":
      return note(draft, turn, "warn", t.fallback(frame.from, frame.to, frame.reason), "model_fallback");
    case "background_result":
      for (const row of frame.notifications) {
        note(draft, turn, "info", t.backgroundEnded(row.command ?? null, row.status), "background", `bg:${row.task_id}`);
      }
      return;
    case "teammate_status":
      draft.teammates = { ...draft.teammates, [frame.name]: { role: frame.role, status: frame.status } };
      return;
    case "egress":
      if (frame.verdict !== "allowed") note(draft, turn, "warn", lineOf(frame), "egress");
      return;
    default:
      if (frame.type in LINES) note(draft, turn, "info", lineOf(frame), frame.type);
  }
}

/** Frames of which a conversation shows nothing, and why. */
export const NOT_SHOWN: Partial<Record<ServerFrame["type"], string>> = {
  accepted: "what was said is shown once its turn is queued",
  pong: "answers a question of the connection",
  llm_request: "the developer's inspector shows traces",
  llm_response: "the developer's inspector shows traces",
  background_runs: "answers `background`, which the page does not send",
};

/** Return the line that says a frame, in the server's words; "" for one that has none. */
function lineOf(frame: ServerFrame): string {
  const line: string = (LINES as Partial<Record<ServerFrame["type"], string>>)[frame.type] ?? "";
  const members = frame as unknown as Record<string, unknown>;
  return line.replace(/\{(\w+)\}/g, (_, name: string) => String(members[name]));
}

export function note(
  draft: Draft,
  turn: string | null,
  tone: NoteEntry["tone"],
  words: string,
  code: string | null,
  key = `note:${turn}:${code}:${words}`,
  retryable = false,
): void {
  put(draft, { kind: "note", key, turn, tone, text: words, code, retryable });
}

export function failure(draft: Draft, frame: FrameOf<"error">, turn: string | null): void {
  if (turn) {
    const key = `error:${turn}:${frame.cursor ?? 0}:${frame.code ?? ""}`;
    return note(draft, turn, "error", frame.message, frame.code ?? null, key, frame.retryable === true);
  }
  const alert = { key: `alert:${draft.alerts.length}:${frame.message}`, text: frame.message, code: frame.code ?? null };
  draft.alerts = [...draft.alerts.slice(-9), alert];
}

export function subagent(
  draft: Draft,
  frame: FrameOf<"subagent_start" | "subagent_end">,
  turn: string | null,
): void {
  const key = `sub:${frame.subagent_id}`;
  put(draft, {
    kind: "subagent",
    key,
    turn,
    task: frame.type === "subagent_start" ? frame.task : "",
    agentType: frame.agent_type,
    status: "running",
    summary: "",
    toolCount: null,
    elapsed: null,
    handle: frame.handle ?? null,
    tokens: null,
  });
  if (frame.type !== "subagent_end") return;
  const usage = frame.usage;
  change(draft, key, "subagent", (entry) => ({
    ...entry,
    status: frame.status ?? "done",
    summary: frame.summary,
    handle: frame.handle ?? entry.handle,
    toolCount: frame.tool_count ?? null,
    elapsed: frame.elapsed ?? null,
    tokens: usage ? (usage.input_tokens ?? 0) + (usage.output_tokens ?? 0) : null,
  }));
}
