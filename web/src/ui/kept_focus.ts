/** Where the focus goes when what has it is drawn no more: to what it stood in, not to the page's top (UI-36). */

import { useEffect, type RefObject } from "react";

/** Keep the focus inside `root`, once that is `there`, when the element that has it goes away: at the first of `places`. */
export function useKeptFocus(root: RefObject<HTMLElement | null>, there: boolean, places: readonly string[]): void {
  useEffect(() => {
    const within = root.current;
    if (!within) return;
    let around: HTMLElement[] = [];
    const note = ({ target }: FocusEvent): void => {
      around = [];
      for (let part = target instanceof HTMLElement ? target : null; part && part !== within; part = part.parentElement) around.push(part);
    };
    const watch = new MutationObserver(() => {
      const [had] = around;
      if (!had || had.isConnected || document.activeElement !== document.body) return;
      const near = around.find((part) => part.isConnected)?.closest<HTMLElement>("[tabindex='0']");
      const next = places.map((one) => (near ?? within).querySelector<HTMLElement>(one)).find((one) => one !== null);
      (next ?? near)?.focus({ preventScroll: true });
    });
    within.addEventListener("focusin", note);
    watch.observe(within, { childList: true, subtree: true });
    return () => {
      within.removeEventListener("focusin", note);
      watch.disconnect();
    };
  }, [root, there, places]);
}
