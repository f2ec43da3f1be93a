// Show entries of todo.json: node todo.js [--open]
const fs = require("node:fs");

const words = process.argv.slice(2);
const open = words.includes("--open");
const unknown = words.find((word) => word !== "--open");
if (unknown) {
  console.error(`todo: unknown option ${unknown}`);
  process.exit(2);
}
for (const entry of JSON.parse(fs.readFileSync("todo.json", "utf8"))) {
  if (open && entry.done) continue;
  console.log(`${entry.made} ${entry.done ? "x" : "-"} ${entry.text}`);
}
