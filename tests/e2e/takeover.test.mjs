// Who owns a shard: servers that are taken over, copies of a data directory, a bucket that is away at the start.
import test from 'node:test';
import assert from 'node:assert/strict';
import { cpSync, existsSync, mkdirSync } from 'node:fs';
import { S3 } from '../s3_client.mjs';
import { S3Fake } from '../s3_fake.mjs';
import { join, request, scratch, startServer, until, writeFileSync } from './lib.mjs';
import { bucketSection, Cluster, Pusher, stored, sums } from './shards.mjs';

async function startFake(t) {
  const fake = await new S3Fake().listen();
  t.after(() => fake.close());
  const tell = async (method, path, value) => {
    const answer = await request(fake.control + path, { method, body: value && JSON.stringify(value) });
    assert.equal(answer.status, 200, answer.body.toString());
    return JSON.parse(answer.body);
  };
  return { fake, tell, s3: new S3(fake) };
}

const manifest = async (s3, shard) => JSON.parse(await s3.get(`epi/shards/${shard}/manifest`));

async function push(cluster, name, n) {
  const pusher = new Pusher(() => cluster.get(name), { seed: n });
  for (let i = 0; i < n; i++) await pusher.push();
  return pusher.acknowledged;
}

/** The manifest says what the store has once all is in it. */
const published = (s3, shard, after) => until(`${shard} has published`, 60, async () =>
  (await manifest(s3, shard)).through_ns / 1e9 > after);

test('of a data directory and its copy one publishes', async (t) => {
  const { fake, s3 } = await startFake(t);
  const cluster = new Cluster(t, { dir: scratch(t), store: fake });
  const first = await cluster.shard(0);
  const list = await push(cluster, 'shard-0', 5);
  await published(s3, 'shard-0', Date.now() / 1000);
  mkdirSync(join(cluster.dir, 'copy'));
  await first.child.kill('SIGSTOP'); // so that the copy is one of a moment
  cpSync(join(first.dir, 'data'), join(cluster.dir, 'copy/data'), { recursive: true });
  await first.child.kill('SIGCONT');
  assert.ok(existsSync(join(cluster.dir, 'copy/data/bucket.owner')));
  const copy = await startServer(t, { dir: join(cluster.dir, 'copy'), config: bucketSection(fake), ready: false,
    args: ['--web.enable-ingest', '--shard.name=shard-0', '--shard.total=3', '--storage.bucket.segment-interval=1s'] });
  // One of the two ends, and the other one goes on alone.
  await until('one of them ends', 120, () => first.code !== undefined || copy.code !== undefined);
  const [loser, winner] = first.code !== undefined ? [first, copy] : [copy, first];
  assert.equal(loser.code, 1);
  assert.match(loser.err, /another server publishes under our name: this one ends" shard=shard-0|shard shard-0 is in use by /);
  const { session } = await manifest(s3, 'shard-0');
  await published(s3, 'shard-0', Date.now() / 1000);
  assert.equal(winner.code, undefined);
  assert.equal((await manifest(s3, 'shard-0')).session, session);
  await cluster.node(0);
  await until('a query node has each profile once', 60, async () => {
    const { functions, warnings } = await stored(cluster.get('query-0'));
    assert.deepEqual([functions, warnings], [sums(list), []]);
    return true;
  });
});

test('a shard starts while the bucket is away, and publishes when it is back', async (t) => {
  const { fake, tell, s3 } = await startFake(t);
  const cluster = new Cluster(t, { dir: scratch(t), store: fake });
  await cluster.shard(0);
  const list = await push(cluster, 'shard-0', 5);
  await published(s3, 'shard-0', Date.now() / 1000);
  await cluster.kill('shard-0');
  await tell('POST', '/fault', { count: -1, drop: 'before' });
  await cluster.shard(0);
  list.push(...await push(cluster, 'shard-0', 5));
  assert.match(cluster.get('shard-0').err, /the bucket is away: nothing is published until it is back/);
  const later = Date.now() / 1000;
  await tell('DELETE', '/faults');
  await published(s3, 'shard-0', later);
  await cluster.node(0);
  await until('a query node has all', 60, async () => {
    assert.deepEqual((await stored(cluster.get('query-0'))).functions, sums(list));
    return true;
  });
});

test('a query node that waits for the lease of rules probes the bucket once', async (t) => {
  const { fake, tell } = await startFake(t);
  const dir = scratch(t), rules = join(dir, 'rules.yml');
  writeFileSync(rules, 'groups: [{ name: a, interval: 1s, rules: [{ record: "one:total", expr: "1" }] }]\n');
  const cluster = new Cluster(t, { dir, store: fake, config: `rule_files: [${rules}]\n` });
  await cluster.node(0);
  await until('it evaluates', 60, () => /rules are evaluated here/.test(cluster.get('query-0').err));
  await tell('DELETE', '/requests');
  await cluster.node(1);
  const looks = async () => (await tell('GET', '/requests')).filter((r) => r.method === 'GET' && /shards\/rules\/manifest$/.test(r.key));
  const probes = async () => (await tell('GET', '/requests')).filter((r) => r.method === 'PUT' && /probe/.test(r.key)).length;
  await until('it found the lease taken', 60, () => /rules are evaluated elsewhere/.test(cluster.get('query-1').err));
  const first = await probes();
  assert.ok(first > 0, JSON.stringify((await tell('GET', '/requests')).filter((r) => r.method === 'PUT').map((r) => r.key)));
  const before = (await looks()).length;
  await until('it tried again', 90, async () => (await looks()).length > before + 2);
  assert.equal(await probes(), first);
});

test('the cache of a bucket is outside the data directory, and the sandbox allows it', async (t) => {
  const { fake, s3 } = await startFake(t);
  const dir = scratch(t), cache = join(dir, 'elsewhere/cache');
  const cluster = new Cluster(t, { dir, store: fake, args: ['--storage.tsdb.window=2s', '--storage.tsdb.out-of-order-time-window=1s',
    `--storage.bucket.cache-path=${cache}`] });
  await cluster.shard(0);
  await until('a block is in the bucket', 120, async () => {
    await push(cluster, 'shard-0', 1); // a window ends by what comes after it
    return (await s3.keys({ prefix: 'epi/shards/' })).some((k) => k.endsWith('/meta.json'));
  });
  const node = await cluster.node(0, { args: [`--storage.bucket.cache-path=${cache}-of-node`] });
  await until('the node has pages', 60, async () => {
    await stored(node);
    return existsSync(`${cache}-of-node`) && !/no cache on disk/.test(node.err);
  });
  assert.doesNotMatch(node.err, /Permission denied|level=warn component=sandbox/);
  const text = (await request(`${node.url}/metrics`)).body.toString();
  assert.match(text, /epimetheus_sandbox_in_force\{part="files"\} 1/);
  const { data } = JSON.parse((await request(`${node.url}/api/v1/status/cluster`)).body);
  assert.equal(data.cache.off ?? '', '', JSON.stringify(data.cache));
});
