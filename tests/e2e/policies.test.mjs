// The rights that examples/kubernetes/cluster/aws gives to each role of a cluster: no member asks for more, and does its work with them.
import test from 'node:test';
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { S3Fake } from '../s3_fake.mjs';
import { api, join, query, request, root, scratch, until, writeFileSync } from './lib.mjs';
import { Cluster, Pusher, stored, sums } from './shards.mjs';

const PREFIX = 'production';
const policyOf = (role) => JSON.parse(readFileSync(join(root, `examples/kubernetes/cluster/aws/${role}.json`), 'utf8'));
const RULES = 'groups: [{name: a, interval: 1s, rules: [{record: "calls:total", expr: "sum(total(merge(process_cpu:samples[1h])))"}]}]\n';

/** A store in which each role has keys with its policy. */
async function storeWithRoles(t) {
  const fake = await new S3Fake().listen();
  t.after(() => fake.close());
  for (const role of ['shard', 'query', 'caretaker'])
    fake.obey('POST', '/credentials', Buffer.from(JSON.stringify({ accessKey: `AK-${role}`, secretKey: `secret of ${role}`, policy: policyOf(role) })));
  return fake;
}

const roleOf = (name) => (name.includes('shard') ? 'shard' : name.startsWith('query') ? 'query' : 'caretaker');

const refused = (fake) => fake.requests.filter((r) => r.status === 403).map((r) => `${r.accessKey} ${r.method} ${r.key}`);

test('no role asks for more than its policy gives', async (t) => {
  const fake = await storeWithRoles(t), dir = scratch(t), rules = join(dir, 'rules.yml');
  writeFileSync(rules, RULES);
  const storeOf = (name) => ({ ...fake, endpoint: fake.endpoint, accessKey: `AK-${roleOf(name)}`, secretKey: `secret of ${roleOf(name)}` });
  const cluster = new Cluster(t, { dir, store: fake, storeOf, prefix: PREFIX, config: `rule_files: [${rules}]\n` });
  const shard = () => cluster.start('epimetheus-shard-0', { args: ['--web.enable-ingest', '--web.enable-admin-api', '--web.enable-files',
    '--shard.name=epimetheus-shard-0', '--shard.join', '--storage.bucket.segment-interval=1s', '--storage.tsdb.window=2s',
    '--storage.tsdb.out-of-order-time-window=1s', '--storage.bucket.delete-delay=1s'] });
  const keys = () => fake.touch('GET', '').map((o) => o.key);

  await shard();
  await cluster.node(0, { args: ['--web.enable-files'] });
  const pusher = new Pusher(() => cluster.get('epimetheus-shard-0')).begin();
  await until('blocks are in the bucket, and objects were removed', 120, () =>
    keys().some((key) => key.endsWith('/meta.json')) && fake.requests.some((r) => r.method === 'DELETE' && r.status === 204 && /\/(head|blocks)\//.test(r.key)));
  await pusher.stop();
  await until('rules are recorded', 120, async () => (await query(cluster.get('query-0'), 'calls:total')).result.length);
  await until('the query node has all', 120, async () => {
    const { functions, warnings } = await stored(cluster.get('query-0'));
    assert.deepEqual([functions, warnings], [sums(pusher.acknowledged), []]);
    return true;
  });
  await api(cluster.get('query-0'), 'senders');

  // A file that is kept at either, opened and removed at the other.
  const members = ['epimetheus-shard-0', 'query-0'].map((name) => cluster.get(name));
  for (const [one, other] of [members, [...members].reverse()]) {
    const kept = await request(`${one.url}/api/v1/files?name=a.folded&keep=1d`, { method: 'POST', body: 'main;f 3\n' });
    assert.equal(kept.status, 200, kept.body.toString());
    const { id } = JSON.parse(kept.body).data;
    for (const method of ['GET', 'DELETE']) assert.equal((await request(`${other.url}/api/v1/files/${id}`, { method })).status, 200);
  }

  // A lost disk, and at last a shard that is gone.
  await cluster.kill('epimetheus-shard-0', 'SIGTERM');
  cluster.wipe('epimetheus-shard-0');
  await shard();
  await cluster.kill('epimetheus-shard-0', 'SIGTERM');
  await cluster.start('keeper', { args: ['--mode=compact', '--storage.tsdb.retention.size=1B', '--storage.bucket.poll-interval=1s', '--storage.bucket.delete-delay=1s'] });
  await until('the shard and its objects are gone', 120, () => !keys().some((key) => key.startsWith(`${PREFIX}/shards/epimetheus-shard-0/`)));
  for (const name of ['query-0', 'keeper']) await cluster.kill(name, 'SIGTERM');
  assert.deepEqual(refused(fake), []);
  for (const role of ['shard', 'query', 'caretaker']) assert.ok(fake.requests.some((r) => r.accessKey === `AK-${role}` && r.method === 'PUT'), role);
});

test('a query node may not write what a shard wrote', async (t) => {
  const fake = await storeWithRoles(t);
  const { Statement } = policyOf('query');
  const writes = Statement.filter((s) => [s.Action].flat().some((a) => a !== 's3:GetObject' && a !== 's3:ListBucket'));
  assert.equal(writes.length, 1);
  assert.ok(writes[0].Resource.every((r) => !/\/shards\/(\*|epimetheus)/.test(r) && !r.endsWith(`${PREFIX}/*`)), writes[0].Resource.join());
  assert.ok(fake.keys.get('AK-query').policy);
});
