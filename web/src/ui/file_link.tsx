/** Links into the files of a conversation; plain words where there are no files to open. */

import { createContext, useContext, type ReactNode } from "react";
import { t } from "../text.ts";
import type { FilePlace } from "./places.ts";
import { placeAddress } from "./places.ts";

/** What opens a file beside the text; null where there are none. */
export const OpenFile = createContext<((place: FilePlace) => void) | null>(null);

export function FileLink({ place, children }: { place: FilePlace; children: ReactNode }) {
  const open = useContext(OpenFile);
  if (!open) return <span>{children}</span>;
  return (
    <a
      className="file-link"
      href={placeAddress(place)}
      title={t.openFile(place.path)}
      onClick={(event) => {
        if (event.metaKey || event.ctrlKey || event.shiftKey) return;
        event.preventDefault();
        open(place);
      }}
    >
      {children}
    </a>
  );
}
