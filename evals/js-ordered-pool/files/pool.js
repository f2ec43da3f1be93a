export async function mapLimit(items, limit, work) {
  const results = [];
  const running = new Set();
  for (const item of items) {
    const job = work(item).then((result) => results.push(result)).catch(() => {});
    running.add(job);
    job.finally(() => running.delete(job));
    if (running.size > limit) await Promise.race(running);
  }
  await Promise.all(running);
  return results;
}
