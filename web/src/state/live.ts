/**
 * A conversation that is open: socket, folded state, what was said but not accepted, recorded traffic.
 *
 * One value per conversation, shared by all views of it. Frames are folded at most once per animation frame
 * (UI-16). Not here: the fold (`conversation.ts`), the connection (`api/socket.ts`).
 */

import { api } from "../api/client.ts";
import type { ClientFrame, InputKind, ServerFrame } from "../api/frames.ts";
import { ConversationSocket, readHistory, type Connection } from "../api/socket.ts";
import { joined, reduce, withQueue } from "./conversation.ts";
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
  /** The end of the history is here: what is missing below is not “loading”. */
  ready: boolean;
  /** So is its beginning: of a long one the end comes first. */
  whole: boolean;
}

const HIDDEN_FLUSH_MS = 150;
/** Drawing may take one part of so many of the time; a slow device draws less often, and keeps up with its person. */
const SHARE = 8;
const LONGEST_PAUSE_MS = 350;
/** How long a history that is read back may stay undrawn: nobody reads its beginning while it races by. */
const CATCH_UP_MS = 1500;
/** Of a history with more records than this the last `TAIL` come first, the others once those are shown. */
const LONG = 600;
const TAIL = 300;
const RETRY_MS = 2000;

export class LiveConversation {
  readonly id: string;
  readonly traffic = new Traffic();
  #view: LiveView = { state: EMPTY, connection: "connecting", retryAt: null, unsent: [], ready: false, whole: false };
  #pending: ServerFrame[] = [];
  #flushing = false;
  /** Until when nothing is drawn. */
  #pause = 0;
  /** The newest record when the connection opened: up to there frames are history. */
  #head: number | null = null;
  #catchUp: ReturnType<typeof setTimeout> | undefined;
  /** The record that the connection began after, and every frame since, until what came before is here. */
  #start = 0;
  #since: ServerFrame[] = [];
  #reading = false;
  #listeners = new Set<() => void>();
  #socket: ConversationSocket | null = null;

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

  /** Resolves when the whole history is here. */
  whole(): Promise<void> {
    return new Promise((resolve) => {
      const stop = this.subscribe(() => look());
      const look = (): void => {
        if (!this.#view.whole) return;
        stop();
        resolve();
      };
      look();
    });
  }

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
      expecting: () => this.#view.state.status === "running",
      cursor: () => this.#view.state.cursor || this.#beginning(),
      unsent: () => this.#view.unsent.map(({ id, kind, content }) => ({ type: kind, content, id })),
    });
  }

  /** After which record a first connection begins: near the end of a long history. */
  async #beginning(): Promise<number> {
    // What was just begun is short; an address that names a turn may name an early one.
    if (this.#view.unsent.length > 0 || location.hash) return 0;
    const head = await api.conversation(this.id).then(
      (found) => found.cursor,
      () => 0, // the socket says what is wrong
    );
    this.#start = head > LONG ? head - TAIL : 0;
    return this.#start;
  }

  /** Read what came before the connection's beginning, and put it above what is shown. */
  async #readBefore(): Promise<void> {
    this.#reading = true;
    try {
      const before = await readHistory(this.id, this.#start);
      this.#set({ state: joined(before, this.#since, this.#view.state, Date.now()), whole: true });
      this.#since = [];
    } catch {
      setTimeout(() => {
        this.#reading = false;
        this.#lookBefore();
      }, RETRY_MS);
    }
  }

  #lookBefore(): void {
    const { ready, whole } = this.#view;
    if (whole || !ready || this.#reading || !this.#socket) return;
    if (this.#start > 0) void this.#readBefore();
    else this.#set({ whole: true });
  }

  #take(frame: ServerFrame, size: number): void {
    this.traffic.add("in", frame, size);
    if (frame.type === "accepted") {
      this.#pending.push(frame);
    } else if (frame.type === "hello") {
      this.#pending.push(frame);
      if (frame.queued > 0) void this.#listQueue();
      this.#head = frame.head;
    } else if (frame.type !== "pong") {
      this.#pending.push(frame);
    }
    if (this.#flushing) return;
    if (this.#isBehind(frame)) {
      this.#catchUp ??= setTimeout(this.#flush, CATCH_UP_MS);
      return;
    }
    this.#flushing = true;
    if (document.hidden) setTimeout(this.#flush, HIDDEN_FLUSH_MS);
    else if (this.#pause > performance.now()) setTimeout(() => requestAnimationFrame(this.#draw), this.#pause - performance.now());
    else requestAnimationFrame(this.#draw);
  }

  /** Draw, and see how long that takes up to the next task: layout and paint are part of it. */
  readonly #draw = (): void => {
    const begun = performance.now();
    this.#flush();
    setTimeout(() => {
      const now = performance.now();
      this.#pause = now + Math.min((now - begun) * (SHARE - 1), LONGEST_PAUSE_MS);
    });
  };

  /** Whether `frame` is history with more to come: a long one is folded and drawn once, not frame by frame. */
  #isBehind(frame: ServerFrame): boolean {
    if (this.#head === null || this.#view.state.cursor >= this.#head) return false;
    return frame.type === "hello" || (frame.cursor ?? 0) < this.#head;
  }

  readonly #flush = (): void => {
    this.#flushing = false;
    clearTimeout(this.#catchUp);
    this.#catchUp = undefined;
    const frames = this.#pending;
    this.#pending = [];
    const accepted = new Set(frames.flatMap((frame) => (frame.type === "accepted" ? [frame.id] : [])));
    const unsent = accepted.size ? this.#view.unsent.filter((said) => !accepted.has(said.id)) : this.#view.unsent;
    if (!this.#view.whole && this.#start > 0) this.#since.push(...frames);
    const state = reduce(this.#view.state, frames, Date.now());
    // The history is here once the head that `hello` named is reached; an empty one is here at once.
    const ready = this.#view.ready || (this.#head !== null && state.cursor >= this.#head);
    this.#set({ state, unsent, ready });
    this.#lookBefore();
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
