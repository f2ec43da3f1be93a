cmp -s types.ts "$CHECK/files/types.ts" || { echo "types.ts was changed"; exit 1; }
cat > "$TMPDIR/test.mts" <<'X'
const { describe } = await import(process.argv[2]);
const people = [
  { name: "Ada Lovelace", nickname: "ada", address: { town: "London", country: "UK" } },
  { name: "Ada Lovelace", address: { country: "UK" } }, { name: "Ada Lovelace" }, { name: "Plato", nickname: "" },
  { name: "Ada King Noel", nickname: "a", address: { town: "", country: "UK" } },
];
for (const person of people) console.log(describe(person));
X
said=$(timeout 20 node --no-warnings "$TMPDIR/test.mts" "$PWD/person.ts" 2>&1)
wanted='Ada "ada" Lovelace, London, UK
Ada Lovelace, UK
Ada Lovelace
Plato
Ada "a" King Noel, UK'
[ "$said" = "$wanted" ] || { echo "$said"; exit 1; }
