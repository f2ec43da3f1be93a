cat > migrations/002.sql <<'X'
ALTER TABLE person ADD COLUMN first TEXT NOT NULL DEFAULT '';
ALTER TABLE person ADD COLUMN last TEXT NOT NULL DEFAULT '';
UPDATE person SET name = trim(name);
-- What is left when everything but spaces is cut off at the right ends with the last space.
UPDATE person SET first = trim(rtrim(name, replace(name, ' ', '')));
UPDATE person SET last = trim(substr(name, length(rtrim(name, replace(name, ' ', ''))) + 1));
ALTER TABLE person DROP COLUMN name;
X
