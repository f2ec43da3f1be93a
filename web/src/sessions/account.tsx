/** The account corner (UI-94): who this is, theme, notifications, settings, the way out; and the way to other pages. */

import { Bell, BellOff, Bot, Box, Brain, CalendarClock, ChartNoAxesColumn, ChevronsUpDown, CircleUserRound, GraduationCap, History, KeyRound, LayoutGrid, LogOut, Moon, Settings2, ShieldQuestion, Sun, SunMoon } from "lucide-react";
import { useLocation } from "wouter";
import { token } from "../api/client.ts";
import { notifyMe, stopNotifying } from "../app/push.ts";
import { useFace, useLinks } from "../app/place.tsx";
import { signOut } from "../app/sign_in_elsewhere.ts";
import { useMay, useMe } from "../state/me.ts";
import { chooseTheme, themeNow, usePreferences, type Theme } from "../state/preferences.ts";
import { t } from "../text.ts";
import { Menu, type MenuItem } from "../ui/kit.tsx";
import { complain, toast } from "../ui/toasts.tsx";

const THEMES: [Theme, typeof Sun][] = [
  ["light", Sun],
  ["dark", Moon],
  ["system", SunMoon],
];

async function leave(): Promise<void> {
  await stopNotifying();
  signOut();
  location.reload();
}

export function Account() {
  const links = useLinks();
  const [, go] = useLocation();
  const { notify } = usePreferences();
  const me = useMe();
  const theme = themeNow();
  const mayWork = useMay("user");
  const mayAdminister = useMay("admin");
  const signedIn = token.get() !== null;
  const name = signedIn && me ? me.name || t.somebody : t.thisMachine;
  const role = signedIn && me ? t.roleNames[me.role] : null;
  const askNotify = async (): Promise<void> => {
    if (notify) await stopNotifying();
    toast(notify ? t.notifyOff : await notifyMe());
  };
  const items: (MenuItem | "line")[] = [
    ...THEMES.map(([which, icon]) => ({ label: t.themes[which], icon, checked: theme === which, onPick: () => chooseTheme(which) })),
    "line",
    ...(mayWork ? [{ label: notify ? t.notifyStop : t.notifyStart, icon: notify ? BellOff : Bell, onPick: () => void askNotify().catch(complain) }] : []),
    ...(mayAdminister ? [{ label: t.settings, icon: Settings2, onPick: () => go(links.settings) }] : []),
    ...(signedIn ? (["line", { label: t.signOut, icon: LogOut, onPick: () => void leave() }] as const) : []),
  ];
  return (
    <Menu up label={signedIn && me ? t.account(name, me.role) : t.accountMenu} icon={CircleUserRound} items={items}>
      <span className="who">
        <strong className="clip">{name}</strong>
        {role && <span className="clip muted">{role}</span>}
      </span>
      <ChevronsUpDown size={15} aria-hidden="true" />
    </Menu>
  );
}

/** The pages beside conversations that this person can use. */
export function FurtherPages() {
  const face = useFace();
  const links = useLinks();
  const [, go] = useLocation();
  const mayAdminister = useMay("admin");
  const to = (label: string, icon: typeof Box, address: string): MenuItem => ({ label, icon, onPick: () => go(address) });
  const items = [
    to(face === "dev" ? t.landings : t.keptChanges, History, links.landings),
    to(t.schedules, CalendarClock, links.schedules),
    to(t.usage, ChartNoAxesColumn, links.usage),
    to(t.permissions, ShieldQuestion, links.permissions),
    ...(face === "dev" ? [to(t.agents, Bot, links.agents), to(t.skills, GraduationCap, links.skills), to(t.memory, Brain, links.memory), to(t.sandbox, Box, links.sandbox)] : []),
    ...(face === "dev" && mayAdminister ? [to(t.tokensPage, KeyRound, links.tokens)] : []),
  ];
  return <Menu up end label={t.furtherPages} icon={LayoutGrid} items={items} />;
}
