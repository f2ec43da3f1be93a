/** What somebody opened stays open when it is scrolled out of a list and back: lists draw only what is seen. */

import { useState } from "react";

const opened = new Set<string>();

/** Whether the thing with this key is open, and how to change that. */
export function useOpened(key: string): [boolean, (open: boolean) => void] {
  const [open, setOpen] = useState(() => opened.has(key));
  return [
    open,
    (next) => {
      if (next) opened.add(key);
      else opened.delete(key);
      setOpen(next);
    },
  ];
}
