dir=$(mktemp -d)/"a b"
mkdir -p "$dir/sub.log"
touch "$dir/one two.log" "$dir/-n.log" "$dir/"$'line\nbreak.log' "$dir/plain.log" "$dir/keep.txt" "$dir/*.log" "$dir/sub.log/x"
said=$(bash ./archive.sh "$dir")
[ "$said" = 5 ] || { echo "said: $said"; exit 1; }
[ "$(find "$dir/old" -type f -printf x | wc -c)" = 5 ] && [ -e "$dir/keep.txt" ] && [ -d "$dir/sub.log" ] || { ls -lR "$dir"; exit 1; }
[ "$(bash ./archive.sh "$dir")" = 0 ] || { echo "not 0 the second time"; exit 1; }
