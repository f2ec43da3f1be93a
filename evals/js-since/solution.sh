cat > todo.js <<'X'
// Show entries of todo.json: node todo.js [--open] [--since YYYY-MM-DD]
const fs = require("node:fs");

function fail(text) {
  console.error(`todo: ${text}`);
  process.exit(2);
}

function isDay(text) {
  if (!/^\d{4}-\d\d-\d\d$/.test(text)) return false;
  const day = new Date(`${text}T00:00:00Z`);
  return !Number.isNaN(day.getTime()) && day.toISOString().startsWith(text);
}

let open = false;
let since = "";
const words = process.argv.slice(2);
while (words.length) {
  const word = words.shift();
  if (word === "--open") open = true;
  else if (word === "--since") {
    since = words.shift() ?? fail("--since needs a day");
    if (!isDay(since)) fail(`'${since}' is no day; write YYYY-MM-DD`);
  } else fail(`unknown option ${word}`);
}
for (const entry of JSON.parse(fs.readFileSync("todo.json", "utf8"))) {
  if ((open && entry.done) || entry.made < since) continue;
  console.log(`${entry.made} ${entry.done ? "x" : "-"} ${entry.text}`);
}
X
