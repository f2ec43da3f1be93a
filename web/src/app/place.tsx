/** Which face this is, and addresses within it. */

import { createContext, useContext } from "react";
import type { Face } from "../state/preferences.ts";

export const FaceContext = createContext<Face>("user");

export function useFace(): Face {
  return useContext(FaceContext);
}

export interface Links {
  home: string;
  chat: (id: string) => string;
  review: (id: string) => string;
  attempts: (id: string) => string;
  landings: string;
  usage: string;
  skills: string;
  memory: string;
  sandbox: string;
  tokens: string;
  permissions: string;
  agents: string;
  schedules: string;
  settings: string;
}

const make = (prefix: string): Links => ({
  home: prefix || "/",
  chat: (id) => `${prefix}/c/${id}`,
  review: (id) => `${prefix}/c/${id}/diff`,
  attempts: (id) => `/dev/c/${id}/attempts`,
  landings: `${prefix}/landings`,
  usage: `${prefix}/usage`,
  skills: "/dev/skills",
  memory: "/dev/memory",
  sandbox: "/dev/sandbox",
  tokens: "/dev/tokens",
  permissions: `${prefix}/permissions`,
  agents: "/dev/agents",
  schedules: `${prefix}/schedules`,
  settings: `${prefix}/settings`,
});

const LINKS: Record<Face, Links> = { dev: make("/dev"), user: make("") };

export function useLinks(): Links {
  return LINKS[useFace()];
}
