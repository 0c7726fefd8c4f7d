// godeltaprof's endpoints answer differences. What is stored of them is what the program allocated, and as much as of the
// plain endpoint beside them.
import test from 'node:test';
import assert from 'node:assert/strict';
import { api, epitool, execFileSync, finish, join, query, request, root, scratch, start, startServer, until, writeFileSync } from './lib.mjs';

/** A program, and the text of jobs that scrape the memory of it: [name, settings]. */
async function allocating(t) {
  execFileSync(join(root, 'tests/e2e/senders/prepare.sh'), ['go'], { stdio: 'pipe' });
  const program = start(t, join(root, 'build/senders/go/deltas'), []);
  const address = await until('its address', 20, () => program.out.trim());
  const others = 'process_cpu: {enabled: false}, goroutine: {enabled: false}, goroutineleak: {enabled: false}, block: {enabled: false}, mutex: {enabled: false}';
  const config = (jobs) => `global: {scrape_interval: 500ms, scrape_timeout: 500ms}
scrape_configs:${jobs.map(([name, memory]) => `
  - job_name: ${name}
    profiling_config: {pprof_config: {${others}, memory: {${memory}}}}
    static_configs: [{targets: ["${address}"]}]`).join('')}\n`;
  const work = async (n) => assert.equal((await request(`http://${address}/work?n=${n}`)).status, 200);
  return { config, work };
}

const active = async (server) => (await api(server, 'targets', { state: 'active' })).activeTargets;

test('a program with godeltaprof', async (t) => {
  const { config, work } = await allocating(t), dir = scratch(t);
  const jobs = [['deltas', 'path: /debug/pprof/delta_heap'], ['plain', 'path: /debug/pprof/allocs']];
  const server = await startServer(t, { dir, config: config(jobs) });
  const up = () => active(server);
  const scraped = async (more) => {
    const before = Object.fromEntries((await up()).map((x) => [x.scrapePool, x.scrapes - x.failures]));
    await until('scrapes', 20, async () => (await up()).every((x) => x.scrapes - x.failures >= (before[x.scrapePool] ?? 0) + more));
  };
  await scraped(2);
  // Less and less, then more: of differences of these, most would be lost.
  const amounts = [40, 20, 10, 30, 5, 4, 25, 1];
  for (const n of amounts) {
    await work(n);
    await scraped(2);
  }
  const mib = amounts.reduce((a, b) => a + b);
  for (const name of ['deltas', 'plain']) {
    const got = await query(server, `flat by (function) (merge(memory:alloc_space{job="${name}"}[10m]), {function="main.loadCart"})`);
    assert.equal(Math.round(Number(got.result[0]?.value[1]) / 2 ** 20), mib, name); // it has some bytes more
  }
  const targets = await up();
  assert.deepEqual(targets.map((x) => [x.scrapePool, x.lastError, x.warning]), [['deltas', '', undefined], ['plain', '', undefined]]);
  const check = await finish(t, epitool, ['check', 'config', join(dir, 'epimetheus.yml')]);
  assert.equal(check.code, 0);
  assert.match(check.err, /WARNING: .*"\/debug\/pprof\/delta_heap" gives what was added since anybody asked it/);
  assert.equal(check.err.match(/WARNING/g).length, 1);
});

test('at a path that nobody knows', async (t) => {
  const { config, work } = await allocating(t), dir = scratch(t);
  const server = await startServer(t, { dir, config: config([['a', 'path: /internal/heap']]), args: ['--web.enable-lifecycle'] });
  let n = 0;
  const warning = async () => {
    await work(++n % 2 ? 20 : 1);
    return (await active(server))[0]?.warning;
  };
  assert.match(await until('a warning', 60, warning), /^counters of this profile fall again and again .* write `delta: true` for the profile; /);
  assert.match(server.err, /level=warn component=scrape msg="counters are not of the kind that they are taken for" job=a /);
  writeFileSync(join(dir, 'epimetheus.yml'), config([['a', 'path: /internal/heap, delta: true']]));
  assert.equal((await request(`${server.url}/-/reload`, { method: 'POST' })).status, 200);
  await until('no warning', 20, async () => {
    const [target] = await active(server);
    return target.scrapeUrl.includes('seconds=') && !target.warning;
  });
});
