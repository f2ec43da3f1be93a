/**
 * What is seen before any script ran: the frame and, where a face begins, its first words (UI-93).
 *
 * The build writes it into index.html, and React puts the page in its place. `theme.js` says on the root which page
 * it is and whether the sidebar is shown. Nobody can use it yet, so it is read out to nobody and has no heading.
 */

import { t } from "../text.ts";

const escaped = (text: string): string => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");

const ideas = t.ideas.map((idea) => `<span class="button">${escaped(idea)}</span>`).join("");

export const firstPaint = `
  <div class="shell boot" aria-hidden="true">
    <div class="sidebar"><div class="brand"><img src="./icon.svg" alt="" width="28" height="28" /><span>Bowerbird</span></div></div>
    <div class="main">
      <div class="head"><span class="boot-title">${escaped(t.sessions)}</span></div>
      <div class="welcome">
        <header>
          <img src="./icon.svg" alt="" width="56" height="56" />
          <span class="boot-title">${escaped(t.welcome)}</span>
          <p>${escaped(t.welcomeText)}</p>
        </header>
        <div class="composer"><div class="composer-box"><span class="boot-box"></span></div><div class="hints">${escaped(t.landsNothing)}</div></div>
        <div class="ideas">${ideas}</div>
      </div>
      <div class="empty boot-wait"><div class="lines"><div class="skeleton"></div><div class="skeleton"></div><div class="skeleton"></div></div></div>
    </div>
  </div>`;
