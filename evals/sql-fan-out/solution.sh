cat > report.sql <<'X'
SELECT c.name AS name,
    (SELECT coalesce(sum(o.cents), 0) FROM purchase o WHERE o.customer = c.id) AS ordered,
    (SELECT coalesce(sum(p.cents), 0) FROM payment p WHERE p.customer = c.id) AS paid
FROM customer c
ORDER BY c.name;
X
