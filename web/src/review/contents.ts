/** What is asked for file by file while a review is read: hunks of large diffs, unchanged lines, deleted files. */

import { useMemo, useSyncExternalStore } from "react";
import { api } from "../api/client.ts";
import type { Known } from "../state/diff_rows.ts";
import type { ChangedFile } from "../state/review.ts";

const AT_ONCE = 4;
const NOTHING: Known = { hunks: null, problem: null, text: null, gone: null };

/** Loads each file once; the newest wish first, for that is what is on the screen. */
export class Contents {
  readonly #conversation: string;
  #known: ReadonlyMap<string, Known> = new Map();
  #asked = new Set<string>();
  #waiting: (() => Promise<void>)[] = [];
  #running = 0;
  #listeners = new Set<() => void>();

  constructor(conversation: string) {
    this.#conversation = conversation;
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  readonly known = (): ReadonlyMap<string, Known> => this.#known;

  /** Ask for the hunks of a file that the list had no room for. */
  wantHunks(file: ChangedFile): void {
    this.#ask(`hunks ${file.path}`, file.path, async () => {
      const diff = await api.diffOf(this.#conversation, file.path);
      return { hunks: diff.written.find((row) => row.path === file.path)?.hunks ?? [] };
    });
  }

  /** Ask for the new side's lines. */
  wantText(file: ChangedFile): void {
    this.#ask(`text ${file.path}`, file.path, async () => {
      const text = await (await api.download(this.#conversation, file.path)).text();
      return { text: linesOf(text) };
    });
  }

  /** Ask for the lines of a deleted file. */
  wantGone(file: ChangedFile): void {
    this.#ask(`gone ${file.path}`, file.path, async () => {
      const text = await (await api.download(this.#conversation, file.path, "old")).text();
      return { gone: linesOf(text) };
    });
  }

  #ask(key: string, path: string, load: () => Promise<Partial<Known>>): void {
    if (this.#asked.has(key)) return;
    this.#asked.add(key);
    this.#waiting.push(async () => {
      try {
        this.#put(path, await load());
      } catch (error) {
        this.#asked.delete(key);
        this.#put(path, { problem: error instanceof Error ? error.message : String(error) });
      }
    });
    this.#next();
  }

  #next(): void {
    while (this.#running < AT_ONCE) {
      const job = this.#waiting.pop();
      if (!job) return;
      this.#running += 1;
      void job().finally(() => {
        this.#running -= 1;
        this.#next();
      });
    }
  }

  #put(path: string, found: Partial<Known>): void {
    this.#known = new Map(this.#known).set(path, { ...NOTHING, ...this.#known.get(path), problem: null, ...found });
    for (const listener of this.#listeners) listener();
  }
}

function linesOf(text: string): string[] {
  const lines = text.replace(/\r\n/g, "\n").split("\n");
  if (lines.at(-1) === "") lines.pop();
  return lines;
}

/** Return what is asked for beside `files`; a branch that moved is asked anew. */
export function useContents(conversation: string, files: readonly ChangedFile[]): { contents: Contents; known: ReadonlyMap<string, Known> } {
  const contents = useMemo(() => new Contents(conversation), [conversation, files]);
  return { contents, known: useSyncExternalStore(contents.subscribe, contents.known) };
}
