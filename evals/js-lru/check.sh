cat > "$TMPDIR/test.cjs" <<'X'
const { Lru } = require(process.argv[2]);
const shown = (lru, keys) => keys.filter((key) => lru.has(key)).map(String).join("") + lru.size;
let lru = new Lru(3);
for (const key of "abc") lru.set(key, key.toUpperCase());
lru.get("a"); lru.has("b"); lru.set("d", 1);
console.log(shown(lru, [..."abcd"]), lru.get("a"), lru.get("b"));
lru.set("c", undefined); lru.set("e", 2);
console.log(shown(lru, [..."abcde"]), lru.get("c"), lru.has("c"));
lru.delete("c"); lru.delete("nothing"); console.log(shown(lru, [..."abcde"]));
lru.set("f", 3); console.log(shown(lru, [..."abcdef"]));
lru = new Lru(2); lru.set(1, "number"); lru.set("1", "text"); lru.set("toString", 0);
console.log(lru.get(1), lru.get("1"), lru.get("toString"), new Lru(2).has("toString"), lru.size);
X
said=$(timeout 20 node "$TMPDIR/test.cjs" "$PWD/lru.js" 2>&1)
wanted='acd3 A undefined
ace3 undefined true
ae2
aef3
undefined text 0 false 2'
[ "$said" = "$wanted" ] || { echo "$said"; exit 1; }
