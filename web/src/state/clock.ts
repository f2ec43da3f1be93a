/**
 * What time it is where the server is: a device's clock may be hours off, and "2 hours ago" or a time limit with it.
 *
 * Here: how far apart the two clocks are. Not here: words for times (`words.ts`).
 */

/** A `Date` header has whole seconds and an answer takes a while: less than this is no difference. */
const SLACK_MS = 30_000;

let ahead = 0;

/** Hear the `Date` header of an answer that came at `received`, in milliseconds of this device. */
export function hearServerTime(date: string | null, received: number): void {
  const said = date === null ? NaN : Date.parse(date);
  if (Number.isNaN(said)) return;
  const apart = said - received;
  ahead = Math.abs(apart) < SLACK_MS ? 0 : apart;
}

/** Return the server's time now, in milliseconds since 1970; `device` is what this device's clock says. */
export function serverNow(device = Date.now()): number {
  return device + ahead;
}
