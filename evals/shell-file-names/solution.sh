cat > archive.sh <<'X'
#!/bin/sh
# Move logs of a directory into its directory old.
cd -- "$1" || exit 1
mkdir -p old
count=0
for file in ./*.log; do
    [ -f "$file" ] || continue
    mv -- "$file" old/
    count=$((count + 1))
done
echo "$count"
X
