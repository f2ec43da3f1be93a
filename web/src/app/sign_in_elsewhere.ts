/** Sign-in over the tabs of one browser: the credential stays in each tab's own storage, and tabs hand it on (UI-38, UI-94). */

import { token } from "../api/client.ts";
import { forgetLeft } from "../ui/left.ts";

type Said = { say: "who-is-in" } | { say: "in"; token: string } | { say: "out" };

const channel = "BroadcastChannel" in window ? new BroadcastChannel("bowerbird.sign-in") : null;
let heard: (secret: string) => void = () => undefined;

function say(what: Said): void {
  channel?.postMessage(what);
}

/** Answer other tabs, and leave with them; `left` is called when another tab signed out. */
export function shareSignIn(left: () => void): void {
  if (!channel) return;
  channel.onmessage = ({ data }: MessageEvent<Said>) => {
    const mine = token.get();
    if (data.say === "who-is-in" && mine) say({ say: "in", token: mine });
    else if (data.say === "in" && !mine) heard(data.token);
    else if (data.say === "out" && mine) {
      token.clear();
      forgetLeft();
      left();
    }
  };
}

/** Hear the credential of another tab: one that is signed in, or is signed in later. Returns what ends that. */
export function signInElsewhere(found: (secret: string) => void): () => void {
  heard = found;
  say({ say: "who-is-in" });
  return () => {
    heard = () => undefined;
  };
}

/** Let other tabs that wait for it in, too. */
export function handOn(): void {
  const mine = token.get();
  if (mine) say({ say: "in", token: mine });
}

/** Forget the credential, and how pages were left, here and in every other tab. */
export function signOut(): void {
  token.clear();
  forgetLeft();
  say({ say: "out" });
}
