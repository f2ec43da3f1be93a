python3 - <<'X'
def change(name, old, new):
    text = open(name).read()
    assert old in text
    open(name, "w").write(text.replace(old, new))
change("event.ts", 'to: string };', 'to: string }\n  | { kind: "refund"; cents: number; reason: string };')
change("parse.ts", "    throw", '''    if (found.kind === "refund" && Number.isInteger(found.cents) && typeof found.reason === "string")
      return { kind: "refund", cents: found.cents, reason: found.reason };
    throw''')
change("show.ts", 'return events.reduce((sum, event) => (event.kind === "sale" ? sum + event.cents : sum), 0);', '''return events.reduce((sum, event) => {
    if (event.kind === "sale") return sum + event.cents;
    return event.kind === "refund" ? sum - event.cents : sum;
  }, 0);''')
change("show.ts", "      return `gift to ${event.to}`;\n", '''      return `gift to ${event.to}`;
    case "refund":
      return `refund ${(event.cents / 100).toFixed(2)} (${event.reason})`;
''')
X
