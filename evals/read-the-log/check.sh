set -e
diff -r "$CHECK/files" . || { echo "a file was changed"; exit 1; }
found=$(tr -d '`*\r' < "$ANSWER" | sed -E 's/^[[:space:]>]*//; s/[[:space:].]*$//' | grep -E '^[0-9]+ /[^ ]*$' | tail -n 1)
[ "$found" = "3 /pay" ] || { echo "the line is not it: $found"; exit 1; }
