/** Starts the application. */

import "@fontsource-variable/inter/wght.css";
import "@fontsource-variable/jetbrains-mono/wght.css";
import "./styles/base.css";
import "./styles/ui.css";
import "./styles/overlays.css";
import "./styles/layout.css";
import "./styles/prose.css";
import "./styles/chat.css";
import "./styles/work.css";
import "./styles/composer.css";
import "./styles/review.css";
import "./styles/comments.css";
import "./styles/conflict.css";
import "./styles/diff.css";
import "./styles/panels.css";
import "./styles/pages.css";
import "./styles/print.css";
import { createRoot } from "react-dom/client";

const at = document.getElementById("root");
if (!at) throw new Error("index.html has no #root");
const root = createRoot(at);
// The library that draws and the application are two tasks: what a person does meanwhile is answered between them (UI-93).
void import("./app/start.tsx").then(({ start }) => start(root));
