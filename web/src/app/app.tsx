/** The application: faces and their addresses, sign-in, the frame around pages. */

import { lazy, Suspense, useEffect, useState } from "react";
import { Redirect, Route, Router, Switch, useLocation } from "wouter";
import { whenSignedOut } from "../api/client.ts";
import { base } from "../api/place.ts";
import { HomePage } from "../chat/home.tsx";
import { reconnectAll } from "../state/live.ts";
import { askWhoIAm, whoIAm } from "../state/me.ts";
import { applyTheme, type Face } from "../state/preferences.ts";
import { t } from "../text.ts";
import { Boundary, BrokenPage } from "../ui/boundary.tsx";
import { Empty, Loading } from "../ui/kit.tsx";
import { Toasts } from "../ui/toasts.tsx";
import { MapPinOff } from "lucide-react";
import { FaceContext, useLinks } from "./place.tsx";
import { Shell, SidebarButton } from "./shell.tsx";
import { shareSignIn } from "./sign_in_elsewhere.ts";

const Entrance = lazy(() => import("./entrance.tsx"));
const ChatPage = lazy(() => import("../chat/page.tsx"));
const SharedPage = lazy(() => import("./shared.tsx"));
const SettingsPage = lazy(() => import("../settings/page.tsx"));
const ReviewPage = lazy(() => import("../review/page.tsx"));
const LandingsPage = lazy(() => import("../review/landings.tsx"));
const UsagePage = lazy(() => import("../dev/usage.tsx"));
const AttemptsPage = lazy(() => import("../dev/attempts.tsx"));
const SkillsPage = lazy(() => import("../dev/skills.tsx"));
const MemoryPage = lazy(() => import("../dev/memory.tsx"));
const SandboxPage = lazy(() => import("../dev/sandbox.tsx"));
const SchedulesPage = lazy(() => import("../schedules/page.tsx"));
const PermissionsPage = lazy(() => import("../dev/permissions.tsx"));
const AgentsPage = lazy(() => import("../dev/agents.tsx"));
const TokensPage = lazy(() => import("../dev/tokens.tsx"));

function NotFound() {
  const links = useLinks();
  return (
    <>
      <header className="head">
        <SidebarButton />
      </header>
      <Empty page icon={MapPinOff} title={t.noSuchPage}>
        <a className="button primary" href={`${base()}${links.home}`}>
          {t.toStart}
        </a>
      </Empty>
    </>
  );
}

function Pages({ face }: { face: Face }) {
  const prefix = face === "dev" ? "/dev" : "";
  return (
    <Suspense fallback={<Loading label={t.loading} />}>
      <Switch>
        <Route path={prefix || "/"}>
          <HomePage />
        </Route>
        <Route path={`${prefix}/c/:id`}>{({ id }) => <ChatPage key={id} id={id} />}</Route>
        <Route path={`${prefix}/c/:id/diff`}>{({ id }) => <ReviewPage key={id} id={id} />}</Route>
        <Route path={`${prefix}/landings`}>
          <LandingsPage />
        </Route>
        <Route path={`${prefix}/usage`}>
          <UsagePage />
        </Route>
        <Route path={`${prefix}/schedules`}>
          <SchedulesPage />
        </Route>
        <Route path={`${prefix}/permissions`}>
          <PermissionsPage />
        </Route>
        <Route path={`${prefix}/settings`}>
          <SettingsPage />
        </Route>
        <Route path="/shared">
          <SharedPage />
        </Route>
        <Route path="/dev/c/:id/attempts">{({ id }) => <AttemptsPage key={id} id={id} />}</Route>
        <Route path="/dev/skills">
          <SkillsPage />
        </Route>
        <Route path="/dev/memory">
          <MemoryPage />
        </Route>
        <Route path="/dev/sandbox">
          <SandboxPage />
        </Route>
        <Route path="/dev/agents">
          <AgentsPage />
        </Route>
        <Route path="/dev/tokens">
          <TokensPage />
        </Route>
        <Route path="/dev/">
          <Redirect to="/dev" replace />
        </Route>
        <Route>
          <NotFound />
        </Route>
      </Switch>
    </Suspense>
  );
}

type Out = "new" | "ended" | "left";
const WHY: Record<Out, string | null> = { new: null, ended: t.signInEnded, left: t.signedOutElsewhere };

function Faced() {
  const [location] = useLocation();
  const face: Face = location === "/dev" || location.startsWith("/dev/") ? "dev" : "user";
  const [out, setOut] = useState<Out | null>(null);
  useEffect(() => {
    // Nobody was in yet, a credential ended while somebody was at work, somebody left.
    whenSignedOut(() => setOut((now) => now ?? (whoIAm() ? "ended" : "new")));
    shareSignIn(() => setOut("left"));
  }, []);
  const enter = async (): Promise<void> => {
    const before = whoIAm();
    const now = await askWhoIAm();
    if (before && now && before.user !== now.user) window.location.reload(); // nothing of one person is shown to another
    setOut(null);
    reconnectAll();
  };
  useEffect(() => {
    // On a phone the first page asks for nothing else: without this nobody is asked to sign in before they wrote.
    void askWhoIAm();
  }, []);
  useEffect(() => applyTheme(face), [face]);
  return (
    <FaceContext value={face}>
      {out && (
        <Suspense fallback={<Loading label={t.loading} />}>
          <Entrance reason={WHY[out]} over={out === "ended"} onDone={() => void enter()} />
        </Suspense>
      )}
      {(out === null || out === "ended") && (
        <Shell>
          <Boundary of={location} instead={<BrokenPage home={`${base()}${face === "dev" ? "/dev" : "/"}`} />}>
            <Pages face={face} />
          </Boundary>
        </Shell>
      )}
      <Toasts />
    </FaceContext>
  );
}

export function App() {
  return (
    <Router base={base()}>
      <Boundary of={null} instead={<BrokenPage home={`${base()}/`} />}>
        <Faced />
      </Boundary>
    </Router>
  );
}
