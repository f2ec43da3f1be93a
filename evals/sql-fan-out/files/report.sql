SELECT c.name AS name, sum(o.cents) AS ordered, sum(p.cents) AS paid
FROM customer c
JOIN purchase o ON o.customer = c.id
JOIN payment p ON p.customer = c.id
GROUP BY c.name
ORDER BY c.name;
