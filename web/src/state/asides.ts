/** Frames beside the dialogue itself: notices, errors, subagents. Pure. Not here: messages, tools, turns (`conversation.ts`). */

import type { ServerFrame } from "../api/frames.ts";
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
    default:
      return; // accepted, pong, traces, egress: nothing of the conversation's text
  }
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

export function failure(draft: Draft, frame: Extract<ServerFrame, { type: "error" }>, turn: string | null): void {
  if (turn) {
    const key = `error:${turn}:${frame.cursor ?? 0}:${frame.code ?? ""}`;
    return note(draft, turn, "error", frame.message, frame.code ?? null, key, frame.retryable === true);
  }
  const alert = { key: `alert:${draft.alerts.length}:${frame.message}`, text: frame.message, code: frame.code ?? null };
  draft.alerts = [...draft.alerts.slice(-9), alert];
}

export function subagent(
  draft: Draft,
  frame: Extract<ServerFrame, { type: "subagent_start" | "subagent_delta" | "subagent_end" }>,
  turn: string | null,
): void {
  const key = `sub:${frame.subagent_id}`;
  if (frame.type === "subagent_delta") {
    const more = frame.text ?? frame.content ?? "";
    return change(draft, key, "subagent", (e) => ({ ...e, progress: (e.progress + more).slice(-2000) }));
  }
  put(draft, {
    kind: "subagent",
    key,
    turn,
    task: frame.type === "subagent_start" ? frame.task : "",
    agentType: frame.agent_type,
    status: "running",
    summary: "",
    progress: "",
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
