ask() { timeout 20 node todo.js "$@" 2> "$TMPDIR/errors"; }
is() { [ "$1" = "$2" ] || { echo "got: $1"; echo "not: $2"; exit 1; }; }
is "$(ask)" "$(printf '2026-01-31 x order flour\n2026-02-01 - call the mill\n2026-02-10 x clean the oven')"
is "$(ask --since 2026-02-01)" "$(printf '2026-02-01 - call the mill\n2026-02-10 x clean the oven')"
is "$(ask --open --since 2026-01-01)" '2026-02-01 - call the mill'
is "$(ask --since 2026-02-10 --open)" ''
for bad in 2026-02-30 2026-13-01 yesterday 2026-2-1 ''; do
    said=$(ask --since "$bad"); [ $? = 2 ] && [ -z "$said" ] || { echo "taken: $bad"; exit 1; }
    grep -qF -- "$bad" "$TMPDIR/errors" && [ -s "$TMPDIR/errors" ] || { echo "not named: $bad"; exit 1; }
done
ask --since > /dev/null; [ $? = 2 ] || { echo "--since without a date is taken"; exit 1; }
ask --what > /dev/null; [ $? = 2 ]
