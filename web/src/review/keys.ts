/** The keyboard of a review (UI-27): `j` `k` `a` `x` `c` `?`; nothing while somebody types. */

import { useCallback, useEffect, useMemo, useState } from "react";
import { useLeft } from "../ui/left.ts";
import { setFile, setHunk, type ChangedFile, type Choice } from "../state/review.ts";

export interface Place {
  path: string;
  hunk: string | null;
}

/** Every place `j` and `k` stop at: each hunk, and files that have none. */
export function stopsOf(files: readonly ChangedFile[]): Place[] {
  return files.flatMap(({ path, hunks }): Place[] => {
    return hunks?.length ? hunks.map((hunk) => ({ path, hunk: hunk.id })) : [{ path, hunk: null }];
  });
}

function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  const isBox = target instanceof HTMLInputElement && target.type === "checkbox";
  return target.isContentEditable || (/^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName) && !isBox);
}

interface KeysWanted {
  files: readonly ChangedFile[];
  choice: Choice;
  onChoice: (choice: Choice) => void;
  show: (place: Place) => void;
  onComment: (place: Place) => void;
}

export interface Keys {
  place: Place | null;
  help: boolean;
  go: (place: Place) => void;
  setHelp: (open: boolean) => void;
}

export function useKeys({ files, choice, onChoice, show, onComment }: KeysWanted): Keys {
  const [left, keepAs] = useLeft<Place>("place");
  const [place, setPlace] = useState<Place | null>(left);
  keepAs(() => place);
  const [help, setHelp] = useState(false);
  const stops = useMemo(() => stopsOf(files), [files]);
  const go = useCallback(
    (next: Place): void => {
      setPlace(next);
      show(next);
    },
    [show],
  );
  useEffect(() => {
    const mark = (on: boolean): void => {
      const file = files.find((one) => one.path === place?.path);
      if (!place || !file) return;
      onChoice(place.hunk === null ? setFile(choice, file, on) : setHunk(choice, file, place.hunk, on));
    };
    const move = (by: number): void => {
      let at = stops.findIndex((stop) => stop.path === place?.path && stop.hunk === place.hunk);
      // A file whose hunks have come meanwhile: its first one is where we are.
      if (at < 0 && place) at = stops.findIndex((stop) => stop.path === place.path) - (by > 0 ? 1 : 0);
      else if (at < 0) at = by > 0 ? -1 : stops.length;
      const next = stops[Math.min(Math.max(at + by, 0), stops.length - 1)];
      if (next) go(next);
    };
    const acts: Record<string, () => void> = {
      j: () => move(1),
      k: () => move(-1),
      a: () => mark(true),
      x: () => mark(false),
      c: () => place && onComment(place),
      "?": () => setHelp(true),
    };
    const press = (event: KeyboardEvent): void => {
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target) || document.querySelector("dialog[open]")) return;
      const act = acts[event.key];
      if (!act) return;
      event.preventDefault();
      act();
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, [stops, place, files, choice, onChoice, go, onComment]);
  return { place, help, go, setHelp };
}
