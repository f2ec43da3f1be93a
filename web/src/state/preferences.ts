/** What a person chose on this device: theme, what Enter does, layout. Not here: anything the server should know. */

import { useSyncExternalStore } from "react";

export type Face = "dev" | "user";
export type Theme = "light" | "dark" | "system";

export interface Preferences {
  enter: "interrupt" | "queue";
  diffView: "unified" | "split";
  wrap: boolean;
  sidebar: boolean;
  notify: boolean;
  /** Told by web push: an open tab need not tell the same. */
  push: boolean;
}

const KEY = "bowerbird.preferences";
const DEFAULTS: Preferences = { enter: "interrupt", diffView: "unified", wrap: true, sidebar: true, notify: false, push: false };

const listeners = new Set<() => void>();
let current: Preferences = load();

function load(): Preferences {
  try {
    return { ...DEFAULTS, ...(JSON.parse(localStorage.getItem(KEY) ?? "{}") as Partial<Preferences>) };
  } catch {
    return DEFAULTS; // unreadable or turned off: the defaults hold for this visit
  }
}

function keep(key: string, value: string): void {
  try {
    localStorage.setItem(key, value);
  } catch {
    // storage is full or turned off: the choice holds until the page is closed
  }
}

export function prefer(change: Partial<Preferences>): void {
  current = { ...current, ...change };
  keep(KEY, JSON.stringify(current));
  for (const listener of listeners) listener();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

const chosen = (): Preferences => current;

export function usePreferences(): Preferences {
  return useSyncExternalStore(subscribe, chosen, chosen);
}

// ---------------------------------------------------------------- theme

const THEME = "bowerbird.theme";
const dark = matchMedia("(prefers-color-scheme: dark)");
const paper = matchMedia("print");

/** Return what was chosen; the system's theme until somebody chose another (UI-94). */
export function themeNow(): Theme {
  try {
    const kept = localStorage.getItem(THEME);
    return kept === "light" || kept === "dark" ? kept : "system";
  } catch {
    return "system";
  }
}

/** Show a face in the theme that was chosen; the same decision as `theme.js` makes before the first paint. */
export function applyTheme(face: Face): void {
  const wanted = themeNow();
  const root = document.documentElement;
  root.dataset["face"] = face;
  root.dataset["theme"] = paper.matches ? "light" : wanted === "system" ? (dark.matches ? "dark" : "light") : wanted;
  // The bar of a phone around the page has the page's colour.
  const colour = getComputedStyle(root).getPropertyValue("--bg").trim();
  document.querySelector<HTMLMetaElement>('meta[name="theme-color"]')?.setAttribute("content", colour);
}

const again = (): void => applyTheme(document.documentElement.dataset["face"] === "dev" ? "dev" : "user");
dark.addEventListener("change", again);
paper.addEventListener("change", again); // on paper: black on white, whatever was chosen

export function chooseTheme(theme: Theme): void {
  keep(THEME, theme);
  again();
  for (const listener of listeners) listener();
}

// ---------------------------------------------------------------- unsent text

/** Text that was typed and not sent survives a reload (UI-19). */
export const drafts = {
  get: (place: string): string => {
    try {
      return localStorage.getItem(`bowerbird.draft.${place}`) ?? "";
    } catch {
      return "";
    }
  },
  set: (place: string, text: string): void => {
    if (text) keep(`bowerbird.draft.${place}`, text);
    else localStorage.removeItem(`bowerbird.draft.${place}`);
  },
};
