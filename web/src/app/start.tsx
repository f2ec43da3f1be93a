/** Draws the application, in pieces that let the browser answer between them (UI-93). Not here: what is drawn. */

import { startTransition } from "react";
import type { Root } from "react-dom/client";
import { App } from "./app.tsx";
import { installWorker } from "./push.ts";

export function start(root: Root): void {
  startTransition(() => root.render(<App />));
  installWorker();
}
