/**
 * What a browser gives a page and Node does not: storage, the document's mark, events of the window.
 *
 * Import before anything of `src`: some of it looks at these as it is loaded. Not here: sockets, which Node has
 * itself.
 */

export class Shelf {
  readonly kept = new Map<string, string>();
  /** Storage that is full, or turned off. */
  broken = false;
  getItem(key: string): string | null {
    if (this.broken) throw new Error("turned off");
    return this.kept.get(key) ?? null;
  }
  setItem(key: string, value: string): void {
    if (this.broken) throw new Error("full");
    this.kept.set(key, value);
  }
  removeItem(key: string): void {
    this.kept.delete(key);
  }
}

export const local = new Shelf();
local.setItem("bowerbird.preferences", "{"); // what cannot be read must not keep a page from opening
export const dark = Object.assign(new EventTarget(), { matches: false });
export const paper = Object.assign(new EventTarget(), { matches: false });
const window_ = new EventTarget();
const root = { dataset: {} as Record<string, string> };
export const page = Object.assign(new EventTarget(), {
  hidden: false,
  visibilityState: "visible",
  documentElement: root,
  colour: "",
  querySelector(selector: string): { content?: string; setAttribute: (name: string, value: string) => void } | null {
    return selector.includes("theme-color") ? { setAttribute: (_, value) => (page.colour = value) } : null;
  },
});
export const place = { hash: "", hostname: "", port: "", origin: "http://127.0.0.1" };

const ask = globalThis.fetch;

Object.assign(globalThis, {
  // A page's addresses are relative to its own.
  fetch: (path: string, init?: RequestInit) => ask(new URL(path, place.origin), init),
  localStorage: local,
  sessionStorage: new Shelf(),
  matchMedia: (query: string) => (query === "print" ? paper : dark),
  document: page,
  location: place,
  getComputedStyle: () => ({ getPropertyValue: () => ` ${root.dataset["theme"]} colour ` }),
  requestAnimationFrame: (draw: (now: number) => void) => setTimeout(() => draw(performance.now()), 1),
  addEventListener: window_.addEventListener.bind(window_),
  removeEventListener: window_.removeEventListener.bind(window_),
  dispatchEvent: window_.dispatchEvent.bind(window_),
});
