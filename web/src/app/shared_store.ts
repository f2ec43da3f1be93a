/** What another app shared, as the service worker keeps it until this page takes it (UI-95). */

import { base } from "../api/place.ts";

export interface Shared {
  words: string[];
  files: File[];
  at: number;
}

const NAME = `bowerbird-shared:${base()}`;
const LONGEST_MS = 3_600_000;

/** Return what was shared and forget it; null when there is nothing, or only something old. */
export function takeShared(): Promise<Shared | null> {
  return new Promise((resolve) => {
    const open = indexedDB.open(NAME, 1);
    open.onupgradeneeded = () => open.result.createObjectStore("waiting");
    open.onerror = () => resolve(null);
    open.onsuccess = () => {
      const store = open.result;
      const asked = store.transaction("waiting").objectStore("waiting").get("newest");
      const done = (found: Shared | null): void => {
        store.close();
        forgetShared();
        resolve(found && Date.now() - found.at < LONGEST_MS ? found : null);
      };
      asked.onsuccess = () => done((asked.result as Shared | undefined) ?? null);
      asked.onerror = () => done(null);
    };
  });
}

/** Forget what nobody took. */
export function forgetShared(): void {
  indexedDB.deleteDatabase(NAME);
}
