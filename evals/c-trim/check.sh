cc -Wall -I. -o "$TMPDIR/test" "$CHECK/test.c" trim.c || exit 1
timeout 10 "$TMPDIR/test" > "$TMPDIR/said" || { echo "it crashed"; exit 1; }
printf '[]\n[]\n[]\n[]\n[a]\n[a]\n[a]\n[a b]\n[a\tb]\n[\n]\n' | diff - "$TMPDIR/said"
