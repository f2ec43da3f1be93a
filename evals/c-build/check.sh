grep -q '^CFLAGS = -Wall -Wextra -Werror$' Makefile || { echo "the flags were changed"; exit 1; }
grep -q 'GCC diagnostic' *.c *.h && { echo "warnings are switched off"; exit 1; }
make -s clean; make -s > "$TMPDIR/said" 2>&1 || { cat "$TMPDIR/said"; exit 1; }
[ "$(./tally 3 9 4)" = "2 over 3" ] && [ "$(./tally)" = "0 over 3" ] && [ "$(./tally -1 4)" = "1 over 3" ] || { ./tally 3 9 4; exit 1; }
[ "$(grep -E 'limit[[:space:]]*=' *.c *.h | wc -l)" = 1 ] || { echo "limit is set in several places"; exit 1; }
sed -i -E 's/(limit[[:space:]]*=[[:space:]]*)3/\18/' *.c *.h; make -s clean; make -s; [ "$(./tally 3 9 4)" = "1 over 8" ]
