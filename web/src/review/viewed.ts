/** Which files somebody has seen: folded, counted, kept on this device until they change (UI-88). */

import { useMemo, useState } from "react";
import type { ChangedFile } from "../state/review.ts";

const PREFIX = "bowerbird.viewed.";
const MOST = 1_000;

/** By path, the content that was seen. */
type Seen = Readonly<Record<string, string>>;

function stored(conversation: string): Seen {
  try {
    const found: unknown = JSON.parse(localStorage.getItem(PREFIX + conversation) ?? "{}");
    return found !== null && typeof found === "object" ? (found as Seen) : {};
  } catch {
    return {}; // unreadable: nothing was seen
  }
}

/** Names what a file is now; a file that changed must be looked at again. */
function contentOf(file: ChangedFile): string {
  return `${file.kind}:${(file.version ?? "").slice(-12)}:${file.mode ?? ""}:${file.inside.length}`;
}

/** Keep what was seen; where storage is full, what was seen of other conversations goes. */
function keep(conversation: string, seen: Seen): void {
  const text = JSON.stringify(Object.fromEntries(Object.entries(seen).slice(-MOST)));
  try {
    localStorage.setItem(PREFIX + conversation, text);
  } catch {
    try {
      for (const name of Object.keys(localStorage)) if (name.startsWith(PREFIX)) localStorage.removeItem(name);
      localStorage.setItem(PREFIX + conversation, text);
    } catch {
      // storage is turned off: it holds until the page is closed
    }
  }
}

export interface Viewed {
  has: (file: ChangedFile) => boolean;
  set: (file: ChangedFile, seen: boolean) => void;
}

export function useViewed(conversation: string): Viewed {
  const [seen, setSeen] = useState<Seen>(() => stored(conversation));
  return useMemo(
    () => ({
      has: (file) => seen[file.path] === contentOf(file),
      set: (file, on) =>
        setSeen((now) => {
          const { [file.path]: _, ...others } = now;
          const next = on ? { ...others, [file.path]: contentOf(file) } : others;
          keep(conversation, next);
          return next;
        }),
    }),
    [seen, conversation],
  );
}
