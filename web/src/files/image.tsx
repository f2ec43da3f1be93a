/** A picture of a branch, shown from its own bytes. */

import { useEffect, useState } from "react";
import { api } from "../api/client.ts";
import { t } from "../text.ts";

export function BranchImage({ conversation, path, version, at }: { conversation: string; path: string; version?: "old"; at?: string | null }) {
  const [address, setAddress] = useState<string | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  useEffect(() => {
    let made: string | null = null;
    let here = true;
    api.download(conversation, path, version, at).then(
      (blob) => {
        // A vector picture is shown as one only by its type; as an image it runs no script.
        made = URL.createObjectURL(path.endsWith(".svg") ? new Blob([blob], { type: "image/svg+xml" }) : blob);
        if (here) setAddress(made);
        else URL.revokeObjectURL(made);
      },
      (error: unknown) => here && setProblem(error instanceof Error ? error.message : String(error)),
    );
    return () => {
      here = false;
      if (made) URL.revokeObjectURL(made);
    };
  }, [conversation, path, version, at]);
  if (problem) return <p className="muted">{problem}</p>;
  return address ? <img src={address} alt={path.replace(/^\//, "")} /> : <span className="skeleton" role="status" aria-label={t.loading} />;
}
