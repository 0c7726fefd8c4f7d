// Rules on several query nodes: one evaluates them, by a lease in the bucket, and another one when it dies.
import test from 'node:test';
import assert from 'node:assert/strict';
import { api, join, query, scratch, until, writeFileSync } from './lib.mjs';
import { Cluster, Pusher, sums } from './shards.mjs';
import { S3Fake } from '../s3_fake.mjs';

const RULES = `groups:
- name: cost
  interval: 1s
  rules:
  - {record: "calls:total", expr: "sum(total(merge(process_cpu:samples{job='calls'}[1h])))"}
  - {alert: Costly, expr: "calls:total > 0"}
`;

test('one query node evaluates the rules, and another one when it dies', async (t) => {
  const dir = scratch(t);
  const store = await new S3Fake().listen();
  t.after(() => store.close());
  const cluster = new Cluster(t, { dir, store, total: 1 });
  const rules = join(dir, 'rules.yml');
  writeFileSync(rules, RULES);
  const config = `rule_files: [${rules}]\n`;

  const rulesOf = async (name) => (await api(cluster.get(name), 'rules')).groups[0].rules;
  /** It has evaluated all rules, and goes on: later than at that time. */
  const evaluates = async (name, since) => (await rulesOf(name)).every((r) => r.health === 'ok' && Date.parse(r.lastEvaluation) > since);
  const never = async (name) => (await rulesOf(name)).every((r) => r.health === 'unknown');
  const alerts = async (name) => (await api(cluster.get(name), 'alerts')).alerts;
  const firing = [['Costly', 'firing']];
  const fires = async (name) => {
    const all = await alerts(name);
    assert.deepEqual(all.map((a) => [a.labels.alertname, a.state]), firing);
    return all[0].activeAt;
  };
  const waits = (name) => until(`${name} waits`, 60, () => /rules are evaluated elsewhere/.test(cluster.get(name).err));
  let total;
  const hasRecorded = (name) => until(`${name} has what is recorded`, 60, async () =>
    Number((await query(cluster.get(name), 'calls:total')).result[0]?.value[1]) === total);

  await cluster.shard(0);
  const pusher = new Pusher(() => cluster.get('shard-0')).begin();
  await until('some profiles', 60, () => pusher.acknowledged.length >= 30);
  total = Object.values(sums(await pusher.stop())).reduce((a, b) => a + b, 0);

  await cluster.node(0, { config });
  await until('query-0 evaluates', 60, () => evaluates('query-0', 0));
  await cluster.node(1, { config });
  await hasRecorded('query-0');
  await hasRecorded('query-1');
  const since = await until('it fires', 60, () => fires('query-0'));
  await waits('query-1');
  assert.equal(await never('query-1'), true);
  assert.deepEqual(await alerts('query-1'), []);

  await cluster.kill('query-0');
  const died = Date.now();
  await until('query-1 evaluates', 120, () => evaluates('query-1', died));
  const after = Date.now() - died;
  t.diagnostic(`${after} ms without rules; active since ${since}, then since ${await until('it fires', 60, () => fires('query-1'))}`);
  await cluster.node(0, { config });
  await hasRecorded('query-0');
  await waits('query-0');
  assert.equal(await never('query-0'), true);
  const now = Date.now();
  await until('query-1 goes on', 60, () => evaluates('query-1', now));
});
