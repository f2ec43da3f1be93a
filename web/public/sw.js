// The service worker (UI-95): the shell without a network, web push, what other apps share.
//
// It keeps the application's own files and nothing else: no answer of the API, nothing private. What is shared
// waits in a store of its own until the page takes it, which deletes it (src/app/shared_store.ts). SHELL and
// VERSION are written by the build (vite.config.ts); a new version takes over as soon as it is here.

const SHELL = ["__SHELL__"];
const VERSION = "__VERSION__";
const ROOT = new URL(self.registration.scope).pathname.replace(/\/$/, "");
// Servers below several prefixes of one host share its storage.
const CACHES = `bowerbird-shell:${ROOT}:`;
const CACHE = `${CACHES}${VERSION}`;
const SHARED = `bowerbird-shared:${ROOT}`;
const MOST_SHARED = 20;
const SLOW_MS = 4_000; // a page that takes longer is shown from here

const address = (path) => `${ROOT}/${path}`;

self.addEventListener("install", (event) => {
  event.waitUntil(
    caches
      .open(CACHE)
      .then((cache) => cache.addAll(SHELL.map((path) => new Request(address(path), { cache: "no-cache" }))))
      .then(() => self.skipWaiting()),
  );
});

self.addEventListener("activate", (event) => {
  const old = (name) => name.startsWith(CACHES) && name !== CACHE;
  event.waitUntil(
    caches
      .keys()
      .then((names) => Promise.all(names.filter(old).map((name) => caches.delete(name))))
      .then(() => self.clients.claim()),
  );
});

self.addEventListener("fetch", (event) => {
  const { request } = event;
  const url = new URL(request.url);
  if (url.origin !== self.location.origin) return;
  if (request.method === "POST" && url.pathname === address("share")) event.respondWith(share(request));
  if (request.method !== "GET") return;
  if (request.mode === "navigate" && isPage(url.pathname)) event.respondWith(page(request));
  else if (SHELL.some((path) => path !== "" && address(path) === url.pathname)) event.respondWith(kept(request, url.pathname));
});

/** Whether an address is a page of the application: the API and its description are not. */
function isPage(path) {
  const rest = path.slice(ROOT.length);
  return !/^\/(api|docs|openapi\.json|health|metrics|mcp|v1)(\/|$)/.test(rest);
}

/** The page of the server; without one, or when it is slow, the shell, which says that it is offline. */
async function page(request) {
  const shell = await caches.match(address(""), { cacheName: CACHE });
  const asked = fetch(request);
  if (!shell) return asked;
  const late = new Promise((resolve) => setTimeout(() => resolve(shell), SLOW_MS));
  return Promise.race([asked.catch(() => shell), late]);
}

async function kept(request, path) {
  return (await caches.match(path, { cacheName: CACHE })) ?? fetch(request);
}

// ---------------------------------------------------------------- what other apps share

async function share(request) {
  const there = Response.redirect(address("shared"), 303);
  try {
    const form = await request.formData();
    const words = ["title", "text", "url"].map((name) => form.get(name)).filter((word) => typeof word === "string" && word);
    const files = form.getAll("files").filter((file) => file instanceof File).slice(0, MOST_SHARED);
    await keepShared({ words, files, at: Date.now() });
  } catch {
    return Response.redirect(address("shared?failed"), 303);
  }
  return there;
}

function sharedStore() {
  return new Promise((resolve, reject) => {
    const open = indexedDB.open(SHARED, 1);
    open.onupgradeneeded = () => open.result.createObjectStore("waiting");
    open.onsuccess = () => resolve(open.result);
    open.onerror = () => reject(open.error);
  });
}

async function keepShared(shared) {
  const store = await sharedStore();
  await new Promise((resolve, reject) => {
    const change = store.transaction("waiting", "readwrite");
    change.objectStore("waiting").put(shared, "newest");
    change.oncomplete = resolve;
    change.onerror = () => reject(change.error);
  });
  store.close();
}

// ---------------------------------------------------------------- web push

const WORDS = {
  answer: "An agent needs your answer",
  done: "An agent is done",
  failed: "An agent could not go on",
};

self.addEventListener("push", (event) => {
  let told = {};
  try {
    told = event.data.json();
  } catch {
    // nothing readable: that there is something is still told
  }
  event.waitUntil(tell(told));
});

async function tell({ kind, conversation }) {
  const path = typeof conversation === "string" ? `/c/${encodeURIComponent(conversation)}` : "/";
  const pages = await self.clients.matchAll({ type: "window" });
  // Whoever looks at the conversation sees it there.
  if (pages.some((client) => client.visibilityState === "visible" && new URL(client.url).pathname.endsWith(path))) return;
  await self.registration.showNotification(WORDS[kind] ?? "Bowerbird", {
    body: kind === "answer" ? "It waits for you." : "Look at what it did.",
    icon: address("icon-192.png"),
    tag: `${kind}:${conversation}`,
    requireInteraction: kind === "answer",
    data: { path },
  });
}

self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  event.waitUntil(show(event.notification.data?.path ?? "/"));
});

async function show(path) {
  const pages = await self.clients.matchAll({ type: "window" });
  const [open] = pages;
  const face = open && new URL(open.url).pathname.startsWith(`${ROOT}/dev`) ? "/dev" : "";
  const target = `${ROOT}${face}${path}`;
  if (!open) return self.clients.openWindow(target);
  await open.focus();
  return open.navigate(target);
}
