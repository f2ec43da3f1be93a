/** Which tournaments were begun from this browser: the server finds them by id. Not here: what they are. */

const key = (conversation: string): string => `bowerbird.attempts.${conversation}`;

export function known(conversation: string): readonly string[] {
  try {
    const found: unknown = JSON.parse(localStorage.getItem(key(conversation)) ?? "[]");
    return Array.isArray(found) ? found.filter((id): id is string => typeof id === "string") : [];
  } catch {
    return []; // unreadable: those of the conversation's own calls are still found
  }
}

export function remember(conversation: string, id: string): void {
  try {
    localStorage.setItem(key(conversation), JSON.stringify([...known(conversation), id].slice(-50)));
  } catch {
    // storage is turned off: it is shown until the page is closed
  }
}
