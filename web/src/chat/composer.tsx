/** Where a person writes: sends, interrupts, queues or steers; keeps what is not sent (UI-19). */

import { ArrowUp, Paperclip, Settings2, Square } from "lucide-react";
import { memo, useEffect, useRef, useState, type KeyboardEvent, type ReactNode } from "react";
import type { InputKind } from "../api/frames.ts";
import { useFace } from "../app/place.tsx";
import { TransferRow, type ShowTransfer, type Transfer } from "../files/transfer.tsx";
import { mentionOf } from "../state/mentions.ts";
import { drafts, prefer, usePreferences } from "../state/preferences.ts";
import { t } from "../text.ts";
import { dropped } from "../ui/browser.ts";
import { IconButton, Menu } from "../ui/kit.tsx";
import { useMedia } from "../ui/media.ts";
import { complain } from "../ui/toasts.tsx";
import { MentionMenu, useMentions, withFiles } from "./mention.tsx";
import { VoiceButton } from "./voice.tsx";

interface ComposerProps {
  /** What the draft is kept under. */
  place: string;
  /** Whose files `@` names; those of the default workspace without one. */
  conversation?: string | null;
  /** A turn runs: typing interrupts it, or is queued. */
  busy: boolean;
  disabled?: boolean;
  autoFocus?: boolean;
  onSend: (kind: InputKind, text: string) => Promise<void> | void;
  onStop?: () => void;
  /** Takes files to the branch; their paths are then named in the message. */
  onFiles?: (files: File[], show: ShowTransfer) => Promise<readonly string[]>;
  /** Shown over the box: messages that wait. */
  above?: ReactNode;
  /** Below the box: what the next turn runs on. */
  model?: ReactNode;
}

/** A picture of the clipboard has the same name each time: the second would be put over the first. */
function named(file: File): File {
  if (!/^image\.\w+$/.test(file.name)) return file;
  const at = new Date().toISOString().slice(0, 19).replace(/[T:]/g, "-");
  return new File([file], `pasted-${at}.${file.name.split(".").pop()}`, { type: file.type });
}

/**
 * Take files that are dropped anywhere on the page, unless something below the pointer takes them; whether some are over it.
 *
 * A browser opens a dropped file in place of the page: whoever misses the box by a finger would lose the chat.
 */
function useDrop(onFiles: ((files: File[]) => Promise<void>) | null): boolean {
  const [over, setOver] = useState(false);
  const latest = useRef(onFiles);
  latest.current = onFiles;
  useEffect(() => {
    const isFiles = (event: DragEvent): boolean => latest.current !== null && !event.defaultPrevented && !!event.dataTransfer?.types.includes("Files");
    const move = (event: DragEvent): void => {
      setOver(isFiles(event));
      if (isFiles(event)) event.preventDefault();
    };
    const leave = (event: DragEvent): void => {
      if (event.relatedTarget === null) setOver(false);
    };
    const drop = (event: DragEvent): void => {
      setOver(false);
      if (!isFiles(event)) return;
      event.preventDefault();
      if (!event.dataTransfer) return;
      const { files, directories } = dropped(event.dataTransfer);
      if (directories > 0) complain(t.noDirectories);
      void latest.current?.(files);
    };
    addEventListener("dragover", move);
    addEventListener("dragleave", leave);
    addEventListener("drop", drop);
    return () => {
      removeEventListener("dragover", move);
      removeEventListener("dragleave", leave);
      removeEventListener("drop", drop);
    };
  }, []);
  return over;
}

export const Composer = memo(function Composer({ place, conversation = null, busy, disabled, autoFocus, onSend, onStop, onFiles, above, model }: ComposerProps) {
  const face = useFace();
  const tiny = useMedia("(max-width: 380px)"); // beside its buttons no sentence has room
  const { enter } = usePreferences();
  const [text, setText] = useState(() => drafts.get(place));
  const area = useRef<HTMLTextAreaElement>(null);
  const picker = useRef<HTMLInputElement>(null);
  const [transfer, setTransfer] = useState<Transfer | null>(null);
  const mentions = useMentions({ conversation, area, text, onText: setText });
  // Another tab may write to the same draft: only what was typed here is kept from here.
  const kept = useRef(text);
  const keepDraft = (words: string): void => {
    if (words === kept.current) return;
    kept.current = words;
    drafts.set(place, words);
  };
  useEffect(() => {
    if (text === kept.current) return;
    const timer = setTimeout(() => keepDraft(text), 150);
    return () => clearTimeout(timer);
  }, [place, text]);
  useEffect(() => {
    const box = area.current;
    const keep = (): void => keepDraft(box?.value ?? "");
    addEventListener("pagehide", keep);
    return () => {
      // Going away by a link, or to sign in again, keeps the words as leaving the page does.
      keep();
      removeEventListener("pagehide", keep);
    };
  }, [place]);
  useEffect(() => {
    if (autoFocus && !matchMedia("(pointer: coarse)").matches) area.current?.focus();
  }, [autoFocus]);
  const send = async (kind: InputKind): Promise<void> => {
    const words = text.trim();
    if (!words || disabled) return;
    setText("");
    keepDraft("");
    try {
      await onSend(kind, await withFiles(conversation, words));
    } catch {
      setText(words); // said already; the words are not lost
      keepDraft(words);
    }
  };
  const attach = async (files: File[]): Promise<void> => {
    if (!onFiles || files.length === 0) return;
    const names = await onFiles(files.map(named), setTransfer);
    if (names.length === 0) return;
    setText((now) => `${now && !/\s$/.test(now) ? `${now} ` : now}${names.map((path) => mentionOf(path.replace(/^\//, ""))).join(" ")} `);
    area.current?.focus();
  };
  const dropping = useDrop(onFiles ? attach : null);
  const usual: InputKind = busy && enter === "interrupt" ? "interrupt" : "message";
  const key = (event: KeyboardEvent<HTMLTextAreaElement>): void => {
    if (mentions.key(event)) return;
    if (event.key !== "Enter" || event.nativeEvent.isComposing || event.keyCode === 229) return;
    if (event.shiftKey) return;
    event.preventDefault();
    if (busy && (event.ctrlKey || event.metaKey)) void send("steer");
    else if (busy && event.altKey) void send("message");
    else void send(usual);
  };
  return (
    <form
      className={dropping ? "composer dropping" : "composer"}
      onSubmit={(event) => {
        event.preventDefault();
        void send(usual);
      }}
    >
      {above}
      {transfer && <TransferRow transfer={transfer} />}
      <MentionMenu mentions={mentions} />
      <div className="composer-box">
        {onFiles ? (
          <>
            <IconButton icon={Paperclip} label={t.attach} onClick={() => picker.current?.click()} />
            <input
              ref={picker}
              type="file"
              multiple
              hidden
              onChange={(event) => {
                void attach([...(event.target.files ?? [])]);
                event.target.value = "";
              }}
            />
          </>
        ) : (
          <span style={{ width: "0.4rem" }} />
        )}
        <textarea
          ref={area}
          rows={1}
          aria-label={t.yourMessage}
          placeholder={(tiny ? t.typeShort : t.typeLong)[busy ? enter : "here"]}
          value={text}
          aria-haspopup="listbox"
          aria-controls={mentions.offered.length > 0 ? mentions.id : undefined}
          aria-autocomplete="list"
          aria-activedescendant={mentions.offered.length > 0 ? `${mentions.id}-${mentions.picked}` : undefined}
          onChange={(event) => {
            setText(event.target.value);
            mentions.look();
          }}
          onClick={mentions.look}
          onKeyDown={key}
          onKeyUp={(event) => ["ArrowLeft", "ArrowRight", "Home", "End"].includes(event.key) && mentions.look()}
          onBlur={mentions.close}
          onPaste={(event) => {
            const files = [...event.clipboardData.files];
            if (!onFiles || files.length === 0) return;
            event.preventDefault();
            void attach(files);
          }}
        />
        <span style={{ display: "flex", gap: "0.25rem" }}>
          <VoiceButton onWords={(words) => setText((before) => `${before.trimEnd()}${before.trim() ? " " : ""}${words}`)} />
          {busy && onStop && <IconButton icon={Square} label={t.stop} className="danger" size={14} onClick={onStop} />}
          <button type="submit" className="button icon primary" aria-label={t.send} title={t.send} disabled={!text.trim() || disabled}>
            <ArrowUp size={18} aria-hidden="true" />
          </button>
        </span>
      </div>
      <div className="hints">
        {busy ? (
          <span>
            <kbd>Enter</kbd> {enter === "interrupt" ? t.interrupts : t.queues} · <kbd>Alt</kbd>+<kbd>Enter</kbd> {t.queues}
            {face === "dev" && (
              <>
                {" "}
                · <kbd>Ctrl</kbd>+<kbd>Enter</kbd> {t.steers}
              </>
            )}
          </span>
        ) : (
          <span>{t.landsNothing}</span>
        )}
        {model}
        {busy && (
          <Menu
            small
            up
            label={t.enterMeans}
            icon={Settings2}
            items={[
              { label: t.enterInterrupts, checked: enter === "interrupt", onPick: () => prefer({ enter: "interrupt" }) },
              { label: t.enterQueues, checked: enter === "queue", onPick: () => prefer({ enter: "queue" }) },
            ]}
          />
        )}
      </div>
    </form>
  );
});
