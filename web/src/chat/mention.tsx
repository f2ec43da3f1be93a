/** Names of files while a message is typed: the menu of `@`, and reading what a sent message names (UI-73). */

import { File, Folder } from "lucide-react";
import { useEffect, useMemo, useRef, useState, type KeyboardEvent, type RefObject } from "react";
import { api } from "../api/client.ts";
import { attachedText, typedMention, withMention, type Found } from "../state/mentions.ts";
import { Names } from "../state/names.ts";
import { seenName } from "../state/hidden_marks.ts";
import { t } from "../text.ts";

const FRESH_MS = 20_000;

let known: { conversation: string | null; at: number; names: Promise<Names> } | null = null;

/** The names of a branch; read when they are first needed, and when they are old. */
function namesOf(conversation: string | null): Promise<Names> {
  if (!known || known.conversation !== conversation || Date.now() - known.at > FRESH_MS) {
    const names = api.names(conversation).then(
      (found) => new Names(found.names),
      () => new Names([]), // offline: nothing is offered
    );
    known = { conversation, at: Date.now(), names };
  }
  return known.names;
}

/** Return a message with what it names. */
export async function withFiles(conversation: string | null, text: string): Promise<string> {
  if (!text.includes("@")) return text;
  return attachedText(text, async (path): Promise<Found | null> => {
    try {
      const names = await namesOf(conversation);
      if (names.has(`${path}/`)) return { kind: "directory", path: `${path}/`, files: names.inside(`${path}/`) };
      const file = await api.file(path, conversation);
      const content = file.truncated && file.content !== null ? " ".repeat(file.size) : file.content;
      return { kind: "file", path, size: file.size, content };
    } catch {
      return null; // there is no such file
    }
  });
}

interface MentionProps {
  conversation: string | null;
  area: RefObject<HTMLTextAreaElement | null>;
  text: string;
  onText: (text: string) => void;
}

export interface Mentions {
  /** Whether a key was one for the menu. */
  key: (event: KeyboardEvent<HTMLTextAreaElement>) => boolean;
  /** To be told where the caret is. */
  look: () => void;
  close: () => void;
  id: string;
  offered: readonly string[];
  picked: number;
  pick: (name: string) => void;
}

export function useMentions({ conversation, area, text, onText }: MentionProps): Mentions {
  const [typed, setTyped] = useState<string | null>(null);
  const [names, setNames] = useState<Names | null>(null);
  const [picked, setPicked] = useState(0);
  const caretAfter = useRef<number | null>(null);
  const look = (): void => {
    const box = area.current;
    const found = box && box.selectionStart === box.selectionEnd ? typedMention(box.value.slice(0, box.selectionStart)) : null;
    setTyped(found?.typed ?? null);
    setPicked(0);
  };
  useEffect(() => {
    if (typed === null) return;
    let here = true;
    void namesOf(conversation).then((found) => here && setNames(found));
    return () => {
      here = false;
    };
  }, [typed === null, conversation]);
  useEffect(() => {
    const at = caretAfter.current;
    if (at === null) return;
    caretAfter.current = null;
    area.current?.setSelectionRange(at, at);
    look();
  }, [text]);
  const offered = useMemo(() => (typed === null || !names ? [] : names.find(typed)), [typed, names]);
  const pick = (name: string): void => {
    const box = area.current;
    if (!box) return;
    const made = withMention(box.value, box.selectionStart, name);
    caretAfter.current = made.at;
    onText(made.text);
    box.focus();
  };
  const key = (event: KeyboardEvent<HTMLTextAreaElement>): boolean => {
    if (offered.length === 0 || event.nativeEvent.isComposing) return false;
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (step) setPicked((picked + step + offered.length) % offered.length);
    else if ((event.key === "Enter" || event.key === "Tab") && !event.shiftKey && !event.altKey && !event.ctrlKey && !event.metaKey) pick(offered[picked] ?? "");
    else if (event.key === "Escape") setTyped(null);
    else return false;
    event.preventDefault();
    event.stopPropagation();
    return true;
  };
  return { key, look, close: () => setTyped(null), id: "mentions", offered, picked, pick };
}

export function MentionMenu({ mentions }: { mentions: Mentions }) {
  const { offered, picked, pick, id } = mentions;
  if (offered.length === 0) return null;
  return (
    <ul className="mentions card" role="listbox" id={id} aria-label={t.filesToName}>
      {offered.map((name, at) => {
        const Icon = name.endsWith("/") ? Folder : File;
        return (
          <li
            key={name}
            id={`${id}-${at}`}
            role="option"
            aria-selected={at === picked}
            onPointerDown={(event) => {
              event.preventDefault(); // the box keeps the focus
              pick(name);
            }}
          >
            <Icon size={14} aria-hidden="true" />
            <span className="clip">{seenName(name)}</span>
          </li>
        );
      })}
    </ul>
  );
}
