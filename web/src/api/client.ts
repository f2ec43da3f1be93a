/** REST of the server, one function per route that the faces use. Not here: the socket, any state of the view. */

import { t } from "../text.ts";
import { hearServerTime } from "../state/clock.ts";
import { asJson } from "./json.ts";
import { base, origin } from "./place.ts";
import type { CallAnswer } from "./frames.ts";
import type {
  AgentProbe,
  AgentRow,
  AgentRun,
  Budget,
  Call,
  Comment,
  Conflict,
  Conversation,
  ConversationRow,
  Diff,
  FileListRow,
  FileText,
  LandRequest,
  Landing,
  LandingCheck,
  LandingPlan,
  ReviewShown,
  MemoryVersion,
  Merged,
  ModelRow,
  Named,
  NewBudget,
  NewConversation,
  NewToken,
  NewTournament,
  Permission,
  Question,
  Refused,
  Sandbox,
  Skill,
  Subagent,
  SubagentWhole,
  TokenMade,
  TokenRow,
  Tournament,
  OutcomeRow,
  UsageRow,
  WorkspaceRow,
} from "./types.ts";

const TOKEN_KEY = "bowerbird.token";

/** An answer that is no success: what the server said, and its code. */
export class ApiError extends Error {
  readonly status: number;
  readonly code: string;
  readonly refused: Refused[];
  /** Each thing that is wrong, where there are several. */
  readonly errors: readonly string[];

  constructor(status: number, code: string, message: string, refused: Refused[] = [], errors: readonly string[] = []) {
    super(message);
    this.name = "ApiError";
    this.status = status;
    this.code = code;
    this.refused = refused;
    this.errors = errors;
  }
}

type Listener = () => void;
let onSignedOut: Listener = () => undefined;
/** The credential was refused, and nobody has given another: pages below the sign-in page ask for nothing. */
let refused = false;
const SIGN_IN = ["/api/auth/config", "/api/auth/me"];

/** Let `listener` hear when a credential is needed; there is one sign-in page. */
export function whenSignedOut(listener: Listener): void {
  onSignedOut = listener;
}

/** Somebody signed in: pages may ask again. */
export function signedIn(): void {
  refused = false;
}

/** `secret` was refused; one that was given meanwhile is not touched by it. */
function refuse(secret: string | null): void {
  if (secret !== token.get()) return;
  token.clear();
  refused = true;
  onSignedOut();
}

/** The credential, kept by this tab (UI-38); tabs hand it on among themselves (`app/sign_in_elsewhere.ts`). */
export const token = {
  get: (): string | null => sessionStorage.getItem(TOKEN_KEY),
  set: (value: string): void => sessionStorage.setItem(TOKEN_KEY, value),
  clear: (): void => sessionStorage.removeItem(TOKEN_KEY),
};

function headers(json: boolean): Record<string, string> {
  const secret = token.get();
  return {
    ...(json ? { "Content-Type": "application/json" } : {}),
    ...(secret ? { Authorization: `Bearer ${secret}` } : {}),
  };
}

/** Return the address of a path of the API. */
export function address(path: string): string {
  return `${origin()}${base()}${path}`;
}

/** Ask the API and return its answer; raises ApiError. */
export async function call<Answer>(method: string, path: string, body?: unknown): Promise<Answer> {
  const response = await send(method, path, body);
  return (await response.json()) as Answer;
}

export async function send(method: string, path: string, body?: unknown, more: Record<string, string> = {}): Promise<Response> {
  if (refused && !SIGN_IN.includes(path)) throw new ApiError(401, "unauthorized", t.signInFirst);
  const secret = token.get();
  let response: Response;
  try {
    response = await fetch(address(path), {
      method,
      headers: { ...headers(body !== undefined), ...more },
      body: body === undefined ? null : asJson(body),
    });
  } catch {
    throw new ApiError(0, "unreachable", t.unreachable);
  }
  hearServerTime(response.headers.get("date"), Date.now());
  if (response.ok) return response;
  if (response.status === 401) refuse(secret);
  throw await failure(response);
}

async function failure(response: Response): Promise<ApiError> {
  let said: { detail?: unknown; code?: string; refused?: Refused[]; errors?: string[] } = {};
  try {
    said = (await response.json()) as typeof said;
  } catch {
    // a proxy's page: the status is all there is to say
  }
  return new ApiError(response.status, said.code ?? "error", words(said.detail, response.status), said.refused ?? [], said.errors ?? []);
}

function words(detail: unknown, status: number): string {
  if (typeof detail === "string") return detail;
  if (Array.isArray(detail)) {
    const rows = detail as { loc?: (string | number)[]; msg?: string }[];
    return rows.map((row) => `${(row.loc ?? []).slice(1).join(".")}: ${row.msg ?? t.notValid}`).join("; ");
  }
  return t.answeredStatus(status);
}

const id = encodeURIComponent;
const pathOf = (path: string): string => path.replace(/^\//, "").split("/").map(encodeURIComponent).join("/");

/** Return `?a=b` of the members that are there. */
function query(members: Record<string, string | number | null | undefined>): string {
  const given = Object.entries(members).filter((pair): pair is [string, string | number] => pair[1] != null && pair[1] !== "");
  return given.length > 0 ? `?${given.map(([name, value]) => `${name}=${id(String(value))}`).join("&")}` : "";
}

/** What goes with a decision: of an approval, what is decided of single calls. */
export interface AnswerMore {
  feedback?: string;
  amount?: number;
  calls?: Record<string, CallAnswer>;
}

export const api = {
  health: () => call<{ status: string; model?: string; version?: string; sandbox?: string }>("GET", "/health"),
  authConfig: () => call<{ enabled: boolean; google_client_id: string | null }>("GET", "/api/auth/config"),
  me: () => call<{ authenticated: boolean; user?: string; email?: string; name?: string; role?: string }>("GET", "/api/auth/me"),
  ticket: () => call<{ ticket: string }>("POST", "/api/auth/ticket"),

  conversations: (search = "") => call<ConversationRow[]>("GET", `/api/conversations${query({ search })}`),
  conversationsAfter: (before: string) => call<ConversationRow[]>("GET", `/api/conversations${query({ before })}`),
  conversation: (conversation: string) =>
    call<Conversation>("GET", `/api/conversations/${id(conversation)}?limit=1&after=999999999`),
  begin: (wanted: NewConversation) => call<{ conversation_id: string }>("POST", "/api/chat", wanted),
  rename: (conversation: string, title: string) =>
    call<Conversation>("PATCH", `/api/conversations/${id(conversation)}`, { title }),
  settings: (conversation: string, changes: Record<string, unknown>) =>
    call<Conversation>("PATCH", `/api/conversations/${id(conversation)}`, changes),
  remove: (conversation: string) => call<{ status: string }>("DELETE", `/api/conversations/${id(conversation)}`),
  restore: (conversation: string) =>
    call<ConversationRow>("POST", `/api/conversations/${id(conversation)}/restore`),
  fork: (conversation: string, turn?: string) =>
    call<{ conversation_id: string }>("POST", `/api/conversations/${id(conversation)}/fork`, turn ? { turn_id: turn } : {}),
  compact: (conversation: string) => call("POST", `/api/conversations/${id(conversation)}/compact`, {}),
  takeBack: (conversation: string, inbox: string) =>
    call("DELETE", `/api/conversations/${id(conversation)}/queue/${id(inbox)}`),
  toolCall: (conversation: string, callId: string, offset = 0) =>
    call<Call>("GET", `/api/conversations/${id(conversation)}/calls/${id(callId)}?offset=${offset}`),
  traces: (conversation: string) =>
    call<Record<string, unknown>[]>("GET", `/api/conversations/${id(conversation)}/traces?limit=1000`),

  diff: (conversation: string) => call<Diff>("GET", `/api/conversations/${id(conversation)}/diff`),
  diffOf: (conversation: string, path: string) =>
    call<Diff>("GET", `/api/conversations/${id(conversation)}/diff?path=${id(path)}`),
  patchOf: async (conversation: string, path: string) =>
    (await send("GET", `/api/conversations/${id(conversation)}/diff?format=unified&path=${id(path)}`)).text(),
  landingPlan: (conversation: string) => call<LandingPlan>("GET", `/api/conversations/${id(conversation)}/landing-plan`),
  review: (conversation: string) => call<ReviewShown>("GET", `/api/conversations/${id(conversation)}/review`),
  conflict: (conversation: string, path: string) => call<Conflict>("GET", `/api/conversations/${id(conversation)}/conflict?path=${id(path)}`),
  check: (conversation: string) => call<LandingCheck>("GET", `/api/conversations/${id(conversation)}/check`),
  beginCheck: (conversation: string) => call<LandingCheck>("POST", `/api/conversations/${id(conversation)}/check`),
  land: (conversation: string, wanted: LandRequest) =>
    call<Landing>("POST", `/api/conversations/${id(conversation)}/land`, wanted),
  discard: (conversation: string, paths?: string[]) =>
    call<{ paths: string[] }>("POST", `/api/conversations/${id(conversation)}/discard`, paths ? { paths } : {}),
  comment: (conversation: string, comments: Comment[]) =>
    call<{ turn_id: string }>("POST", `/api/conversations/${id(conversation)}/comments`, { comments }),
  landings: (conversation?: string) =>
    call<Landing[]>("GET", conversation ? `/api/landings?conversation=${id(conversation)}` : "/api/landings"),
  landingsAfter: (before: string) => call<Landing[]>("GET", `/api/landings${query({ before })}`),
  landingDiff: (landing: string) => call<Diff>("GET", `/api/landings/${id(landing)}/diff`),
  undo: (landing: string, force = false) =>
    call<Landing>("POST", `/api/landings/${id(landing)}/undo`, force ? { force } : {}),

  /** `at`: a turn, for the files as they were when it ended. */
  files: (conversation: string | null, at?: string | null) =>
    call<FileListRow[]>("GET", `/api/workspace/files${query({ conversation, at })}`),
  /** What `@` may name: files that are not ignored. */
  names: (conversation: string | null) => call<{ names: string[]; truncated: boolean }>("GET", `/api/workspace/names${query({ conversation })}`),
  file: (path: string, conversation: string | null, at?: string | null) =>
    call<FileText>("GET", `/api/workspace/file/${pathOf(path)}${query({ conversation, at })}`),
  /** Bytes of a file: as the branch has it, as it was before the branch changed it, or as of a turn. */
  download: async (conversation: string, path: string, version?: "old", at?: string | null) =>
    (await send("GET", `/api/files/${id(conversation)}/${pathOf(path)}${query({ version, at })}`)).blob(),
  /** The first `bytes` of a file as text. */
  beginning: async (conversation: string, path: string, bytes: number, version?: "old") =>
    (await send("GET", `/api/files/${id(conversation)}/${pathOf(path)}${query({ version })}`, undefined, { Range: `bytes=0-${bytes - 1}` })).text(),
  /** How many bytes a file had before the branch changed it. */
  oldSize: async (conversation: string, path: string) => {
    const answer = await send("GET", `/api/files/${id(conversation)}/${pathOf(path)}?version=old`, undefined, { Range: "bytes=0-0" });
    const whole = /\/(\d+)$/.exec(answer.headers.get("content-range") ?? "")?.[1];
    return whole === undefined ? (await answer.blob()).size : Number(whole);
  },

  subagents: (conversation: string) => call<Subagent[]>("GET", `/api/conversations/${id(conversation)}/subagents`),
  subagent: (conversation: string, handle: string, limit?: number) =>
    call<SubagentWhole>("GET", `/api/conversations/${id(conversation)}/subagents/${id(handle)}${query({ limit })}`),
  mergeSubagent: (conversation: string, handle: string, wanted: { paths?: string[]; force?: boolean } = {}) =>
    call<Merged>("POST", `/api/conversations/${id(conversation)}/subagents/${id(handle)}/merge`, wanted),
  discardSubagent: (conversation: string, handle: string) =>
    call("POST", `/api/conversations/${id(conversation)}/subagents/${id(handle)}/discard`),
  beginAttempts: (conversation: string, wanted: NewTournament) =>
    call<Tournament>("POST", `/api/conversations/${id(conversation)}/attempts`, wanted),
  tournaments: (conversation: string) => call<Tournament[]>("GET", `/api/conversations/${id(conversation)}/attempts`),
  attempts: (conversation: string, tournament: string) =>
    call<Tournament>("GET", `/api/conversations/${id(conversation)}/attempts/${id(tournament)}`),

  skills: () => call<Named[]>("GET", "/api/skills"),
  skill: (name: string) => call<Skill>("GET", `/api/skills/${id(name)}`),
  writeSkill: (skill: Skill, overwrite: boolean) =>
    call<Named>("POST", `/api/skills${overwrite ? "?overwrite=true" : ""}`, skill),
  removeSkill: (name: string) => call("DELETE", `/api/skills/${id(name)}`),
  memory: (workspace: string | null) => call<MemoryVersion[]>("GET", `/api/memory/versions${query({ workspace })}`),
  restoreMemory: (version: number, workspace: string | null) =>
    call<MemoryVersion>("POST", "/api/memory/restore", workspace ? { version, workspace } : { version }),
  tokens: () => call<TokenRow[]>("GET", "/api/auth/tokens"),
  makeToken: (wanted: NewToken) => call<TokenMade>("POST", "/api/auth/tokens", wanted),
  revokeToken: (token: string) => call("DELETE", `/api/auth/tokens/${id(token)}`),
  budgets: () => call<Budget[]>("GET", "/api/budgets"),
  setBudget: (wanted: NewBudget) => call<Budget>("PUT", "/api/budgets", wanted),

  models: () => call<ModelRow[]>("GET", "/api/models"),
  presets: () => call<Named[]>("GET", "/api/presets"),
  workspaces: () => call<WorkspaceRow[]>("GET", "/api/workspaces"),
  sandbox: () => call<Sandbox>("GET", "/api/sandbox"),
  approvals: () => call<Question[]>("GET", "/api/approvals"),
  answer: (request: string, decision: string, more: AnswerMore = {}) =>
    call("POST", `/api/approvals/${id(request)}`, { decision, ...more }),
  agents: () => call<AgentRow[]>("GET", "/api/agents"),
  probeAgent: (name: string) => call<AgentProbe>("POST", `/api/agents/${id(name)}/probe?live=true`),
  agentRuns: () => call<AgentRun[]>("GET", "/api/agents/runs"),
  permissions: () => call<Permission[]>("GET", "/api/permissions"),
  removePermission: (rule: number) => call("DELETE", `/api/permissions/${rule}`),
  outcomes: (by: "model" | "preset" | "agent") => call<{ rows: OutcomeRow[] }>("GET", `/api/usage/outcomes?by=${by}`),
  usage: (by: "day" | "model" | "conversation") => call<{ rows: UsageRow[] }>("GET", `/api/usage?by=${by}`),
};

/** Send files with progress; the returned `cancel` stops it (UI-33). */
export function upload(
  files: readonly File[],
  folder: string,
  conversation: string | null,
  progress: (share: number) => void,
): { done: Promise<string[]>; cancel: () => void } {
  const request = new XMLHttpRequest();
  const secret = token.get();
  const query = new URLSearchParams({ subdir: folder });
  if (conversation) query.set("conversation", conversation);
  const done = new Promise<string[]>((resolve, reject) => {
    request.upload.onprogress = (event) => progress(event.lengthComputable ? event.loaded / event.total : 0);
    request.onload = () => {
      if (request.status < 300) resolve((JSON.parse(request.responseText) as { uploaded: string[] }).uploaded);
      else {
        if (request.status === 401) refuse(secret);
        void failure(new Response(request.responseText, { status: request.status })).then(reject);
      }
    };
    request.onerror = () => reject(new ApiError(0, "unreachable", t.uploadCut));
    request.onabort = () => reject(new ApiError(0, "cancelled", t.uploadCancelled));
  });
  const body = new FormData();
  for (const file of files) body.append("files", file, file.name);
  request.open("POST", address(`/api/workspace/upload?${query}`));
  if (secret) request.setRequestHeader("Authorization", `Bearer ${secret}`);
  request.send(body);
  return { done, cancel: () => request.abort() };
}
