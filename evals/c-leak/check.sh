cmp -s list.h "$CHECK/files/list.h" || { echo "list.h was changed"; exit 1; }
cc -Wall -I. -o "$TMPDIR/test" "$CHECK/test.c" list.c -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=strdup,--wrap=free || exit 1
timeout 10 "$TMPDIR/test" 2> "$TMPDIR/said" || { echo "it crashed"; cat "$TMPDIR/said"; exit 1; }
printf '1 two 3\nremoved 1 0\n1 0\nagain\nleft 0 twice 0 taken 1\n' | diff - "$TMPDIR/said"
