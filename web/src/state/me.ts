/** Who uses this page and what they may do (UI-94). Asked once, and again after a sign-in. */

import { useSyncExternalStore } from "react";
import { api } from "../api/client.ts";

export type Role = "viewer" | "user" | "admin";

export interface Me {
  /** "" on a server that asks nobody. */
  name: string;
  /** Whose credential it is: one person may have several, each with a name. */
  user: string;
  role: Role;
}

const ROLES: readonly string[] = ["viewer", "user", "admin"];
const listeners = new Set<() => void>();
let now: Me | null = null;

/** Ask who this is; resolves to null when nobody is signed in, or the server is away. */
export async function askWhoIAm(): Promise<Me | null> {
  const said = await api.me().catch(() => null);
  if (!said?.authenticated) return null;
  const role = ROLES.includes(said.role ?? "") ? (said.role as Role) : "viewer";
  now = { name: said.name || said.email || "", user: said.user ?? "", role };
  for (const listener of listeners) listener();
  return now;
}

/** Who the server said this was, when it was last asked. */
export const whoIAm = (): Me | null => now;

/** Let `listener` hear when it is known who this is. */
export function whenIAmKnown(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Who this is; null until the server has said so. */
export function useMe(): Me | null {
  return useSyncExternalStore(whenIAmKnown, whoIAm, whoIAm);
}

/** Whether what `role` may do is offered; before the server has said who this is, what most may do is. */
export function useMay(role: Role): boolean {
  const me = useMe();
  return me === null ? role !== "admin" : ROLES.indexOf(me.role) >= ROLES.indexOf(role);
}
