/** Whether the server has a model to run on, asked while that may change (UI-83). */

import { useSyncExternalStore } from "react";
import { settingsApi, type Setup } from "../api/settings.ts";

const FETCHING_MS = 1000;

const listeners = new Set<() => void>();
let now: Setup | null = null;
let timer: ReturnType<typeof setTimeout> | undefined;

/** Ask now; what is not known is not said to be missing. */
export function refreshSetup(): void {
  clearTimeout(timer);
  settingsApi.setup().then(
    (found) => {
      now = found;
      for (const listener of listeners) listener();
      if (found.fetch?.state === "running" && listeners.size > 0) timer = setTimeout(refreshSetup, FETCHING_MS);
    },
    () => undefined, // the page that is open says what is wrong
  );
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  if (listeners.size === 1) refreshSetup();
  return () => {
    listeners.delete(listener);
    if (listeners.size === 0) clearTimeout(timer);
  };
}

export function useSetup(): Setup | null {
  return useSyncExternalStore(subscribe, () => now);
}
