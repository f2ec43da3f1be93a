set -e
diff -r "$CHECK/files" . || { echo "a file was changed"; exit 1; }
last=$(grep -v '^[[:space:]]*$' "$ANSWER" | tail -n 1 | tr -d '`*. \t' )
[ "$last" = "3/pay" ] || { echo "the last line is not it: $last"; exit 1; }
