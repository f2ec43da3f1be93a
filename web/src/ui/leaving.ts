/**
 * What lies over the page is left by Escape, and by a phone's Back: wherever the focus is, the topmost first.
 *
 * A browser that knows `CloseWatcher` asks it for both. Another has Escape alone. Not here: dialogs, which browsers ask
 * themselves, and menus, which keep the key.
 */

import { useEffect, useRef } from "react";

interface Watcher {
  onclose: (() => void) | null;
  destroy: () => void;
}

/** Not in TypeScript's library yet. */
declare const CloseWatcher: (new () => Watcher) | undefined;

/** What is open, the topmost last; for browsers without a watcher. */
const opened: (() => void)[] = [];

function pressed(event: KeyboardEvent): void {
  // The key of a dialog is the dialog's, which is above all of these.
  if (event.key !== "Escape" || event.defaultPrevented || document.querySelector("dialog:modal")) return;
  opened.at(-1)?.();
}

function watchKey(leave: () => void): () => void {
  if (opened.push(leave) === 1) addEventListener("keydown", pressed);
  return () => {
    opened.splice(opened.indexOf(leave), 1);
    if (opened.length === 0) removeEventListener("keydown", pressed);
  };
}

/** Watch until stopped; a watcher is good for once, and there may be more to leave (a file, then the list). */
function watchRequests(leave: () => void): () => void {
  if (typeof CloseWatcher === "undefined") return watchKey(leave);
  const Kind = CloseWatcher;
  let watcher: Watcher;
  let over = false;
  const arm = (): void => {
    watcher = new Kind();
    watcher.onclose = () => {
      leave();
      if (!over) arm();
    };
  };
  arm();
  return () => {
    over = true;
    watcher.destroy();
  };
}

/** Have `leave` called when the person wants to leave what is shown while `active`. */
export function useLeaving(active: boolean, leave: () => void): void {
  const now = useRef(leave);
  now.current = leave;
  useEffect(() => (active ? watchRequests(() => now.current()) : undefined), [active]);
}
