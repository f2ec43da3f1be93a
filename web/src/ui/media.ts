/** Whether a media query holds, as it changes. */

import { useEffect, useState } from "react";

/** So narrow that panels lie over the page (`styles/layout.css`). */
export const PANEL_IS_SHEET = "(max-width: 1100px)";

/** Whether a media query holds now. */
export function useMedia(query: string): boolean {
  const [matches, setMatches] = useState(() => matchMedia(query).matches);
  useEffect(() => {
    const list = matchMedia(query);
    const look = (): void => setMatches(list.matches);
    look();
    list.addEventListener("change", look);
    return () => list.removeEventListener("change", look);
  }, [query]);
  return matches;
}
