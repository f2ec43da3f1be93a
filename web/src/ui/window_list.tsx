/** A long list of sections with rows, of which only what is near the screen is drawn. Not here: what is in them. */

import { useCallback, useEffect, useImperativeHandle, useLayoutEffect, useMemo, useReducer, useRef, useState, type ReactNode, type Ref } from "react";
import { placeOf, rowAt, rowKey, windowOf, type At, type Section } from "../state/window.ts";
import { useLeft } from "./left.ts";

export interface ListHandle {
  /** Bring a section, or one of its rows, into view; nothing moves when it is there already. */
  show: (section: string, row: string | null) => void;
}

interface WindowListProps {
  sections: readonly Section[];
  label: string;
  handle: Ref<ListHandle>;
  /** Draw a section around its head and the rows that are seen. */
  section: (index: number, head: (content: ReactNode) => ReactNode, rows: ReactNode) => ReactNode;
  row: (index: number, row: number) => ReactNode;
}

const AHEAD = 900;
const GRAIN = 240;
const MOST_TRIES = 20;
/** What lies between two sections; the measured head does not hold it. */
export const SECTION_GAP = 14;

export function WindowList({ sections, label, handle, section, row }: WindowListProps) {
  const scroller = useRef<HTMLDivElement>(null);
  const heights = useRef(new Map<string, number>());
  const latest = useRef(sections);
  latest.current = sections;
  const [version, measured] = useReducer((count: number) => count + 1, 0);
  const [range, setRange] = useState({ top: 0, bottom: 2400 });
  const look = useCallback((): void => {
    const element = scroller.current;
    if (!element) return;
    const top = Math.floor((element.scrollTop - AHEAD) / GRAIN) * GRAIN;
    const bottom = Math.ceil((element.scrollTop + element.clientHeight + AHEAD) / GRAIN) * GRAIN;
    setRange((old) => (old.top === top && old.bottom === bottom ? old : { top, bottom }));
  }, []);
  const observer = useMemo(
    () =>
      new ResizeObserver((entries) => {
        let changed = false;
        for (const entry of entries) {
          const key = (entry.target as HTMLElement).dataset["row"];
          const size = entry.borderBoxSize[0]?.blockSize ?? 0;
          if (key === undefined || size === 0) continue;
          const height = size + (key.endsWith("\n") ? SECTION_GAP : 0);
          if (Math.abs((heights.current.get(key) ?? -1) - height) < 0.5) continue;
          heights.current.set(key, height);
          changed = true;
        }
        if (changed) measured();
      }),
    [],
  );
  const measure = useCallback(
    (element: HTMLElement | null) => {
      if (!element) return;
      observer.observe(element);
      return () => observer.unobserve(element);
    },
    [observer],
  );
  // Who comes back finds the row at the edge that was there, whatever is measured above it, until the list is moved.
  const [left, keepAs] = useLeft<At>("list");
  keepAs(() => (scroller.current?.clientHeight ? rowAt(latest.current, heights.current, scroller.current.scrollTop) : null));
  const wanted = useRef(left);
  const free = (): void => {
    wanted.current = null;
  };
  useLayoutEffect(() => {
    const at = wanted.current;
    const place = at && (placeOf(sections, heights.current, at.section, at.row) ?? placeOf(sections, heights.current, at.section, null));
    if (scroller.current && at && place !== null) scroller.current.scrollTop = place + at.above;
    look();
  }, [look, sections, version]);
  useEffect(() => {
    const element = scroller.current;
    if (!element) return;
    const resized = new ResizeObserver(look);
    resized.observe(element);
    return () => resized.disconnect();
  }, [look]);
  useImperativeHandle(handle, () => ({
    show: (key, row) => {
      free();
      const place = (one: string | null): number | null => placeOf(latest.current, heights.current, key, one);
      // A row that is not there (yet): its section is.
      bringIntoView(scroller.current, () => place(row) ?? place(null));
    },
  }));
  const shown = useMemo(() => windowOf(sections, heights.current, range.top, range.bottom), [sections, range, version]);
  return (
    <div ref={scroller} className="window-list" tabIndex={0} role="region" aria-label={label} onScroll={look} onWheel={free} onTouchMove={free} onPointerDown={free} onKeyDown={free}>
      <div style={{ height: shown.before }} />
      {shown.sections.map(({ index, from, to, before, after }) => {
        const one = sections[index];
        if (!one) return null;
        const head = (content: ReactNode): ReactNode => (
          <div ref={measure} className="section-head" data-row={rowKey(one.key, "")}>
            {content}
          </div>
        );
        const rows = (
          <>
            {before > 0 && <div style={{ height: before }} />}
            {one.rows.slice(from, to).map((seen, at) => (
              <div key={seen.key} ref={measure} className="section-row" data-row={rowKey(one.key, seen.key)}>
                {row(index, from + at)}
              </div>
            ))}
            {after > 0 && <div style={{ height: after }} />}
          </>
        );
        return (
          <div key={one.key} className="section">
            {section(index, head, rows)}
          </div>
        );
      })}
      <div style={{ height: shown.after }} />
    </div>
  );
}

/** Scroll until the place stands still: what comes into view for the first time is measured only then. */
function bringIntoView(element: HTMLElement | null, place: () => number | null): void {
  let tries = 0;
  const step = (): void => {
    const at = place();
    if (!element || at === null) return;
    const above = at - element.scrollTop;
    const isSeen = above > 50 && above < element.clientHeight * 0.6;
    if (tries === 0 && isSeen) return;
    const wanted = Math.max(0, Math.min(at - Math.round(element.clientHeight * 0.18), element.scrollHeight - element.clientHeight));
    tries += 1;
    if (Math.abs(wanted - element.scrollTop) > 2) element.scrollTop = wanted;
    else if (tries > 2) return;
    if (tries < MOST_TRIES) requestAnimationFrame(step);
  };
  step();
}
