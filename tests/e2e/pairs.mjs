// Servers that profile one Go process: what tests and the bench share.
import { gunzipSync } from 'node:zlib';
import { request, sleep } from './lib.mjs';
import { fields } from './senders/pprof.mjs';

export const INTERVAL = 10; // seconds

export const config = (address) => `
scrape_configs:
  - job_name: shop
    scrape_interval: ${INTERVAL}s
    static_configs: [{targets: ["${address}"]}]
    profiling_config:
      pprof_config:
        memory: {enabled: false}
        goroutine: {enabled: false}
        goroutineleak: {enabled: false}
        block: {enabled: false}
        mutex: {enabled: false}
`;

/** The part of the last `seconds` that the server's CPU profiles cover, as the merged profile says. */
export async function share(server, seconds) {
  const params = new URLSearchParams({ query: `merge(process_cpu:cpu[${seconds}s])`, format: 'pprof' });
  const { status, body } = await request(`${server.url}/api/v1/query?${params}`);
  if (status !== 200) return 0;
  for (const [field, value] of fields(gunzipSync(body))) if (field === 10) return Number(value) / 1e9 / seconds;
  return 0;
}

/**
 * Collects CPU profiles as Parca does: of as many seconds as its interval has; the next request follows the answer at once
 * where its turn is over; a refused one waits for its turn. Gives a function: the part of the last `seconds` that it had.
 */
export function collect(t, address) {
  const had = [];
  let ended = false;
  t.after(() => { ended = true; });
  (async () => {
    for (let turn = Date.now(); !ended; turn = Math.max(turn + INTERVAL * 1000, Date.now())) {
      await sleep(Math.max(0, turn - Date.now()));
      const { status } = await request(`http://${address}/debug/pprof/profile?seconds=${INTERVAL}`).catch(() => ({}));
      if (status === 200) had.push(Date.now());
      if (Date.now() - turn > 2 * INTERVAL * 1000) turn = Date.now() - INTERVAL * 1000;
    }
  })();
  return (seconds) => had.filter((at) => at > Date.now() - seconds * 1000).length * INTERVAL / seconds;
}
