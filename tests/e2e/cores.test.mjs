// Cores, as the page shows them: mean_rate() of what a server scraped and of what was pushed to it, against arithmetic from the
// profiles themselves.
import test from 'node:test';
import assert from 'node:assert/strict';
import http from 'node:http';
import { cpuProfile } from '../browser/pprof.mjs';
import { api, query, request, scratch, startServer, until } from './lib.mjs';

const profile = (seconds, cpu, end) => cpuProfile({
  functions: [{ name: 'main.main' }, { name: 'main.work' }],
  samples: [{ stack: [0, 1], value: cpu * 1e9 }],
  time: (end - seconds) * 1000, seconds,
});

/** A program whose profiles take 1 s and cost 0.4 s of CPU time. */
async function serveProfiles(t) {
  const server = http.createServer((req, res) => res.end(profile(1, 0.4, Date.now() / 1000)));
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  t.after(() => server.close());
  return `127.0.0.1:${server.address().port}`;
}

const coresOf = async (server, by, range, time) => Object.fromEntries(
  (await query(server, `total(merge by (${by}) (mean_rate(cpu[${range}]))) / 1e9`, { time }))
    .result.map((e) => [e.metric[by] ?? '', Number(e.value[1])]));
const near = (got, want, what) => assert.ok(Math.abs(got - want) <= 1e-9 * Math.abs(want), `${what}: ${got}, want ${want}`);

test('mean_rate() of pushed profiles is their CPU time over the window, since the first of them', async (t) => {
  const server = await startServer(t, { dir: scratch(t), config: 'scrape_configs: []\n', args: ['--web.enable-ingest'] });
  const end = Math.floor(Date.now() / 1000) - 1200;
  const push = async (job, seconds, cpu, at, interval = seconds) => {
    const labels = new URLSearchParams({ name: 'process_cpu', job, time: at, interval: `${interval}s` });
    const res = await request(`${server.url}/api/v1/ingest?${labels}`, { method: 'POST', body: profile(seconds, cpu, at) });
    assert.equal(res.status, 200, res.body);
  };
  // 29 s in 15 min; and 5 s of each 30 s, for the last 5 min: 1 s of CPU time in each, 6 with what was not profiled.
  await push('batch', 900, 29, end);
  for (let ago = 0; ago < 300; ago += 30) await push('sampled', 5, 1, end - ago, 30);
  for (const range of ['15m', '1h', '6h']) {
    const got = await coresOf(server, 'job', range, end);
    near(got.batch, 29 / 900, `batch, ${range}`);
    near(got.sampled, 60 / 300, `sampled, ${range}`);
    near((await coresOf(server, 'none', range, end))[''], (29 + 60) / 900, `all, ${range}`);
  }
  // Ten minutes later the window is longer, and is cut by its range.
  const later = end + 600;
  near((await coresOf(server, 'job', '6h', later)).batch, 29 / 1500, 'batch, later');
  near((await coresOf(server, 'job', '15m', later)).batch, 29 / 900, 'batch, the last 15 min');
  near((await coresOf(server, 'job', '15m', later)).sampled, 60 / 900, 'sampled, the last 15 min');
  // The same text is a step of query_range, and the expression of a rule.
  const range = await api(server, 'query_range', {
    query: 'total(merge(mean_rate(cpu{job="batch"}[6h]))) / 1e9', start: end, end: later, step: 600 });
  near(Number(range.result[0].values[0][1]), 29 / 900, 'a step');
  near(Number(range.result[0].values[1][1]), 29 / 1500, 'the next step');
});

test('mean_rate() of scraped profiles is corrected for the time between them', async (t) => {
  const target = await serveProfiles(t);
  const config = `scrape_configs:
  - job_name: app
    scrape_interval: 2s
    profiling_config:
      pprof_config:
        process_cpu: {enabled: true, path: /profile, delta: true, seconds: 1}
        memory: {enabled: false}
        block: {enabled: false}
        mutex: {enabled: false}
        goroutine: {enabled: false}
        goroutineleak: {enabled: false}
    static_configs: [{targets: ["${target}"]}]
`;
  const began = Date.now() / 1000;
  const server = await startServer(t, { dir: scratch(t), config });
  const count = async (range, time) => Number((await query(server, `count_over_time(cpu[${range}])`, { time })).result[0]?.value[1] ?? 0);
  const time = await until('four scrapes', 30, async () => {
    const now = Date.now() / 1000;
    return (await count('1h', now)) >= 4 && now;
  });
  const n = await count('1h', time), inside = await count('4s', time);
  const { app } = await coresOf(server, 'job', '1h', time);
  // 0.4 s of CPU time in 1 s of each 2 s.
  near((await coresOf(server, 'job', '6h', time)).app, app, 'six hours');
  near((await coresOf(server, 'job', '4s', time)).app, (inside * 0.8) / 4, 'four seconds');
  const first = time - (n * 0.8) / app; // when the first profile began
  assert.ok(first > began - 2.1 && first < time - 2 * (n - 1), `${n} profiles since ${first}: began ${began}, asked ${time}`);
});
