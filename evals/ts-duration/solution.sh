cat > duration.ts <<'X'
const UNITS: Record<string, number> = { d: 86400, h: 3600, m: 60, s: 1 };

/** `1h30m` is 5400. */
export function seconds(text: string): number {
  const refuse = (): never => {
    throw new RangeError(`no duration: '${text}'`);
  };
  if (!/^\s*\d+(\.\d+)?[dhms](\s*\d+(\.\d+)?[dhms])*\s*$/.test(text)) return refuse();
  const parts = [...text.matchAll(/(\d+(?:\.\d+)?)([dhms])/g)];
  let sum = 0;
  let last = Infinity;
  parts.forEach(([, amount, unit], index) => {
    const size = UNITS[unit];
    if (size >= last || (amount.includes(".") && index < parts.length - 1)) refuse();
    last = size;
    sum += Number(amount) * size;
  });
  return sum;
}
X
