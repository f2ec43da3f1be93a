cat > "$TMPDIR/test.mts" <<'X'
const { seconds } = await import(process.argv[2]);
for (const text of ["90s", "2m", "1h30m", "1d 2h", "1.5h", "1h 0.5m", "0s", "1d2h3m4s"]) console.log(seconds(text));
for (const text of ["", " ", "5", "m", "1m1m", "1s1m", "1.5h30m", "-1s", "1h-2m", "1 h", "1x", "1h30", "1e3s", ".s", "NaNs"]) {
  try { console.log("taken", text, seconds(text)); }
  catch (error) { if (!(error instanceof RangeError) || !error.message.includes(text)) console.log("thrown", text, String(error)); }
}
X
said=$(timeout 20 node --no-warnings "$TMPDIR/test.mts" "$PWD/duration.ts" 2>&1)
[ "$said" = "$(printf '%s\n' 90 120 5400 93600 5400 3630 0 93784)" ] || { echo "$said"; exit 1; }
