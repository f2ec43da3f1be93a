sh ./release.sh -n 1.2 > "$TMPDIR/said" || { echo "-n failed"; exit 1; }
[ ! -e dist ] || { echo "-n did something"; exit 1; }
[ "$(grep -c '^+ ' "$TMPDIR/said")" = 3 ] && [ "$(wc -l < "$TMPDIR/said")" = 3 ] || { cat "$TMPDIR/said"; exit 1; }
grep -q '^+ mkdir -p dist' "$TMPDIR/said" && grep -q '^+ cp notes.txt .*dist/notes-1.2.txt' "$TMPDIR/said" && grep -q '1\.2.*dist/LATEST' "$TMPDIR/said" || { cat "$TMPDIR/said"; exit 1; }
sh ./release.sh -x 1.2 2> /dev/null; [ $? = 2 ] || { echo "-x is taken"; exit 1; }
sh ./release.sh 2> /dev/null; [ $? = 2 ] || { echo "no version is taken"; exit 1; }
sh ./release.sh -n 2> /dev/null > "$TMPDIR/said"; [ $? = 2 ] || { echo "-n without a version is taken"; exit 1; }
sh ./release.sh 1.3 > "$TMPDIR/said" || exit 1
[ ! -s "$TMPDIR/said" ] && [ "$(cat dist/LATEST dist/notes-1.3.txt)" = "$(printf '1.3\nfirst')" ]
