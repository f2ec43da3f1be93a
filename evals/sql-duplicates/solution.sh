cat > dedupe.sql <<'X'
DELETE FROM subscriber WHERE id NOT IN (
    SELECT id FROM (
        SELECT id, row_number() OVER (PARTITION BY lower(trim(email)) ORDER BY seen DESC, id DESC) AS place
        FROM subscriber
    ) WHERE place = 1
);
UPDATE subscriber SET email = lower(trim(email));
CREATE UNIQUE INDEX IF NOT EXISTS subscriber_email ON subscriber (email);
X
