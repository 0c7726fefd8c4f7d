// Marks of time lines with the real server: a deploy that a pipeline posts stays through kill -9, cuts and joins, and goes by
// delete_series; versions are marks; two shards and a query node have each mark once.
import test from 'node:test';
import assert from 'node:assert/strict';
import { S3Fake } from '../s3_fake.mjs';
import { api, freePort, request, scratch, startServer, until } from './lib.mjs';
import { Cluster, profile } from './shards.mjs';

const NOTHING = 'scrape_configs: []\n';

async function mark(server, body, headers = {}) {
  const res = await request(`${server.url}/api/v1/annotations`, { method: 'POST', body: JSON.stringify(body), headers });
  assert.equal(res.status, 200, res.body.toString());
  return JSON.parse(res.body).data;
}

async function push(server, labels, at) {
  const params = new URLSearchParams({ name: 'process_cpu', time: at.toFixed(3), ...labels });
  const res = await request(`${server.url}/api/v1/ingest?${params}`, { method: 'POST', body: profile('main.work', 7) });
  assert.equal(res.status, 200, res.body.toString());
}

const posted = (time, text, labels, end) => ({ time, ...(end && { end }), kind: 'posted', text, labels });
const version = (time, from, to, labels) => ({ time, kind: 'version', label: 'version', from, to, text: `${from} -> ${to}`, labels });

test('marks stay through kill -9, cuts and joins, and go by delete_series', async (t) => {
  const dir = scratch(t);
  const args = ['--web.enable-ingest', '--web.enable-admin-api', '--storage.tsdb.window=10s',
    '--storage.tsdb.out-of-order-time-window=10s', '--storage.tsdb.max-block-duration=1h'];
  const again = async (server) => {
    if (server) await server.stop('SIGKILL');
    return startServer(t, { dir, config: NOTHING, args });
  };
  let server = await again();
  const at = Math.floor(Date.now() / 1000) - 200, shop = { job: 'shop' };
  const want = [posted(at + 0.123, 'deploy v41', shop, at + 60), posted(at + 1, 'for all', {})];
  for (const m of want) assert.deepEqual(await mark(server, { time: m.time, end: m.end, text: m.text, labels: m.labels }), m);
  assert.deepEqual(await api(server, 'annotations'), want);
  assert.deepEqual((await api(server, 'senders')).senders, []);
  server = await again(server);
  assert.deepEqual(await api(server, 'annotations'), want);

  for (let i = 0; i < 90; i++) await push(server, { ...shop, version: i < 45 ? 'v1' : 'v2', pod: `p${i % 3}` }, at + 2 + 2 * i);
  want.push(version(at + 92, 'v1', 'v2', shop));
  assert.deepEqual(await api(server, 'annotations'), want);
  const levels = async () => (await api(server, 'status/tsdb')).blocks.filter((b) => b.ulid).map((b) => b.level);
  await until('blocks are cut and joined', 60, async () => (await levels()).some((l) => l > 1));
  assert.deepEqual(await api(server, 'annotations'), want);
  server = await again(server);
  assert.deepEqual(await api(server, 'annotations'), want);
  assert.deepEqual(await api(server, 'annotations', { start: at + 93 }), []);
  assert.deepEqual(await api(server, 'annotations', { start: at + 1, 'match[]': '{job="bank"}' }), want.slice(1, 2));
  assert.deepEqual((await api(server, 'profile_types')).map((p) => p.name), ['process_cpu']);

  const gone = await request(`${server.url}/api/v1/admin/tsdb/delete_series?match[]=annotation{job="shop"}`, { method: 'POST' });
  assert.equal(gone.status, 204, gone.body.toString());
  assert.deepEqual(await api(server, 'annotations'), want.slice(1));
});

test('a cluster has each mark once, whichever shard gets it', async (t) => {
  const fake = await new S3Fake().listen();
  t.after(() => fake.close());
  const cluster = new Cluster(t, { dir: scratch(t), store: fake, total: 2, join: true });
  await Promise.all([0, 1].map(async (i) => cluster.shard(i, { port: await freePort() })));
  await cluster.node(0);
  const shards = [0, 1].map((i) => cluster.get(`shard-${i}`));
  const at = Math.floor(Date.now() / 1000) - 60, want = [];
  // Until both know both, a mark is refused.
  for (const shard of shards)
    await until('marks of both are taken', 120, async () => {
      for (let k = 0; k < 16; k++) await mark(shard, { time: at, text: 'warm', labels: { job: `warm-${k}` } });
      return true;
    });
  for (let k = 0; k < 16; k++) {
    const m = posted(at + 1 + k, `deploy ${k}`, { job: `calls-${k}` });
    for (const shard of shards) assert.deepEqual(await mark(shard, { time: m.time, text: m.text, labels: m.labels }), m);
    want.push(m);
  }
  for (let k = 0; k < 4; k++) {
    await push(shards[0], { job: `calls-${k}`, version: 'v1', pod: 'a' }, at + 20);
    await push(shards[1], { job: `calls-${k}`, version: 'v2', pod: 'b' }, at + 20.5 + k);
    want.push(version(at + 20.5 + k, 'v1', 'v2', { job: `calls-${k}` }));
  }
  const ask = (server) => api(server, 'annotations', { 'match[]': '{job=~"calls-.*"}' });
  await until('the query node has all', 60, async () => {
    assert.deepEqual(await ask(cluster.get('query-0')), want);
    return true;
  });
  const own = await Promise.all(shards.map(async (shard) => (await ask(shard)).filter((m) => m.kind === 'posted').length));
  assert.equal(own[0] + own[1], 16);
});
