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
import { createRoot } from "react-dom/client";
import { App } from "./app/app.tsx";
import { installWorker } from "./app/push.ts";

const root = document.getElementById("root");
if (!root) throw new Error("index.html has no #root");
createRoot(root).render(<App />);
installWorker();
