cat > person.ts <<'X'
import type { Person } from "./types.ts";

/** `Ada "ada" Lovelace, London, UK`; what is missing is left out with its comma: `Ada Lovelace, UK`, `Ada Lovelace`. */
export function describe(person: Person): string {
  const [first, ...rest] = person.name.split(" ");
  const nickname = person.nickname ? [`"${person.nickname}"`] : [];
  const called = [first, ...nickname, ...rest].join(" ");
  return [called, person.address?.town, person.address?.country].filter(Boolean).join(", ");
}
X
