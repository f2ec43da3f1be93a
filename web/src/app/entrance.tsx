/** The sign-in as a page of its own, or over what somebody was at, which stays as it is below: unseen and out of reach. */

import { useLayoutEffect, useRef } from "react";
import { t } from "../text.ts";
import SignIn from "./sign_in.tsx";

interface EntranceProps {
  reason: string | null;
  over: boolean;
  onDone: () => void;
}

export default function Entrance({ reason, over, onDone }: EntranceProps) {
  const cover = useRef<HTMLDialogElement>(null);
  // Before anything is painted; the newest modal dialog is the one that can be used, whatever was open below.
  useLayoutEffect(() => {
    if (over) cover.current?.showModal();
  }, [over]);
  if (!over) return <SignIn reason={reason} onDone={onDone} />;
  return (
    <dialog
      ref={cover}
      className="cover"
      aria-label={t.signIn}
      onCancel={(event) => event.preventDefault()}
      // A browser may close it all the same, on a second Escape.
      onClose={() => cover.current?.showModal()}
    >
      <SignIn reason={reason} onDone={onDone} />
    </dialog>
  );
}
