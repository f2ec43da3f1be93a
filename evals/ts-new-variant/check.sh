cat > "$TMPDIR/test.mts" <<'X'
const { parse } = await import(process.argv[2] + "/parse.ts");
const { total, label } = await import(process.argv[2] + "/show.ts");
const events = parse('{"kind":"sale","cents":1000}\n{"kind":"refund","cents":350,"reason":"broken","more":1}\n\n{"kind":"gift","to":"bo"}\n');
console.log(JSON.stringify(events), total(events), events.map(label).join("; "));
for (const bad of ['{"kind":"refund","cents":1}', '{"kind":"refund","cents":"1","reason":"x"}', '{"kind":"refund","cents":1.5,"reason":"x"}', '{"kind":"refund","reason":"x"}', '{"kind":"other"}', '{"kind":"sale"}']) {
  try { console.log("taken", JSON.stringify(parse(bad))); } catch { console.log("refused"); }
}
X
said=$(timeout 20 node --no-warnings "$TMPDIR/test.mts" "$PWD" 2>&1)
wanted='[{"kind":"sale","cents":1000},{"kind":"refund","cents":350,"reason":"broken"},{"kind":"gift","to":"bo"}] 650 sale 10.00; refund 3.50 (broken); gift to bo'
[ "$said" = "$(printf '%s\nrefused\nrefused\nrefused\nrefused\nrefused\nrefused' "$wanted")" ] || { echo "$said"; exit 1; }
grep -Eq 'kind: *"refund"' event.ts || { echo "the type does not have it"; exit 1; }
