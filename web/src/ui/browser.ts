/** What browsers give only on https or localhost, with what stands in elsewhere: a server at home has neither. */

/** Return an id that nobody else has made. */
export function newId(): string {
  if (typeof crypto.randomUUID === "function") return crypto.randomUUID();
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Return what stands after the `#` of the address, without it; as it is where its escapes are broken. */
export function hashNow(): string {
  const raw = location.hash.slice(1);
  try {
    return decodeURIComponent(raw);
  } catch {
    return raw;
  }
}

/** Put text on the clipboard. */
export async function copyText(text: string): Promise<void> {
  if (window.isSecureContext) return navigator.clipboard.writeText(text);
  const area = document.createElement("textarea");
  area.value = text;
  area.setAttribute("aria-hidden", "true");
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
}

/** Ask whether notifications may be shown; false where there are none. */
export async function mayNotify(): Promise<boolean> {
  return "Notification" in window && (await Notification.requestPermission()) === "granted";
}

/** Return the files of a drop, and how many directories were among them: those have no bytes that could be sent. */
export function dropped(transfer: DataTransfer): { files: File[]; directories: number } {
  const items = [...transfer.items].filter((item) => item.kind === "file");
  const isDirectory = (item: DataTransferItem): boolean => item.webkitGetAsEntry()?.isDirectory ?? false;
  const files = items.filter((item) => !isDirectory(item)).flatMap((item) => item.getAsFile() ?? []);
  return { files, directories: items.filter(isDirectory).length };
}

/** Hand bytes to the browser's downloads under a name. */
export function saveBlob(blob: Blob, name: string): void {
  const address = URL.createObjectURL(blob);
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

/** Whether something failed because a part of the application could not be fetched: it can be when the server is back. */
export function isAway(error: unknown): boolean {
  return navigator.onLine === false || /dynamically imported module|importing a module script failed/i.test(String(error));
}
