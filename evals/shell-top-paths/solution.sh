cat > top.sh <<'X'
#!/bin/sh
awk 'NF == 4 { sub(/[?].*/, "", $3); seen[$3]++ } END { for (path in seen) print seen[path], path }' |
    LC_ALL=C sort -k1,1nr -k2 | head -n 3
X
