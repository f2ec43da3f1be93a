cat > "$TMPDIR/test.mjs" <<'X'
const { mapLimit } = await import(process.argv[2]);
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
let now = 0, most = 0;
const found = await mapLimit([40, 5, 20, 1, 10], 2, async (ms, index) => {
  most = Math.max(most, ++now); await sleep(ms); now--; return `${index}:${ms}`;
});
console.log(found.join(" "), most);
console.log(JSON.stringify(await mapLimit([], 3, async () => 1)), JSON.stringify(await mapLimit([1], 9, async (x) => x)));
const begun = [];
try {
  await mapLimit([1, 2, 3, 4, 5, 6], 2, async (n) => { begun.push(n); await sleep(n === 2 ? 5 : 15); if (n === 2) throw new Error("two"); });
  console.log("resolved");
} catch (error) { console.log(error.message); }
await sleep(60);
console.log(begun.join(" "));
X
said=$(timeout 20 node "$TMPDIR/test.mjs" "$PWD/pool.js" 2>&1)
[ "$said" = "$(printf '0:40 1:5 2:20 3:1 4:10 2\n[] [1]\ntwo\n1 2')" ] || { echo "$said"; exit 1; }
