/** Every text of both faces, in one catalogue (UI-39). English ships; another language is another such value. */

import { chat } from "./texts/chat.ts";
import { more } from "./texts/more.ts";
import { panels } from "./texts/panels.ts";
import { reasons } from "./texts/reasons.ts";
import { review } from "./texts/review.ts";
import { schedules } from "./texts/schedules.ts";
import { settings } from "./texts/settings.ts";
import { shell } from "./texts/shell.ts";
import { steps } from "./texts/steps.ts";

export const t = { ...shell, ...chat, ...review, ...panels, ...more, ...schedules, ...reasons, ...steps, ...settings };
