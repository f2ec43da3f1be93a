/** The frame of every page: sidebar and main place; the sidebar is a sheet on narrow screens. */

import { createContext, lazy, Suspense, useContext, useEffect, useRef, useState, type ReactNode } from "react";
import { PanelLeft } from "lucide-react";
import { useLocation } from "wouter";
import { Sidebar } from "../sessions/sidebar.tsx";
import { prefer, usePreferences } from "../state/preferences.ts";
import { t } from "../text.ts";
import { IconButton } from "../ui/kit.tsx";
import { useLeaving } from "../ui/leaving.ts";
import { useMedia } from "../ui/media.ts";
import { useArrival } from "./arrival.ts";
import { useFace, useLinks } from "./place.tsx";

const NewChat = lazy(() => import("../dev/new_chat.tsx"));

const NARROW = "(max-width: 860px)";
const NARROW_REVIEW = "(max-width: 1200px)"; // tree and diff need the room

interface ShellActions {
  toggleSidebar: () => void;
  newChat: () => void;
}

const Actions = createContext<ShellActions>({ toggleSidebar: () => undefined, newChat: () => undefined });

export function useShell(): ShellActions {
  return useContext(Actions);
}

/** The button that every page's head begins with. */
export function SidebarButton() {
  const { toggleSidebar } = useShell();
  return <IconButton icon={PanelLeft} label={t.toggleSidebar} onClick={toggleSidebar} />;
}

export function Shell({ children }: { children: ReactNode }) {
  const face = useFace();
  const links = useLinks();
  const [location, go] = useLocation();
  const { sidebar } = usePreferences();
  const narrow = useMedia(location.endsWith("/diff") ? NARROW_REVIEW : NARROW);
  const [sheet, setSheet] = useState(false);
  const [dialog, setDialog] = useState(false);
  const open = narrow ? sheet : sidebar;
  useEffect(() => setSheet(false), [location]);
  useLeaving(narrow && sheet, () => setSheet(false));
  const newChat = (): void => {
    setSheet(false);
    if (face === "dev") setDialog(true);
    else go(links.home);
  };
  const toggleSidebar = (): void => (narrow ? setSheet(!sheet) : prefer({ sidebar: !sidebar }));
  const main = useRef<HTMLElement>(null);
  useArrival(main, location, location === links.home);
  const current = /\/c\/([^/]+)/.exec(location)?.[1] ?? null;
  return (
    <Actions value={{ toggleSidebar, newChat }}>
      <div className="shell">
        {open && (
          <aside className={`sidebar ${narrow ? "sheet" : ""}`} aria-label={t.sessions}>
            <Sidebar current={current} onNew={newChat} />
          </aside>
        )}
        {narrow && sheet && (
          <button type="button" className="scrim narrow-only" aria-label={t.close} onClick={() => setSheet(false)} />
        )}
        <main ref={main} className="main">
          {children}
        </main>
      </div>
      {dialog && (
        <Suspense>
          <NewChat onClose={() => setDialog(false)} />
        </Suspense>
      )}
    </Actions>
  );
}
