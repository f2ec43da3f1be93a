/** Sign-in over the tabs of one browser: the credential stays in each tab's own storage, and tabs hand it on (UI-38, UI-94). */

import { token } from "../api/client.ts";

type Said = { say: "who-is-in" } | { say: "in"; token: string } | { say: "out" };

const ANSWER_MS = 400;
const channel = "BroadcastChannel" in window ? new BroadcastChannel("bowerbird.sign-in") : null;
let heard: (secret: string) => void = () => undefined;

/** Answer other tabs, and leave with them; `left` is called when another tab signed out. */
export function shareSignIn(left: () => void): void {
  if (!channel) return;
  channel.onmessage = ({ data }: MessageEvent<Said>) => {
    const mine = token.get();
    if (data.say === "who-is-in" && mine) channel.postMessage({ say: "in", token: mine } satisfies Said);
    else if (data.say === "in") heard(data.token);
    else if (data.say === "out" && mine) {
      token.clear();
      left();
    }
  };
}

/** Return the credential of another tab, null when no tab is signed in. */
export async function signInElsewhere(): Promise<string | null> {
  if (!channel) return null;
  return new Promise((resolve) => {
    const nobody = setTimeout(() => resolve(null), ANSWER_MS);
    heard = (secret) => {
      clearTimeout(nobody);
      resolve(secret);
    };
    channel.postMessage({ say: "who-is-in" } satisfies Said);
  });
}

/** Forget the credential here and in every other tab. */
export function signOut(): void {
  token.clear();
  channel?.postMessage({ say: "out" } satisfies Said);
}
