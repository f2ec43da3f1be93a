/**
 * The socket of one conversation, kept open: reconnects with the cursor, sends what was said meanwhile once.
 *
 * Here: connection and order. Not here: what frames mean (`state/`).
 */

import { api, ApiError, token } from "./client.ts";
import type { ClientFrame, ServerFrame } from "./frames.ts";
import { parseFrame } from "./frames.ts";
import { asJson } from "./json.ts";
import { socketAddress } from "./place.ts";

export type Connection = "connecting" | "open" | "waiting" | "gone" | "signed-out";

export interface SocketListener {
  frame: (frame: ServerFrame, size: number) => void;
  sent: (frame: ClientFrame) => void;
  connection: (state: Connection, retryAt: number | null) => void;
  /** After which record to begin, or to continue; 0 = the whole history. */
  cursor: () => number | Promise<number>;
  /** Whether frames are to come: a turn runs. */
  expecting: () => boolean;
  /** Inputs said while there was no connection; each has an id, so that a repeat is known. */
  unsent: () => readonly ClientFrame[];
}

const FIRST_DELAY_MS = 500;
const LONGEST_DELAY_MS = 15_000;
const PING_MS = 20_000;
const DEAD_MS = 8_000;
const SILENCE_MS = 3_000;
const UNAUTHORIZED = 4001;
const UNKNOWN = 4004;

/** Return how long to wait before attempt `attempt` (from 0); `jitter` in 0…1. */
export function retryDelay(attempt: number, jitter: number): number {
  const most = Math.min(FIRST_DELAY_MS * 2 ** attempt, LONGEST_DELAY_MS);
  return Math.round(most * (0.75 + 0.25 * jitter));
}

/** Return where a conversation's frames after a record come from; a ticket goes with it where one is needed. */
async function addressOf(conversation: string, after: number): Promise<string> {
  const query = new URLSearchParams({ v: "2", after: String(after) });
  if (token.get()) query.set("ticket", (await api.ticket()).ticket);
  return socketAddress(`/api/chat/${encodeURIComponent(conversation)}/ws?${query}`);
}

/**
 * Return the frames of a conversation's first records, up to number `upto`, read over a connection of their own.
 *
 * @throws Error when the connection ends before.
 */
export async function readHistory(conversation: string, upto: number): Promise<ServerFrame[]> {
  const socket = new WebSocket(await addressOf(conversation, 0));
  const frames: ServerFrame[] = [];
  return new Promise((resolve, reject) => {
    socket.onmessage = (event: MessageEvent<string>) => {
      const frame = parseFrame(event.data);
      if (!frame || frame.type === "hello") return;
      if ((frame.cursor ?? 0) <= upto) return void frames.push(frame);
      socket.onclose = null;
      socket.close();
      resolve(frames);
    };
    socket.onclose = () => reject(new Error("the connection ended before the history did"));
  });
}

export class ConversationSocket {
  readonly #conversation: string;
  readonly #listener: SocketListener;
  #socket: WebSocket | null = null;
  #attempt = 0;
  #retry: ReturnType<typeof setTimeout> | undefined;
  #ping: ReturnType<typeof setInterval> | undefined;
  #dead: ReturnType<typeof setTimeout> | undefined;
  #silence: ReturnType<typeof setTimeout> | undefined;
  #heardAt = 0;
  #closed = false;

  constructor(conversation: string, listener: SocketListener) {
    this.#conversation = conversation;
    this.#listener = listener;
    addEventListener("online", this.#now);
    addEventListener("offline", this.#cut);
    document.addEventListener("visibilitychange", this.#seen);
    void this.#open();
  }

  /** Send a frame; false when there is no connection. */
  send(frame: ClientFrame): boolean {
    if (this.#socket?.readyState !== WebSocket.OPEN) return false;
    this.#socket.send(asJson(frame));
    this.#listener.sent(frame);
    return true;
  }

  close(): void {
    this.#closed = true;
    removeEventListener("online", this.#now);
    removeEventListener("offline", this.#cut);
    document.removeEventListener("visibilitychange", this.#seen);
    this.#quiet();
    clearTimeout(this.#retry);
    this.#socket?.close();
  }

  /** Try again at once. */
  readonly reconnect = (): void => this.#now();

  readonly #now = (): void => {
    if (this.#closed || this.#socket) return;
    clearTimeout(this.#retry);
    this.#attempt = 0;
    void this.#open();
  };

  /** The device says that it has no network: waiting for the next ping to fail would show frozen text. */
  readonly #cut = (): void => {
    const socket = this.#socket;
    if (!socket) return;
    this.#left(socket, 0);
    socket.close();
  };

  /** After sleep a socket may be dead without saying so: ask. */
  readonly #seen = (): void => {
    if (document.visibilityState !== "visible") return;
    if (this.#socket) this.#ask();
    else this.#now();
  };

  async #open(): Promise<void> {
    this.#listener.connection("connecting", null);
    let address: string;
    try {
      address = await addressOf(this.#conversation, await this.#listener.cursor());
    } catch (error) {
      if (error instanceof ApiError && error.status === 401) return this.#end("signed-out");
      return this.#later();
    }
    if (this.#closed) return;
    const socket = new WebSocket(address);
    this.#socket = socket;
    socket.onopen = () => this.#opened();
    socket.onmessage = (event: MessageEvent<string>) => {
      this.#heard();
      const frame = parseFrame(event.data);
      if (frame) this.#listener.frame(frame, event.data.length);
    };
    socket.onclose = (event) => this.#left(socket, event.code);
  }

  #opened(): void {
    this.#attempt = 0;
    this.#listener.connection("open", null);
    for (const frame of this.#listener.unsent()) this.send(frame);
    this.#ping = setInterval(() => this.#ask(), PING_MS);
  }

  /** While something is to come, silence is asked about soon. One timer for many frames: hundreds come in a second. */
  #heard(): void {
    this.#heardAt = performance.now();
    this.#alive();
    if (this.#silence === undefined && this.#listener.expecting()) this.#silence = setTimeout(this.#listen, SILENCE_MS);
  }

  readonly #listen = (): void => {
    this.#silence = undefined;
    if (!this.#listener.expecting()) return;
    const rest = this.#heardAt + SILENCE_MS - performance.now();
    if (rest > 0) this.#silence = setTimeout(this.#listen, rest);
    else this.#ask();
  };

  #alive(): void {
    if (this.#dead === undefined) return;
    clearTimeout(this.#dead);
    this.#dead = undefined;
  }

  #ask(): void {
    this.#alive();
    if (!this.send({ type: "ping" })) return;
    const socket = this.#socket;
    this.#dead = setTimeout(() => {
      if (socket) this.#left(socket, 0);
      socket?.close();
    }, DEAD_MS);
  }

  #left(socket: WebSocket, code: number): void {
    if (this.#socket !== socket) return;
    this.#socket = null;
    this.#quiet();
    if (this.#closed) return;
    if (code === UNAUTHORIZED) {
      // The credential was withdrawn: whoever asks with it now is sent to sign in.
      void api.me().catch(() => undefined);
      return this.#end("signed-out");
    }
    if (code === UNKNOWN) return this.#end("gone");
    this.#later();
  }

  #end(state: Connection): void {
    this.#listener.connection(state, null);
  }

  #later(): void {
    const delay = retryDelay(this.#attempt, Math.random());
    this.#attempt += 1;
    this.#listener.connection("waiting", Date.now() + delay);
    this.#retry = setTimeout(() => void this.#open(), delay);
  }

  #quiet(): void {
    clearInterval(this.#ping);
    this.#alive();
    clearTimeout(this.#silence);
    this.#silence = undefined;
  }
}
