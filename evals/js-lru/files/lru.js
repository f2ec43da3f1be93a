class Lru {
  constructor(most) {
    this.most = most;
    this.values = {};
    this.order = [];
  }
  get size() {
    return this.order.length;
  }
  has(key) {
    return this.values[key] !== undefined;
  }
  get(key) {
    return this.values[key];
  }
  set(key, value) {
    if (!this.has(key)) {
      this.order.push(key);
      if (this.order.length > this.most) delete this.values[this.order.shift()];
    }
    this.values[key] = value;
  }
  delete(key) {
    delete this.values[key];
  }
}

module.exports = { Lru };
