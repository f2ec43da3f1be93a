/** Settings, a first model, and web push over REST (UI-83, UI-95). Not here: the rest of the API (`client.ts`). */

import type { components } from "../../generated/openapi";
import { call, send } from "./client.ts";

type Schemas = components["schemas"];
type Known<Schema> = { [Key in keyof Schema as string extends Key ? never : Key]: Schema[Key] };

export type SettingRow = Known<Schemas["SettingShown"]>;
export type Setup = Known<Schemas["SetupShown"]>;
export type ModelFetch = Known<Schemas["FetchShown"]>;
export type Reloaded = Known<Schemas["ReloadedShown"]>;

export const settingsApi = {
  all: () => call<SettingRow[]>("GET", "/api/settings"),
  change: (values: Record<string, unknown>, reset: readonly string[] = []) => call<Reloaded>("PATCH", "/api/settings", { values, reset }),
  setup: () => call<Setup>("GET", "/api/setup"),
  fetchModel: (small: boolean) => call("POST", "/api/setup/fetch", { small }),
  stopFetch: () => call("DELETE", "/api/setup/fetch"),
};

export const pushApi = {
  key: async () => (await call<{ key: string }>("GET", "/api/push/key")).key,
  subscribe: (subscription: PushSubscriptionJSON) => call("PUT", "/api/push/subscription", { endpoint: subscription.endpoint, keys: subscription.keys }),
  /** Also while the page is being left. */
  unsubscribe: (endpoint: string) => send("POST", "/api/push/unsubscribe", { endpoint }),
};
