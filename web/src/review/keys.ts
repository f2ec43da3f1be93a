/** The keyboard of a review (UI-27): through hunks and files, ticks, comments; nothing while somebody types. What a key did is said (UI-36). */

import { useCallback, useEffect, useMemo, useState, type RefObject } from "react";
import { useLeft } from "../ui/left.ts";
import { seenName } from "../state/hidden_marks.ts";
import { fileMark, hunkChosen, setFile, setHunk, type ChangedFile, type Choice } from "../state/review.ts";
import { t } from "../text.ts";
import type { Viewed } from "./viewed.ts";

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

/** Return the first place of the file after, or before, the one at `path`. */
export function nextFile(files: readonly ChangedFile[], path: string | null, by: 1 | -1): Place | null {
  const at = files.findIndex((file) => file.path === path);
  const next = files[at < 0 ? (by > 0 ? 0 : files.length - 1) : Math.min(Math.max(at + by, 0), files.length - 1)];
  return next ? { path: next.path, hunk: next.hunks?.[0]?.id ?? null } : null;
}

/** Return the first place of the next file that was not seen, from the one at `path` on and round to it. */
export function nextUnseen(files: readonly ChangedFile[], path: string, has: Viewed["has"]): Place | null {
  const at = files.findIndex((file) => file.path === path);
  const next = [...files.slice(at + 1), ...files.slice(0, at)].find((file) => !has(file));
  return next ? { path: next.path, hunk: next.hunks?.[0]?.id ?? null } : null;
}

/** Return the words for a place: its file, which of its hunks, whether it is chosen. */
export function placeWords(file: ChangedFile, place: Place, choice: Choice): string {
  const name = seenName(file.path.slice(1));
  const at = file.hunks?.findIndex((hunk) => hunk.id === place.hunk) ?? -1;
  const isOn = place.hunk === null ? fileMark(choice, file) !== "none" : hunkChosen(choice, file.path, place.hunk);
  return t.atPlace(name, at + 1, file.hunks?.length ?? 0, isOn);
}

const MOST_FRAMES = 60;
let asked = 0;

/** Give a place the focus as soon as it is drawn: Tab goes on from there, and its words are read out. */
function focusOn(root: HTMLElement | null, { path, hunk }: Place): void {
  let frames = 0;
  const mine = (asked += 1);
  const step = (): void => {
    if (mine !== asked || isTyping(document.activeElement)) return; // gone on meanwhile
    const file = root?.querySelector<HTMLElement>(`article[data-path="${CSS.escape(path)}"]`);
    const found = hunk === null ? file : file?.querySelector<HTMLElement>(`[data-hunk="${CSS.escape(hunk)}"]`);
    frames += 1;
    if (found) found.focus({ preventScroll: true });
    else if (frames < MOST_FRAMES) requestAnimationFrame(step);
  };
  requestAnimationFrame(step);
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
  viewed: Viewed;
  /** Where its places stand. */
  root: RefObject<HTMLElement | null>;
}

export interface Keys {
  place: Place | null;
  help: boolean;
  /** What the last key did, to be read out. */
  said: string;
  go: (place: Place) => void;
  setHelp: (open: boolean) => void;
}

export function useKeys({ files, choice, onChoice, show, onComment, viewed, root }: KeysWanted): Keys {
  const [left, keepAs] = useLeft<Place>("place");
  const [place, setPlace] = useState<Place | null>(left);
  keepAs(() => place);
  const [help, setHelp] = useState(false);
  const [said, say] = useState("");
  const stops = useMemo(() => stopsOf(files), [files]);
  const go = useCallback(
    (next: Place): void => {
      setPlace(next);
      show(next);
    },
    [show],
  );
  useEffect(() => {
    const here = files.find((one) => one.path === place?.path);
    const step = (next: Place | null | undefined): void => {
      if (!next) return;
      go(next);
      focusOn(root.current, next);
    };
    const mark = (on: boolean): void => {
      if (!place || !here) return;
      const next = place.hunk === null ? setFile(choice, here, on) : setHunk(choice, here, place.hunk, on);
      onChoice(next);
      say(placeWords(here, place, next));
    };
    const see = (): void => {
      if (!here) return;
      const isSeen = viewed.has(here);
      viewed.set(here, !isSeen);
      const next = isSeen ? null : nextUnseen(files, here.path, viewed.has);
      step(next);
      const name = seenName(here.path.slice(1));
      say(isSeen ? t.notViewedNow(name) : `${t.viewedNow(name)}${next ? "" : ` ${t.allViewed}`}`);
    };
    const move = (by: number): void => {
      let at = stops.findIndex((stop) => stop.path === place?.path && stop.hunk === place.hunk);
      // A file whose hunks have come meanwhile: its first one is where we are.
      if (at < 0 && place) at = stops.findIndex((stop) => stop.path === place.path) - (by > 0 ? 1 : 0);
      else if (at < 0) at = by > 0 ? -1 : stops.length;
      step(stops[Math.min(Math.max(at + by, 0), stops.length - 1)]);
    };
    const acts: Record<string, () => void> = {
      j: () => move(1),
      k: () => move(-1),
      n: () => step(nextFile(files, place?.path ?? null, 1)),
      p: () => step(nextFile(files, place?.path ?? null, -1)),
      v: see,
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
  }, [stops, place, files, choice, onChoice, go, onComment, viewed, root]);
  return { place, help, said, go, setHelp };
}
