/** Google's own button, shown only where the server asks for Google (UI-38); its script comes from there alone. */

import { useEffect, useRef, useState } from "react";
import { t } from "../text.ts";
import { Problem } from "../ui/kit.tsx";

const SCRIPT = "https://accounts.google.com/gsi/client";

interface GoogleId {
  initialize: (options: { client_id: string; callback: (answer: { credential: string }) => void }) => void;
  renderButton: (place: HTMLElement, options: Record<string, string>) => void;
}

declare global {
  interface Window {
    google?: { accounts: { id: GoogleId } };
  }
}

let loading: Promise<GoogleId> | null = null;

function load(): Promise<GoogleId> {
  loading ??= new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = SCRIPT;
    script.async = true;
    script.onload = () => (window.google ? resolve(window.google.accounts.id) : reject(new Error(t.googleAway)));
    script.onerror = () => {
      loading = null;
      script.remove();
      reject(new Error(t.googleAway));
    };
    document.head.append(script);
  });
  return loading;
}

export function GoogleButton({ client, onCredential }: { client: string; onCredential: (credential: string) => void }) {
  const place = useRef<HTMLDivElement>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const done = useRef(onCredential);
  done.current = onCredential;
  useEffect(() => {
    let here = true;
    load().then(
      (google) => {
        if (!here || !place.current) return;
        google.initialize({ client_id: client, callback: ({ credential }) => done.current(credential) });
        google.renderButton(place.current, { theme: "outline", size: "large", text: "signin_with" });
      },
      (error: Error) => here && setProblem(error.message),
    );
    return () => {
      here = false;
    };
  }, [client]);
  return (
    <>
      <div ref={place} className="google" data-testid="google" />
      {problem && <Problem tone="warn">{problem}</Problem>}
    </>
  );
}
