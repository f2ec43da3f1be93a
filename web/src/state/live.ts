/**
 * A conversation that is open: socket, folded state, what was said but not accepted, recorded traffic.
 *
 * One value per conversation, shared by all views of it. Frames are folded at most once per animation frame
 * (UI-16). Not here: the fold (`conversation.ts`), the connection (`api/socket.ts`).
 */

import { api } from "../api/client.ts";
import type { ClientFrame, InputKind, ServerFrame } from "../api/frames.ts";
import { ConversationSocket, type Connection } from "../api/socket.ts";
import { reduce, withQueue } from "./conversation.ts";
import { EMPTY, type ConversationState } from "./entries.ts";
import { newId } from "../ui/browser.ts";
import { Traffic } from "./traffic.ts";

export interface Said {
  id: string;
  kind: InputKind;
  content: string;
}

export interface LiveView {
  state: ConversationState;
  connection: Connection;
  retryAt: number | null;
  /** Inputs that the server has not acknowledged yet. */
  unsent: readonly Said[];
  /** The history has been replayed: what is missing is not “loading”. */
  ready: boolean;
}

const HIDDEN_FLUSH_MS = 150;
const SETTLE_MS = 60;

export class LiveConversation {
  readonly id: string;
  readonly traffic = new Traffic();
  #view: LiveView = { state: EMPTY, connection: "connecting", retryAt: null, unsent: [], ready: false };
  #pending: ServerFrame[] = [];
  #flushing = false;
  #listeners = new Set<() => void>();
  #socket: ConversationSocket | null = null;
  #settle: ReturnType<typeof setTimeout> | undefined;

  constructor(id: string) {
    this.id = id;
  }

  /** Be told of changes; the first listener opens the connection, the last one's leaving closes it. */
  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    this.#socket ??= this.#connect();
    return () => {
      this.#listeners.delete(listener);
      // Views come and go within one render: only who stays away closes the connection.
      setTimeout(() => {
        if (this.#listeners.size > 0 || !this.#socket) return;
        this.#socket.close();
        this.#socket = null;
      }, 1000);
    };
  };

  readonly view = (): LiveView => this.#view;

  /** Say something; kept and sent once when there is no connection (UI-21). */
  say(kind: InputKind, content: string): void {
    const said: Said = { id: newId(), kind, content };
    this.#set({ unsent: [...this.#view.unsent, said] });
    this.#socket?.send({ type: kind, content, id: said.id });
  }

  send(frame: ClientFrame): boolean {
    return this.#socket?.send(frame) ?? false;
  }

  reconnect(): void {
    this.#socket?.reconnect();
  }

  #connect(): ConversationSocket {
    return new ConversationSocket(this.id, {
      frame: (frame, size) => this.#take(frame, size),
      sent: (frame) => this.traffic.add("out", frame, JSON.stringify(frame).length),
      connection: (connection, retryAt) => this.#set({ connection, retryAt }),
      cursor: () => this.#view.state.cursor,
      unsent: () => this.#view.unsent.map(({ id, kind, content }) => ({ type: kind, content, id })),
    });
  }

  #take(frame: ServerFrame, size: number): void {
    this.traffic.add("in", frame, size);
    if (frame.type === "accepted") {
      this.#pending.push(frame);
    } else if (frame.type === "hello") {
      this.#pending.push(frame);
      if (frame.queued > 0) void this.#listQueue();
      this.#settled(frame.cursor ?? 0);
    } else if (frame.type !== "pong") {
      this.#pending.push(frame);
    }
    if (this.#flushing) return;
    this.#flushing = true;
    if (document.hidden) setTimeout(this.#flush, HIDDEN_FLUSH_MS);
    else requestAnimationFrame(this.#flush);
  }

  /** The history is here once the cursor that `hello` named is reached; an empty one is here at once. */
  #settled(head: number): void {
    clearTimeout(this.#settle);
    const look = (): void => {
      if (this.#view.state.cursor >= head) this.#set({ ready: true });
      else this.#settle = setTimeout(look, SETTLE_MS);
    };
    this.#settle = setTimeout(look, 0);
  }

  readonly #flush = (): void => {
    this.#flushing = false;
    const frames = this.#pending;
    this.#pending = [];
    const accepted = new Set(frames.flatMap((frame) => (frame.type === "accepted" ? [frame.id] : [])));
    const unsent = accepted.size ? this.#view.unsent.filter((said) => !accepted.has(said.id)) : this.#view.unsent;
    this.#set({ state: reduce(this.#view.state, frames, Date.now()), unsent });
  };

  async #listQueue(): Promise<void> {
    const shown = await api.conversation(this.id);
    const rows = shown.queued.map((row) => ({
      inbox: row.inbox_id,
      turn: row.turn_id,
      position: row.position,
      kind: row.kind,
      text: row.content,
      by: row.sender?.name ?? null,
      door: row.sender?.door ?? null,
    }));
    this.#set({ state: withQueue(this.#view.state, rows) });
  }

  #set(change: Partial<LiveView>): void {
    this.#view = { ...this.#view, ...change };
    for (const listener of this.#listeners) listener();
  }
}

const open = new Map<string, LiveConversation>();
const MOST_OPEN = 8;

/** Try all connections again at once: somebody has signed in. */
export function reconnectAll(): void {
  for (const live of open.values()) live.reconnect();
}

/** Return the one live value of a conversation; the least recently asked for are forgotten. */
export function liveConversation(id: string): LiveConversation {
  const known = open.get(id) ?? new LiveConversation(id);
  open.delete(id);
  open.set(id, known);
  const oldest = open.keys().next().value;
  if (open.size > MOST_OPEN && oldest !== undefined) open.delete(oldest);
  return known;
}
