/** The rows of a conversation, virtualised; stays at the end while the person is there (UI-16). */

import { ArrowDown } from "lucide-react";
import { useEffect, useMemo, useRef, useState, type ReactNode } from "react";
import { Virtuoso, type VirtuosoHandle } from "react-virtuoso";
import { useFace } from "../app/place.tsx";
import type { Entry } from "../state/entries.ts";
import type { Said } from "../state/live.ts";
import { t } from "../text.ts";
import { hashNow } from "../ui/browser.ts";
import { useLeft } from "../ui/left.ts";
import { RowView, type EntryActions } from "./entries.tsx";
import { placeOfRead, readNow, useHeldPlace, type Read } from "./held_place.ts";
import { OnPaper } from "./on_paper.tsx";
import { Parting, rowsOf, type Row } from "./rows.ts";

interface TranscriptProps {
  entries: readonly Entry[];
  /** Whether the first entry is the first of the conversation. */
  whole: boolean;
  /** How it was looked at is kept under this name for who comes back; a replay begins anew. */
  kept: "live" | "replay";
  unsent: readonly Said[];
  offline: boolean;
  actions: EntryActions;
  foot: ReactNode;
}

interface FootContext {
  whole: boolean;
  unsent: readonly Said[];
  offline: boolean;
  foot: ReactNode;
}

function Foot({ context }: { context?: FootContext }) {
  return (
    <>
      {context?.unsent.map((said) => (
        <div key={said.id} className="turn-row">
          <div className="said">
            <div className="bubble pending">{said.content}</div>
            {context.offline && <div className="by">{t.sentWhenBack}</div>}
          </div>
        </div>
      ))}
      {context?.foot && <div className="turn-row">{context.foot}</div>}
      <div className="spacer" />
    </>
  );
}

function Top({ context }: { context?: FootContext }) {
  if (context?.whole !== false) return <div className="spacer" />;
  return (
    <div className="turn-row muted" role="status">
      {t.earlierMessages}
    </div>
  );
}

const parts = { Footer: Foot, Header: Top };
/** What stands first when the page opens has this number; what comes above it later has smaller ones. */
const FIRST = 1_000_000;

/** Return the number of the first row: what comes above or goes there leaves the other rows their numbers. */
function useFirst(rows: readonly Row[]): number {
  const last = useRef({ rows, first: FIRST });
  return useMemo(() => {
    const before = last.current;
    let { first } = before;
    for (const [at, row] of before.rows.entries()) {
      if (row.kind === "work") continue; // it may grow upwards and be another one then
      const now = rows.findIndex((one) => one.key === row.key);
      if (now < 0) continue;
      first = before.first + at - now;
      break;
    }
    last.current = { rows, first };
    return first;
  }, [rows]);
}

/** Return the place that the address names, `#t_…`: the first row of a turn. */
function named(): Read | null {
  const turn = hashNow();
  return turn.startsWith("t_") ? { row: "", turn, above: 0 } : null;
}

export function Transcript({ entries, whole, kept, unsent, offline, actions, foot }: TranscriptProps) {
  const face = useFace();
  const [parting] = useState(() => new Parting());
  const rows = useMemo(() => rowsOf(entries, face, parting), [entries, face, parting]);
  const first = useFirst(rows);
  const list = useRef<VirtuosoHandle>(null);
  const [atEnd, setAtEnd] = useState(true);
  const frame = useRef<HTMLDivElement>(null);
  const [left, keepAs] = useLeft<Read>(kept);
  // Who comes back begins where it was left; an address may name a turn.
  const [begin] = useState(() => left ?? (kept === "live" ? named() : null));
  const [beginsAt] = useState(() => (begin ? (placeOfRead(begin, { rows, whole }) ?? -1) : -1));
  // Only the person ends following, and the place that they come back to: what grows below the edge by itself does not.
  const follows = useRef(beginsAt < 0);
  const toEnd = (): void => list.current?.scrollTo({ top: Number.MAX_SAFE_INTEGER });
  const follow = (): void => {
    follows.current = true;
    toEnd();
  };
  const shown = { rows, first, whole };
  const found = (): void => {
    follows.current = false;
  };
  const held = useHeldPlace({ frame, list }, begin, shown, { found, gone: follow });
  // Only who moved the list since its room last changed has brought it to its end: while it is laid out anew it may stand there by itself.
  const isMoved = useRef(false);
  const moved = (): void => {
    isMoved.current = true;
    held.free();
  };
  const settle = (): void => {
    if (follows.current) toEnd();
    held.look();
  };
  keepAs(() => (kept === "replay" ? null : (held.now() ?? (follows.current ? null : readNow(frame.current, shown)))));
  // Who says something wants to see it, and what is answered.
  const said = useRef(unsent.length);
  useEffect(() => {
    const isMore = unsent.length > said.current;
    said.current = unsent.length;
    if (!isMore) return;
    held.free();
    follow();
  }, [unsent.length]);
  // What comes below later (tasks, a longer box, a keyboard) takes room from the end that is read.
  useEffect(() => {
    if (!frame.current) return;
    const resized = new ResizeObserver(() => {
      isMoved.current = false;
      settle();
    });
    resized.observe(frame.current);
    return () => resized.disconnect();
  }, [held]);
  return (
    <div
      ref={frame}
      className="transcript"
      data-testid="transcript"
      onWheel={(event) => {
        moved();
        if (event.deltaY < 0) follows.current = false;
      }}
      onClick={(event) => {
        // Who opens something wants to read it.
        if (event.target instanceof Element && event.target.closest("summary")) follows.current = false;
      }}
      onTouchMove={() => {
        moved();
        follows.current = false;
      }}
      onPointerDown={(event) => {
        // The scroll bar: a press beside the content.
        moved();
        if (event.target instanceof HTMLElement && event.target.dataset["virtuosoScroller"]) follows.current = false;
      }}
      onKeyDown={(event) => {
        moved();
        if (["ArrowUp", "PageUp", "Home"].includes(event.key)) follows.current = false;
      }}
      onFocus={(event) => {
        if (!(event.target instanceof HTMLElement && event.target.dataset["virtuosoScroller"])) moved();
      }}
    >
      <Virtuoso<Row, FootContext>
        ref={list}
        style={{ height: "100%" }}
        data={rows as Row[]}
        firstItemIndex={first}
        context={{ whole, unsent, offline, foot }}
        computeItemKey={(_, row) => row.key}
        itemContent={(_, row) => <RowView row={row} actions={actions} />}
        components={parts}
        initialTopMostItemIndex={beginsAt < 0 ? { index: Math.max(rows.length - 1, 0), align: "end" } : { index: beginsAt, align: "start", offset: begin?.above ?? 0 }}
        alignToBottom={false}
        followOutput={() => (follows.current ? "auto" : false)}
        totalListHeightChanged={() => {
          settle();
          requestAnimationFrame(settle); // the list says its height before it has it
        }}
        atBottomThreshold={60}
        atBottomStateChange={(bottom) => {
          if (bottom && isMoved.current) follows.current = true;
          setAtEnd(bottom);
        }}
        increaseViewportBy={{ top: 600, bottom: 600 }}
        role="log"
        aria-live="off"
        aria-label={t.conversation}
        tabIndex={0}
      />
      {!atEnd && !follows.current && (
        <button
          type="button"
          className="button to-bottom"
          onClick={() => {
            held.free();
            follow();
          }}
        >
          <ArrowDown size={15} aria-hidden="true" />
          {t.toEnd}
        </button>
      )}
      <OnPaper rows={rows} actions={actions} />
      <Announcer entries={entries} />
    </div>
  );
}

/** Reads the growing answer out in whole sentences (UI-36). */
function Announcer({ entries }: { entries: readonly Entry[] }) {
  const last = entries.at(-1);
  const live = last?.kind === "text" ? last : null;
  const said = useRef<{ key: string; upTo: number }>({ key: "", upTo: 0 });
  const [words, setWords] = useState("");
  const seen = useRef(false);
  useEffect(() => {
    if (!live) return;
    if (!seen.current || live.key !== said.current.key) {
      // What was there when the page opened is read by the person, not read out.
      said.current = { key: live.key, upTo: live.done && !seen.current ? live.text.length : 0 };
      seen.current = true;
    }
    const rest = live.text.slice(said.current.upTo);
    const end = live.done ? rest.length : Math.max(...[". ", "! ", "? ", "\n"].map((mark) => rest.lastIndexOf(mark))) + 1;
    if (end <= 0) return;
    said.current.upTo += end;
    setWords(rest.slice(0, end).slice(-600));
  }, [live]);
  return (
    <div className="hidden" aria-live="polite">
      {words}
    </div>
  );
}
