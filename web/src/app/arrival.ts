/** What tells people where they are: the window's title, and the focus where a new page begins (UI-36). */

import { useEffect, useRef, type RefObject } from "react";

const NAME = "Bowerbird";

let page = "";
let waiting = 0;

function show(): void {
  const title = `${waiting > 0 ? `(${waiting}) ` : ""}${page ? `${page} – ` : ""}${NAME}`;
  if (document.title !== title) document.title = title;
}

/** Say in the title how many conversations wait for an answer. */
export function titleWaits(count: number): void {
  waiting = count;
  show();
}

/**
 * Name the window after the page's heading, but for the first page; and when the link that led to a page went away
 * with the page it was on, go on at the heading of the new one.
 */
export function useArrival(main: RefObject<HTMLElement | null>, location: string, isHome: boolean): void {
  const before = useRef(location);
  useEffect(() => {
    const within = main.current;
    if (!within) return;
    let isNew = before.current !== location;
    before.current = location;
    let heading: HTMLElement | undefined;
    const look = (): void => {
      // While an answer grows this is called for each piece of it: a heading that is found is looked for no more.
      // What is left behind stays, unseen, until the new page is there.
      if (!heading?.isConnected) heading = [...within.querySelectorAll("h1")].find((one) => one.checkVisibility());
      page = isHome ? "" : (heading?.textContent?.trim() ?? "");
      show();
      if (!isNew || !heading) return;
      isNew = false;
      const at = document.activeElement;
      if (at && at !== document.body && at.checkVisibility()) return; // a menu's or a box's own place
      heading.tabIndex = -1;
      heading.focus({ preventScroll: true });
    };
    look();
    const watch = new MutationObserver(look);
    watch.observe(within, { childList: true, subtree: true, characterData: true });
    return () => watch.disconnect();
  }, [main, location, isHome]);
}
