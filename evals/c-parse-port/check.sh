cc -Wall -I. -o "$TMPDIR/test" "$CHECK/test.c" port.c || exit 1
said=$(timeout 10 "$TMPDIR/test")
[ "$said" = "1 80 65535 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 65530 -1" ] || { echo "$said"; exit 1; }
