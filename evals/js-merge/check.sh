cat > "$TMPDIR/test.cjs" <<'X'
const { merge } = require(process.argv[2]);
const say = (value) => console.log(JSON.stringify(value));
const base = { a: { x: 1, y: [1, 2, 3] }, n: 1, o: { p: 1 } };
const over = { a: { y: [9], z: null }, n: undefined, o: null, d: new Date(0), e: { f: { g: 1 } } };
const found = merge(base, over);
say(found); say(base); say([found.d instanceof Date, found !== base, found.a !== base.a]);
found.e.f.g = 2; found.a.x = 5; say([over.e.f.g, base.a.x]);
say(merge({}, JSON.parse('{"__proto__": {"bad": 1}, "k": {"__proto__": {"bad": 2}, "v": 1}}')));
say([{}.bad === undefined, merge({ a: 1 }, { a: { b: 2 } }), merge({ a: { b: 2 } }, { a: 1 }), merge({ a: { b: 1 } }, { a: [] })]);
X
said=$(timeout 20 node "$TMPDIR/test.cjs" "$PWD/merge.js" 2>&1)
wanted='{"a":{"x":1,"y":[9],"z":null},"n":1,"o":null,"d":"1970-01-01T00:00:00.000Z","e":{"f":{"g":1}}}
{"a":{"x":1,"y":[1,2,3]},"n":1,"o":{"p":1}}
[true,true,true]
[1,1]
{"k":{"v":1}}
[true,{"a":{"b":2}},{"a":1},{"a":[]}]'
[ "$said" = "$wanted" ] || { echo "$said"; exit 1; }
