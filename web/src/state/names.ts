/**
 * Names of files and directories, found by a part of them while a person types (UI-73). Pure.
 *
 * All names are one text in the order in which they are offered, so that a key is not felt in a tree of 100,000
 * files: a search is one pass that ends as soon as it has enough. The terminal orders them the same way.
 */

const MOST_SHOWN = 8;
/** Of the nearest names: letters in their order are looked for there only. */
const IN_ORDER_CHARS = 1_000_000;

const lastOf = (path: string): string => path.replace(/\/$/, "").split("/").pop() ?? "";
const depthOf = (path: string): number => path.replace(/\/$/, "").split("/").length;

class Lines {
  readonly #text: string;
  readonly #starts: number[];

  constructor(lines: readonly string[]) {
    this.#text = `\n${lines.join("\n")}\n`;
    let at = 0;
    this.#starts = lines.map((line) => {
      const start = at;
      at += line.length + 1;
      return start;
    });
    this.#starts.push(at);
  }

  #lineAt(place: number): number {
    let [low, high] = [0, this.#starts.length - 1];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if ((this.#starts[middle] ?? 0) <= place) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  /** Yield the lines that hold `part`; those that begin with it, where it starts with a line break. */
  *holding(part: string): Generator<number> {
    for (let at = this.#text.indexOf(part); at >= 0; ) {
      const line = this.#lineAt(at);
      if (line >= this.#starts.length - 1) return;
      yield line;
      at = this.#text.indexOf(part, this.#starts[line + 1]);
    }
  }

  /** Yield the lines that hold the letters in their order. */
  *inOrder(letters: string): Generator<number> {
    const end = Math.min(this.#text.length, IN_ORDER_CHARS);
    let [line, found] = [0, 0];
    for (let at = 1; at < end; at += 1) {
      const letter = this.#text[at];
      if (letter === "\n") {
        if (found === letters.length) yield line;
        line += 1;
        found = 0;
      } else if (letter === letters[found]) found += 1;
    }
  }
}

export class Names {
  readonly #known: readonly string[];
  readonly #paths: Lines;
  readonly #last: Lines;

  /** @param files paths without a leading slash. */
  constructor(files: readonly string[]) {
    const directories = new Set<string>();
    for (const path of files) {
      for (let end = path.lastIndexOf("/"); end > 0; end = path.lastIndexOf("/", end - 1)) {
        const above = path.slice(0, end + 1);
        if (directories.has(above)) break;
        directories.add(above);
      }
    }
    const known = [...files, ...directories].map((path) => ({ path, depth: depthOf(path) }));
    known.sort((a, b) => a.depth - b.depth || a.path.length - b.path.length || (a.path < b.path ? -1 : 1));
    this.#known = known.map((one) => one.path);
    this.#paths = new Lines(this.#known.map((path) => path.toLowerCase()));
    this.#last = new Lines(this.#known.map((path) => lastOf(path).toLowerCase()));
  }

  has(path: string): boolean {
    return this.#known.includes(path);
  }

  /** Return the files below a directory, whose name ends with a slash. */
  inside(directory: string): string[] {
    return this.#known.filter((path) => path.startsWith(directory) && !path.endsWith("/"));
  }

  /** Return the names that fit best: the last part begins so, holds it, the path does, letters in order. */
  find(typed: string, most = MOST_SHOWN): string[] {
    const wanted = typed.toLowerCase();
    const found = new Set<number>();
    for (const fitting of this.#searches(wanted)) {
      for (const at of fitting) {
        found.add(at);
        if (found.size >= most) return [...found].map((one) => this.#known[one] ?? "");
      }
    }
    return [...found].map((one) => this.#known[one] ?? "");
  }

  *#searches(wanted: string): Generator<Iterable<number>> {
    if (!wanted) {
      yield this.#known.keys();
      return;
    }
    if (!wanted.includes("/")) {
      yield this.#last.holding(`\n${wanted}`);
      yield this.#last.holding(wanted);
    }
    yield this.#paths.holding(`\n${wanted}`);
    yield this.#paths.holding(wanted);
    yield this.#paths.inOrder(wanted);
  }
}
