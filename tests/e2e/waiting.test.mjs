// A server whose start takes long answers from its first second: health, and what it waits for. So no probe ends it.
import test from 'node:test';
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { S3Fake } from '../s3_fake.mjs';
import { epimetheus, finish, join, request, root, scratch, until, writeFileSync } from './lib.mjs';
import { bucketSection, Cluster, Pusher, stored, sums } from './shards.mjs';

async function startFake(t) {
  const fake = await new S3Fake().listen();
  t.after(() => fake.close());
  return fake;
}

const fault = (fake, f) => fake.obey('POST', '/fault', Buffer.from(JSON.stringify({ count: -1, ...f })));
const text = (res) => res.body.toString();
const ready = async (server, options) => request(`${server.url}/-/ready`, options);
const says = (server, what) => until(`/-/ready says ${what}`, 60, async () => {
  const res = await ready(server);
  assert.equal(res.status, 503, text(res));
  assert.equal(res.headers['retry-after'], '5');
  return what.test(text(res)) && text(res);
});
const isReady = (server) => until('it is ready', 180, async () => (await ready(server)).status === 200);

/** A shard with five profiles in the bucket, that was killed and has lost its disk. */
async function killed(t, cluster, fake) {
  await cluster.shard(0);
  const pusher = new Pusher(() => cluster.get('shard-0'));
  for (let i = 0; i < 5; i++) await pusher.push();
  const after = Date.now() * 1e6;
  await until('all is in the bucket', 60, async () => {
    const at = fake.obey('GET', '/objects/epi/shards/shard-0/manifest', Buffer.alloc(0));
    return Number(/"through_ns": *(\d+)/.exec(at.toString())?.[1]) > after;
  });
  await cluster.kill('shard-0');
  cluster.wipe('shard-0');
  return pusher.acknowledged;
}

/** The store is busy, and wants to be asked again after so many seconds. */
const busy = (s) => ({ status: 503, code: 'SlowDown', headers: { 'retry-after': `${s}` } });

/** How long the probes of a manifest leave a server alone that does not answer them, in seconds. */
function patience(manifest) {
  const liveness = /livenessProbe:\n([\s\S]*?)\n {10}\w/.exec(readFileSync(join(root, manifest), 'utf8'))[1];
  const of = (name, otherwise) => Number(new RegExp(`${name}: (\\d+)`).exec(liveness)?.[1] ?? otherwise);
  assert.match(liveness, /path: \/-\/healthy/);
  return of('initialDelaySeconds', 0) + of('periodSeconds', 10) * of('failureThreshold', 3);
}

test('a shard that lost its disk is alive while it waits for its lease, and says so', async (t) => {
  const fake = await startFake(t), dir = scratch(t);
  const cluster = new Cluster(t, { dir, store: fake, args: ['--web.cors.origin=http://a\\.example',
    '--web.otlp-grpc-listen-address=127.0.0.1:0'] });
  const list = await killed(t, cluster, fake);
  let server = await cluster.shard(0, { ready: 'listening' });
  const waits = new RegExp(`^not ready: waiting for the lease of shard shard-0, which ${hostname()} had since \\d{4}-.*Z: \\d+ s of (\\d+) s\n$`);
  const said = await says(server, waits);
  assert.ok(Number(waits.exec(said)[1]) > patience('examples/kubernetes/server/statefulset.yaml'), 'the lease outlasts the probe');
  for (const path of ['/-/healthy', '/metrics', '/', '/docs/'])
    assert.equal((await request(`${server.url}${path}`)).status, 200, path);
  // Every form of answer has the reason.
  const origin = { headers: { origin: 'http://a.example' } };
  const query = await request(`${server.url}/api/v1/query?query=1`, origin);
  assert.equal(query.status, 503);
  assert.equal(query.headers['retry-after'], '5');
  assert.equal(query.headers['access-control-allow-origin'], 'http://a.example');
  const envelope = JSON.parse(query.body);
  assert.deepEqual([envelope.status, envelope.errorType], ['error', 'unavailable']);
  assert.match(envelope.error, /^not ready: waiting for the lease of shard shard-0/);
  const push = await request(`${server.url}/api/v1/ingest?name=process_cpu&job=a`, { method: 'POST', body: 'x' });
  assert.equal(push.status, 503);
  assert.match(JSON.parse(push.body).error, /^not ready: waiting for the lease/);
  const grafana = await request(`${server.url}/querier.v1.QuerierService/ProfileTypes`, { method: 'POST', body: '{}' });
  assert.equal(JSON.parse(grafana.body).code, 'unavailable');
  // It can be ended.
  await server.stop();
  assert.equal(server.code, 0, server.err);
  assert.match(server.err, /received a signal, ending/);
  assert.doesNotMatch(server.err, /cannot start/);
  server = await cluster.shard(0, { ready: 'listening' });
  await says(server, /waiting for the lease/);
  await isReady(server);
  cluster.members.set('shard-0', server);
  const { functions } = await stored(server);
  assert.deepEqual(functions, sums(list));
});

test('a shard says how far its restore is, and why it does not go on', async (t) => {
  const fake = await startFake(t), dir = scratch(t);
  const cluster = new Cluster(t, { dir, store: fake });
  await killed(t, cluster, fake);
  fault(fake, { method: 'GET', key: 'epi/shards/shard-0/head/', ...busy(5) });
  const server = await cluster.shard(0, { ready: 'listening' });
  await until('it restores', 180, async () => /restores window 1 of 1 from the bucket; .*SlowDown/.test(text(await ready(server))));
  fake.faults = [];
  await isReady(server);
});

test('a shard with an empty directory says that the bucket is busy', async (t) => {
  const fake = await startFake(t), dir = scratch(t);
  fault(fake, busy(60));
  const cluster = new Cluster(t, { dir, store: fake });
  const server = await cluster.shard(0, { ready: 'listening' });
  await says(server, /^not ready: asks the bucket for the lease of shard shard-0; .*SlowDown/);
  await server.stop();
  assert.equal(server.code, 0, server.err);
});

test('a query node is alive while it reads the shards, and tells users what it waits for', async (t) => {
  const fake = await startFake(t), dir = scratch(t);
  const cluster = new Cluster(t, { dir, store: fake, total: 2 });
  await cluster.shard(0);
  await cluster.shard(1);
  fault(fake, { method: 'GET', key: 'epi/shards/shard-1/', delay: -1 });
  fault(fake, { method: 'HEAD', key: 'epi/shards/shard-1/', delay: -1 });
  let node = await cluster.node(0, { ready: 'listening' });
  await says(node, /^not ready: reads shards: 1 of 2\n$/);
  assert.equal((await request(`${node.url}/-/healthy`)).status, 200);
  await node.stop();
  assert.equal(node.code, 0, node.err);
  writeFileSync(join(dir, 'token'), 'probe-token-of-32-characters-or-more');
  writeFileSync(join(dir, 'web.yml'), `users: [{ name: probe, token_file: ${join(dir, 'token')}, roles: [read] }]\n`);
  node = await cluster.node(1, { ready: 'listening', args: [`--web.config.file=${join(dir, 'web.yml')}`] });
  const anybody = await ready(node);
  assert.equal(anybody.status, 503);
  assert.equal(text(anybody), 'not ready\n');
  const headers = { authorization: 'Bearer probe-token-of-32-characters-or-more' };
  assert.match(text(await ready(node, { headers })), /^not ready: /);
  fake.faults = [];
  await until('it is ready', 120, async () => (await ready(node, { headers })).status === 200);
});

test('a wrong web configuration and a locked directory end the start as before', async (t) => {
  const fake = await startFake(t), dir = scratch(t);
  const cluster = new Cluster(t, { dir, store: fake });
  await cluster.shard(0);
  const config = join(dir, 'epimetheus.yml'), data = join(dir, 'shard-0/data');
  writeFileSync(config, bucketSection(fake));
  writeFileSync(join(dir, 'web.yml'), 'nothing: 1\n');
  const run = (...args) => finish(t, epimetheus, [`--config.file=${config}`, '--web.listen-address=127.0.0.1:0',
    '--shard.name=shard-0', ...args]);
  const wrong = await run(`--storage.tsdb.path=${join(dir, 'other')}`, `--web.config.file=${join(dir, 'web.yml')}`);
  assert.equal(wrong.code, 2, wrong.err);
  const locked = await run(`--storage.tsdb.path=${data}`);
  assert.equal(locked.code, 1, locked.err);
  assert.match(locked.err, /cannot start.*is locked by another process/);
  const taken = await run(`--storage.tsdb.path=${join(dir, 'other')}`);
  assert.equal(taken.code, 1, taken.err);
  assert.match(taken.err, /shard shard-0 is in use by /);
});
