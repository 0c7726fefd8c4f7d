// Servers that profile the same Go process and do not know of each other: a pair, and one beside a collector that asks for
// as many seconds as its interval has, again and again.
import test from 'node:test';
import assert from 'node:assert/strict';
import { gunzipSync } from 'node:zlib';
import { request, scratch, sleep, startDemo, startServer, targets, until } from './lib.mjs';
import { fields } from './senders/pprof.mjs';

const WINDOW = 60;

const config = (address) => `
scrape_configs:
  - job_name: shop
    scrape_interval: 10s
    static_configs: [{targets: ["${address}"]}]
    profiling_config:
      pprof_config:
        memory: {enabled: false}
        goroutine: {enabled: false}
        block: {enabled: false}
        mutex: {enabled: false}
`;

/** The part of the last minute that the server's CPU profiles cover, as the merged profile says. */
async function share(server) {
  const params = new URLSearchParams({ query: `merge(process_cpu:cpu[${WINDOW}s])`, format: 'pprof' });
  const { status, body } = await request(`${server.url}/api/v1/query?${params}`);
  if (status !== 200) return 0;
  for (const [field, value] of fields(gunzipSync(body))) if (field === 10) return Number(value) / 1e9 / WINDOW;
  return 0;
}

async function seesOthers(server) {
  const [target] = await targets(server);
  return target?.profilerShared;
}

/** As Parca does: the next request follows the answer at once where its turn is over; a refused one waits for its turn. */
async function collect(t, address) {
  const had = [];
  let ended = false;
  t.after(() => { ended = true; });
  (async () => {
    for (let turn = Date.now(); !ended; turn = Math.max(turn + 10000, Date.now())) {
      await sleep(Math.max(0, turn - Date.now()));
      const { status, body } = await request(`http://${address}/debug/pprof/profile?seconds=10`).catch(() => ({}));
      if (status === 200) had.push({ at: Date.now(), seconds: 10, bytes: body.length });
      if (Date.now() - turn > 20000) turn = Date.now() - 10000;
    }
  })();
  return () => had.filter(({ at }) => at > Date.now() - WINDOW * 1000).reduce((sum, { seconds }) => sum + seconds, 0) / WINDOW;
}

async function pair(t) {
  const { address } = await startDemo(t, 'v1', 'none');
  const servers = await Promise.all([1, 2].map(() => startServer(t, { dir: scratch(t), config: config(address) })));
  let shares;
  await until('both have at least 45 %', 150, async () => {
    await sleep(1000);
    shares = await Promise.all(servers.map(share));
    return shares.every((s) => s >= 0.45) || void 0;
  }).catch((e) => { throw new Error(`${shares}`, { cause: e }); });
  t.diagnostic(`shares ${shares.map((s) => s.toFixed(3))}`);
  for (const server of servers) {
    assert.ok(await seesOthers(server));
    const [target] = await targets(server);
    assert.equal(target.health, 'up', target.lastError);
  }

  // The one that is left has all of it again.
  await servers[1].stop();
  await until('the other one is alone', 60, async () => !(await seesOthers(servers[0])));
}

async function besideCollector(t) {
  const { address } = await startDemo(t, 'v1', 'none');
  const collected = await collect(t, address);
  const server = await startServer(t, { dir: scratch(t), config: config(address) });
  let shares;
  await until('both have a fair part', 200, async () => {
    await sleep(1000);
    shares = [await share(server), collected()];
    return (shares[0] >= 0.25 && shares[1] >= 0.3) || void 0;
  }).catch((e) => { throw new Error(`${shares}`, { cause: e }); });
  t.diagnostic(`shares ${shares.map((s) => s.toFixed(3))}`);
}

// At one time: they wait.
test('servers share a process', { concurrency: true }, async (t) => {
  await Promise.all([
    t.test('two servers have nearly half of the time each', pair),
    t.test('beside one that never leaves a gap', besideCollector),
  ]);
});
