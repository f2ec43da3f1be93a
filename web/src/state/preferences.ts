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
}

const KEY = "bowerbird.preferences";
const DEFAULTS: Preferences = { enter: "interrupt", diffView: "unified", wrap: true, sidebar: true, notify: false };

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

export function usePreferences(): Preferences {
  return useSyncExternalStore(subscribe, () => current);
}

// ---------------------------------------------------------------- theme

const themeKey = (face: Face): string => `bowerbird.theme.${face}`;
const natural = (face: Face): Theme => (face === "dev" ? "dark" : "light");

export function themeOf(face: Face): Theme {
  try {
    const kept = localStorage.getItem(themeKey(face));
    return kept === "light" || kept === "dark" || kept === "system" ? kept : natural(face);
  } catch {
    return natural(face);
  }
}

/** Show a face in its theme; the same decision as `theme.js` makes before the first paint. */
export function applyTheme(face: Face): void {
  const wanted = themeOf(face);
  const dark = wanted === "dark" || (wanted === "system" && matchMedia("(prefers-color-scheme: dark)").matches);
  document.documentElement.dataset["face"] = face;
  document.documentElement.dataset["theme"] = dark ? "dark" : "light";
}

export function chooseTheme(face: Face, theme: Theme): void {
  keep(themeKey(face), theme);
  applyTheme(face);
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
