set -e
diff -r -x __pycache__ "$CHECK/files" . || { echo "something was changed"; exit 1; }
grep -Eqi '^[[:space:]*`"#>]*AS RULED:[^0-9]*3([^0-9]|$)' "$ANSWER" || { echo "the answer does not name the rule"; exit 1; }
