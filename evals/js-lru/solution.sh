cat > lru.js <<'X'
class Lru {
  constructor(most) {
    this.most = most;
    this.values = new Map(); // the least recently used first
  }
  get size() {
    return this.values.size;
  }
  has(key) {
    return this.values.has(key);
  }
  get(key) {
    if (!this.values.has(key)) return undefined;
    const value = this.values.get(key);
    this.set(key, value);
    return value;
  }
  set(key, value) {
    this.values.delete(key);
    this.values.set(key, value);
    if (this.values.size > this.most) this.values.delete(this.values.keys().next().value);
  }
  delete(key) {
    return this.values.delete(key);
  }
}

module.exports = { Lru };
X
