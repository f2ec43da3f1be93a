/** The service worker and web push: what of them this browser has, turned on and off (UI-95). */

import { ApiError } from "../api/client.ts";
import { pushApi } from "../api/settings.ts";
import { prefer } from "../state/preferences.ts";
import { t } from "../text.ts";
import { mayNotify } from "../ui/browser.ts";
import { base, origin } from "../api/place.ts";

/** Install the service worker, where this page comes from the server itself. */
export function installWorker(): void {
  if (!("serviceWorker" in navigator) || origin() !== "") return;
  const install = (): void => {
    navigator.serviceWorker.register(`${base()}/sw.js`, { scope: `${base()}/`, updateViaCache: "none" }).catch((error: unknown) => {
      console.warn("no service worker", error); // the page works without; push and offline do not
    });
  };
  if (document.readyState === "complete") install();
  else addEventListener("load", install, { once: true });
}

async function subscription(): Promise<PushSubscription | null> {
  if (!("serviceWorker" in navigator)) return null;
  const worker = await navigator.serviceWorker.getRegistration(`${base()}/`);
  return (await worker?.pushManager?.getSubscription()) ?? null;
}

function bytes(key: string): Uint8Array<ArrayBuffer> {
  const text = atob(key.replace(/-/g, "+").replace(/_/g, "/"));
  return Uint8Array.from(text, (letter) => letter.charCodeAt(0));
}

/** Subscribe at the browser's push service; return what to say where there is none. */
async function subscribe(): Promise<string | null> {
  if (!("serviceWorker" in navigator) || !("PushManager" in window)) return t.notifyTabs;
  const worker = await navigator.serviceWorker.getRegistration(`${base()}/`);
  if (!worker?.active) return t.notifyTabs;
  try {
    const made = await worker.pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: bytes(await pushApi.key()) });
    await pushApi.subscribe(made.toJSON());
    return null;
  } catch (error) {
    console.warn("no web push", error); // its service cannot be reached, or the server does without
    return error instanceof ApiError && error.code === "extra_missing" ? `${t.notifyOpenTabs} ${error.message}` : t.notifyTabs;
  }
}

/** Ask to be told; return what to say about it. */
export async function notifyMe(): Promise<string> {
  if (!(await mayNotify())) return "Notification" in window ? t.notifyBlocked : t.notifyOff;
  const without = await subscribe();
  prefer({ notify: true, push: without === null });
  return without ?? t.notifyOn;
}

/** Be told no longer, here and by the server; also at sign-out. */
export async function stopNotifying(): Promise<void> {
  prefer({ notify: false, push: false });
  const made = await subscription().catch(() => null);
  if (!made) return;
  // One after the other: a server that is away must not keep the browser subscribed.
  await pushApi.unsubscribe(made.endpoint).catch(() => undefined);
  await made.unsubscribe().catch(() => undefined);
}
