ask() { bash top.sh; }
said=$(ask < "$CHECK/files/example.log")
[ "$said" = "$(printf '2 /b\n1 /a')" ] || { echo "example: $said"; exit 1; }
said=$(printf '%s\n' 'c GET /z 200' 'c GET /z 200' 'junk' '' 'c GET /B 1' 'c GET /a?q 1' 'c GET /a?r 1' 'c GET /Z 1 extra' 'c GET /c 500' 'c GET /c 500' 'c GET /c 500' | ask)
[ "$said" = "$(printf '3 /c\n2 /a\n2 /z')" ] || { echo "second: $said"; exit 1; }
said=$(printf '%s\n' 'c GET /b 1' 'c GET /B 1' 'c GET /_ 1' 'c GET /a 1' | ask)
[ "$said" = "$(printf '1 /B\n1 /_\n1 /a')" ] || { echo "order: $said"; exit 1; }
[ -z "$(ask < /dev/null)" ]
