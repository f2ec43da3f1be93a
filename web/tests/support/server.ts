/** A server of one conversation for unit tests: REST by path, and a WebSocket that says what a test gives it. */

import { createHash } from "node:crypto";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import type { Duplex } from "node:stream";
import { place } from "./globals.ts";

export interface Peer {
  /** The address that it asked for. */
  url: string;
  say: (...frames: object[]) => void;
  /** What it sent, oldest first. */
  heard: Record<string, unknown>[];
  close: (code: number) => void;
}

const MAGIC = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

function packed(opcode: number, body: Buffer): Buffer {
  const head = body.length < 126 ? Buffer.from([0x80 | opcode, body.length]) : Buffer.from([0x80 | opcode, 126, body.length >> 8, body.length & 255]);
  return Buffer.concat([head, body]);
}

/** Return the text frames of a client's bytes, and what is left of them. */
function unpacked(bytes: Buffer): { texts: string[]; rest: Buffer } {
  const texts: string[] = [];
  let rest = bytes;
  for (;;) {
    const short = (rest[1] ?? 0) & 127;
    const head = short === 126 ? 4 : 2;
    if (rest.length < head + 4) return { texts, rest };
    const size = short === 126 ? rest.readUInt16BE(2) : short;
    if (rest.length < head + 4 + size) return { texts, rest };
    const mask = rest.subarray(head, head + 4);
    const body = Buffer.from(rest.subarray(head + 4, head + 4 + size).map((byte, at) => byte ^ (mask[at % 4] ?? 0)));
    if (((rest[0] ?? 0) & 15) === 1) texts.push(body.toString());
    rest = rest.subarray(head + 4 + size);
  }
}

function peerOf(request: IncomingMessage, socket: Duplex): Peer {
  const key = createHash("sha1").update(`${request.headers["sec-websocket-key"]}${MAGIC}`).digest("base64");
  socket.write(`HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${key}\r\n\r\n`);
  socket.on("error", () => undefined); // the page may leave at any time
  const heard: Record<string, unknown>[] = [];
  let left: Buffer = Buffer.alloc(0);
  socket.on("data", (bytes: Buffer) => {
    const { texts, rest } = unpacked(Buffer.concat([left, bytes]));
    left = rest;
    heard.push(...texts.map((text) => JSON.parse(text) as Record<string, unknown>));
  });
  return {
    url: request.url ?? "",
    heard,
    say: (...frames) => frames.forEach((frame) => socket.write(packed(1, Buffer.from(JSON.stringify(frame))))),
    close: (code) => {
      socket.write(packed(8, Buffer.from([code >> 8, code & 255])));
      socket.end();
    },
  };
}

export interface Server {
  /** Answers by path. */
  rest: Map<string, object>;
  /** The next connection to a conversation. */
  peer: (conversation: string) => Promise<Peer>;
  stop: () => void;
}

/** Serve on a free port, which is then the page's own address. */
export async function serve(): Promise<Server> {
  const rest = new Map<string, object>();
  const peers: Peer[] = [];
  const waiting: { wants: string; go: (peer: Peer) => void }[] = [];
  const sockets = new Set<Duplex>();
  const server = createServer((request, response) => {
    const found = rest.get((request.url ?? "").split("?")[0] ?? "");
    response.writeHead(found ? 200 : 404, { "content-type": "application/json" });
    response.end(JSON.stringify(found ?? { detail: "nothing there" }));
  });
  server.on("upgrade", (request, socket) => {
    sockets.add(socket);
    const peer = peerOf(request, socket);
    const next = waiting.findIndex((one) => peer.url.includes(one.wants));
    if (next >= 0) waiting.splice(next, 1)[0]?.go(peer);
    else peers.push(peer);
  });
  await new Promise<void>((ready) => server.listen(0, "127.0.0.1", ready));
  place.origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    rest,
    peer: (conversation) => {
      const wants = `/${conversation}/ws`;
      const here = peers.findIndex((one) => one.url.includes(wants));
      if (here >= 0) return Promise.resolve(peers.splice(here, 1)[0] as Peer);
      return new Promise((go) => waiting.push({ wants, go }));
    },
    stop: () => {
      for (const socket of sockets) socket.destroy();
      server.closeAllConnections();
      server.close();
    },
  };
}
