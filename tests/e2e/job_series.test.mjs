// A job that has its share of the series gets no new ones, whichever way they come; its own series and all other jobs go on.
import test from 'node:test';
import assert from 'node:assert/strict';
import http from 'node:http';
import { cpuProfile } from '../browser/pprof.mjs';
import { api, query, request, scratch, startServer, targets, until } from './lib.mjs';
import { call, connect, grpcPort, recorded } from './otlp_requests.mjs';

const LIMIT = 5; // a scraped target has a profile and four numbers
const ARGS = ['--web.enable-ingest', '--web.otlp-grpc-listen-address=127.0.0.1:0'];
const refusal = (job) => `job "${job}" has ${LIMIT} series, those of its scrapes' numbers too, limit ${LIMIT} (--storage.tsdb.max-series-per-job)`;
const profile = (value) => cpuProfile({ functions: [{ name: 'main' }], samples: [{ stack: [0], value }] });
const now = Math.floor(Date.now() / 1000);

async function push(server, job, instance, time) {
  const res = await request(`${server.url}/api/v1/ingest?${new URLSearchParams({ name: 'process_cpu', job, instance, time })}`,
    { method: 'POST', body: profile(1000 + time % 1000) });
  return [res.status, JSON.parse(res.body).error];
}

async function metric(server, line) {
  const text = (await request(`${server.url}/metrics`)).body.toString();
  return Number(text.match(new RegExp(`^${line.replace(/[{}]/g, '\\$&')} (.*)$`, 'm'))?.[1] ?? 0);
}

test('one job at its limit', async (t) => {
  const dir = scratch(t);
  const target = http.createServer((req, res) => res.end(profile(7)));
  await new Promise((done) => target.listen(0, '127.0.0.1', done));
  t.after(() => target.close());
  const address = `127.0.0.1:${target.address().port}`;
  const job = (name) => `  - job_name: ${name}\n    scrape_interval: 2s\n    profiling_config: {pprof_config: {` +
    'process_cpu: {seconds: 1}, memory: {enabled: false}, block: {enabled: false}, mutex: {enabled: false}, ' +
    `goroutine: {enabled: false}, goroutineleak: {enabled: false}}}\n    static_configs: [{targets: ["${address}"]}]\n`;
  const args = [...ARGS, `--storage.tsdb.max-series-per-job=${LIMIT}`];
  let server = await startServer(t, { dir, config: 'scrape_configs: []\n', args });

  for (let i = 0; i < LIMIT; i++) assert.deepEqual(await push(server, 'shop', `i${i}`, now - 10), [200, undefined]);
  assert.deepEqual(await push(server, 'shop', 'more', now - 10), [422, refusal('shop')]);
  assert.deepEqual(await push(server, 'shop', 'i0', now - 9), [200, undefined]);
  assert.deepEqual(await push(server, 'bank', 'i0', now - 9), [200, undefined]);
  assert.equal(await metric(server, 'epimetheus_tsdb_series_refused_total{limit="max-series-per-job"}'), 1);
  assert.equal(await metric(server, 'epimetheus_tsdb_largest_job_series'), LIMIT);

  // gRPC: refused for good, so nobody sends it again.
  const session = connect(t, `http://127.0.0.1:${grpcPort(server)}`);
  const send = (service) => call(session, recorded('p4-standalone-20hz-tiny', { 'service.name': service }).at(now * 1000 - 60000));
  const sent = await send('shop');
  assert.equal(sent.status, 0, sent.message);
  assert.ok(sent.body.includes(refusal('shop')), sent.body.toString());
  assert.deepEqual((await send('kiosk')).body, Buffer.alloc(5));
  const head = (await api(server, 'status/tsdb')).headStats;
  assert.deepEqual([head.largestJob, head.largestJobSeries, head.maxSeriesPerJob, head.maxSeries], ['shop', LIMIT, LIMIT, 1000000]);

  // A restart counts the same. A target of the job has the refusal as its error, beside one of another job that is up.
  await server.stop('SIGKILL');
  server = await startServer(t, { dir, config: `scrape_configs:\n${job('shop')}${job('street')}`, args });
  assert.deepEqual(await push(server, 'shop', 'more', now - 5), [422, refusal('shop')]);
  assert.deepEqual(await push(server, 'shop', 'i2', now - 5), [200, undefined]);
  await until('the job at its limit has the error, the other one is up', 60, async () => {
    const all = await targets(server);
    const of = (name) => all.find((x) => x.labels.job === name);
    return of('shop')?.lastError === `store: ${refusal('shop')}` && of('street')?.health === 'up';
  });
  const { result } = await query(server, 'sort_desc(total(merge by (job) (last_over_time(cpu[1h]))))', { time: Date.now() / 1000 + 1 });
  assert.deepEqual(result.map((r) => r.metric.job).sort(), ['bank', 'kiosk', 'shop', 'street']);
});

test('by default a job has half, and 0 is no limit', async (t) => {
  for (const [args, want] of [[[], 500000], [['--storage.tsdb.max-series=7'], 4], [['--storage.tsdb.max-series-per-job=0'], undefined]]) {
    const server = await startServer(t, { dir: scratch(t), config: 'scrape_configs: []\n', args });
    assert.equal((await api(server, 'status/tsdb')).headStats.maxSeriesPerJob, want);
    await server.stop();
  }
});
