import type { Event } from "./event.ts";

export function total(events: Event[]): number {
  return events.reduce((sum, event) => (event.kind === "sale" ? sum + event.cents : sum), 0);
}

export function label(event: Event): string {
  switch (event.kind) {
    case "sale":
      return `sale ${(event.cents / 100).toFixed(2)}`;
    case "gift":
      return `gift to ${event.to}`;
  }
}
