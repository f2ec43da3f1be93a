chmod +x dump
list() { ls -A | sort | tr '\n' ' '; }
bash nightly.sh > "$TMPDIR/said" || { echo "it failed where dump did not"; exit 1; }
grep -q 'backup done' "$TMPDIR/said" || exit 1
[ "$(zcat backup.gz)" = "$(printf 'row 1\nrow 2')" ] || exit 1
before=$(list); old=$(md5sum < backup.gz)
printf '#!/bin/bash\necho half\nexit 3\n' > dump
bash nightly.sh > "$TMPDIR/said" 2> "$TMPDIR/errors" && { echo "a failure is told as success"; exit 1; }
grep -q 'backup done' "$TMPDIR/said" && { echo "it says done"; exit 1; }
[ -s "$TMPDIR/errors" ] || { echo "nothing on standard error"; exit 1; }
[ "$(md5sum < backup.gz)" = "$old" ] || { echo "the old backup is gone"; exit 1; }
[ "$(list)" = "$before" ] || { list; exit 1; }
rm backup.gz
bash nightly.sh > /dev/null 2>&1 && exit 1
[ ! -e backup.gz ]
