cat > balance.sql <<'X'
SELECT account, day, cents,
    sum(cents) OVER past AS balance,
    CAST(julianday(day) - julianday(lag(day) OVER past) AS INTEGER) AS gap
FROM entry
WINDOW past AS (PARTITION BY account ORDER BY day, id)
ORDER BY account, day, id;
X
