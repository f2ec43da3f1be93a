cat > merge.js <<'X'
const isPlain = (value) => Object.prototype.toString.call(value) === "[object Object]";

function merge(base, over) {
  const result = {};
  for (const source of [base, over]) {
    for (const key of Object.keys(source)) {
      const value = source[key];
      if (key === "__proto__" || value === undefined) continue;
      if (!isPlain(value)) result[key] = value;
      else result[key] = merge(isPlain(result[key]) ? result[key] : {}, value);
    }
  }
  return result;
}

module.exports = { merge };
X
