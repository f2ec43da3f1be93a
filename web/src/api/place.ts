/** Where this page is and where its server is (UI-2). */

const DEV_PORTS = new Set(["3500", "3501", "5173"]);

/** Return the path prefix below which the server lives, "" at the root. */
export function base(): string {
  const meta = document.querySelector<HTMLMetaElement>('meta[name="bowerbird-base"]');
  return meta?.content ?? "";
}

/** Return the server's origin; "" is the page's own. */
export function origin(): string {
  const local = location.hostname === "localhost" || location.hostname === "127.0.0.1";
  return local && DEV_PORTS.has(location.port) ? "http://localhost:8000" : "";
}

/** Return the address of a socket. */
export function socketAddress(path: string): string {
  const http = origin() || location.origin;
  return `${http.replace(/^http/, "ws")}${base()}${path}`;
}
