function merge(base, over) {
  for (const key in over) {
    if (typeof over[key] === "object" && base[key]) {
      merge(base[key], over[key]);
    } else {
      base[key] = over[key];
    }
  }
  return base;
}

module.exports = { merge };
