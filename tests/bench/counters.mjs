// What servers count, as numbers: metrics of a page, CPU of threads, and shares of them.

/** The page /metrics: "name{labels}" to its value. */
export function metricsOf(text) {
  const metrics = new Map();
  for (const line of text.split('\n')) {
    const at = line.lastIndexOf(' ');
    if (at > 0 && !line.startsWith('#')) metrics.set(line.slice(0, at), Number(line.slice(at + 1)));
  }
  return metrics;
}

/** What the bucket was asked for since the process began. */
export function bucketUse(metrics) {
  const of = (what, operation) => metrics.get(`epimetheus_bucket_${what}{operation="${operation}"}`) ?? 0;
  return { gets: of('requests_total', 'get'), bytes: of('received_bytes_total', 'get') };
}

/** Member by member. */
export function less(after, before) {
  return Object.fromEntries(Object.keys(after).map((name) => [name, after[name] - (before[name] ?? 0)]));
}

/** Nanoseconds on a CPU, of the text of a thread's `schedstat`. */
export function cpuOfThread(text) {
  const ns = Number(text.split(' ')[0]);
  if (!Number.isFinite(ns) || !/^\d/.test(text)) throw new Error(`not a schedstat: ${JSON.stringify(text)}`);
  return ns;
}

/** The name of a thread, or of all of a pool: `web` of `web-12`. */
export const kindOfThread = (name) => name.trim().replace(/-\d+$/, '');

/** Of CPU by threads' names: percent that those of the list take, of what the others take. */
export function shareOf(byThread, names) {
  let part = 0, rest = 0;
  for (const [name, cpu] of Object.entries(byThread)) {
    if (names.includes(name)) part += cpu;
    else rest += cpu;
  }
  if (!(rest > 0)) throw new Error('the other threads took no CPU');
  return (part / rest) * 100;
}
