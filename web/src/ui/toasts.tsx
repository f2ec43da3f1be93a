/** Short messages in the corner, each gone by itself; an action on one stays as long as it can be taken. */

import { X } from "lucide-react";
import { useEffect, useSyncExternalStore } from "react";
import { t } from "../text.ts";
import { IconButton } from "./kit.tsx";

interface Toast {
  id: number;
  text: string;
  tone: "info" | "error";
  action: { label: string; run: () => void } | null;
  ms: number;
}

let toasts: readonly Toast[] = [];
let next = 1;
const listeners = new Set<() => void>();

function set(now: readonly Toast[]): void {
  toasts = now;
  for (const listener of listeners) listener();
}

export function toast(text: string, action: Toast["action"] = null, ms = 6000): void {
  set([...toasts.slice(-3), { id: next++, text, tone: "info", action, ms }]);
}

/** Say what failed; an error's own words tell what to do. */
export function complain(error: unknown): void {
  if ((error as { status?: unknown } | null)?.status === 401) return; // the sign-in page says so, over everything
  const text = error instanceof Error ? error.message : String(error);
  // Several that fail for one reason say it once.
  set([...toasts.filter((shown) => shown.text !== text).slice(-3), { id: next++, text, tone: "error", action: null, ms: 9000 }]);
}

function dismiss(id: number): void {
  set(toasts.filter((known) => known.id !== id));
}

function Row({ shown }: { shown: Toast }) {
  useEffect(() => {
    const timer = setTimeout(() => dismiss(shown.id), shown.ms);
    return () => clearTimeout(timer);
  }, [shown.id, shown.ms]);
  const { action } = shown;
  return (
    <div className={`toast ${shown.tone}`} role={shown.tone === "error" ? "alert" : "status"}>
      <span className="grow">{shown.text}</span>
      {action && (
        <button
          type="button"
          className="button small"
          onClick={() => {
            dismiss(shown.id);
            action.run();
          }}
        >
          {action.label}
        </button>
      )}
      <IconButton icon={X} label={t.dismiss} size={15} className="plain small" onClick={() => dismiss(shown.id)} />
    </div>
  );
}

export function Toasts() {
  const shown = useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => toasts,
  );
  return (
    <section className="toasts" aria-label={t.messages}>
      {shown.map((one) => (
        <Row key={one.id} shown={one} />
      ))}
    </section>
  );
}
