/**
 * The frames of the conversation socket with `v=2`, as the server's own structs describe them (UI-3).
 *
 * Their types are made by `scripts/build_web_types.py`; the manual says what each means.
 */

import type * as Wire from "../../generated/frames.ts";

export type { BackgroundRun, CallAnswer, ClientFrame, FileRow, LandingProgress, LlmRequest, LlmResponse, ServerFrame, ToolDiff, ToolUse } from "../../generated/frames.ts";
export type Usage = Wire.TurnUsage;
export type TurnState = Wire.Hello["state"];

/** An item of the conversation's list, or a task of the board: drawn alike. */
export type Todo = Partial<Wire.Todo & Wire.Task>;

export type Decision = "approve" | "deny" | "auto_approve";
export type InputKind = (Wire.Message | Wire.Interrupt | Wire.Steer)["type"];

/** A frame of one of these types. */
export type FrameOf<Type extends Wire.ServerFrame["type"]> = Extract<Wire.ServerFrame, { type: Type }>;

/** Return a text as a frame, null for what is none: a proxy's page, say. */
export function parseFrame(text: string): Wire.ServerFrame | null {
  try {
    const value: unknown = JSON.parse(text);
    const known = typeof value === "object" && value !== null && "type" in value && typeof value.type === "string";
    return known ? (value as Wire.ServerFrame) : null;
  } catch {
    return null;
  }
}
