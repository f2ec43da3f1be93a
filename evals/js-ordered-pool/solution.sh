cat > pool.js <<'X'
export async function mapLimit(items, limit, work) {
  const list = [...items];
  const results = new Array(list.length);
  let next = 0;
  let failed = false;
  async function worker() {
    while (!failed && next < list.length) {
      const index = next++;
      try {
        results[index] = await work(list[index], index);
      } catch (error) {
        failed = true;
        throw error;
      }
    }
  }
  await Promise.all(Array.from({ length: Math.min(limit, list.length) }, worker));
  return results;
}
X
