// Rules on several query nodes: one evaluates them, by a lease in the bucket, all answer what it evaluates, and another one goes
// on when it dies or loses the lease.
import test from 'node:test';
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { api, join, query, request, scratch, until, writeFileSync } from './lib.mjs';
import { Cluster, Pusher, sums } from './shards.mjs';
import { S3Fake } from '../s3_fake.mjs';

const RULES = `groups:
- name: cost
  interval: 1s
  rules:
  - {record: "calls:total", expr: "sum(total(merge(process_cpu:samples{job='calls'}[1h])))"}
  - {record: "clock", expr: "time()"}
  - {alert: Costly, expr: "calls:total > 0", annotations: {summary: "it is {{ $value }}"}}
  - {alert: Later, expr: "calls:total > 0", for: 10m, labels: {severity: page}}
  - {alert: Never, expr: "calls:total < 0"}
`;

/** Shard 0 with some profiles, and what query nodes need: their configuration, and what tests ask of them. */
async function begin(t) {
  const dir = scratch(t);
  const store = await new S3Fake().listen();
  t.after(() => store.close());
  const cluster = new Cluster(t, { dir, store, total: 1 });
  const rules = join(dir, 'rules.yml');
  writeFileSync(rules, RULES);
  await cluster.shard(0);
  const pusher = new Pusher(() => cluster.get('shard-0')).begin();
  await until('some profiles', 60, () => pusher.acknowledged.length >= 30);
  const total = Object.values(sums(await pusher.stop())).reduce((a, b) => a + b, 0);
  // An Alertmanager: who sent what, and when. An alert's link names the node.
  const sent = [];
  const manager = createServer(async (req, res) => {
    let body = '';
    for await (const part of req) body += part;
    for (const a of JSON.parse(body)) sent.push({ at: Date.now(), port: new URL(a.generatorURL).port, name: a.labels.alertname, startsAt: a.startsAt });
    res.end();
  });
  await new Promise((done) => manager.listen(0, '127.0.0.1', done));
  t.after(() => manager.close());
  const config = `rule_files: [${rules}]
alerting: {alertmanagers: [{static_configs: [{targets: ["127.0.0.1:${manager.address().port}"]}]}]}
`;

  const whole = async (name, path) => {
    const res = await request(`${cluster.get(name).url}/api/v1/${path}`);
    assert.equal(res.status, 200, res.body.toString());
    return JSON.parse(res.body);
  };
  const rulesOf = async (name) => (await api(cluster.get(name), 'rules')).groups[0].rules;
  return {
    cluster, config, dir, total, whole, rulesOf,
    sent: (name) => sent.filter((one) => one.port === String(cluster.get(name).port)),
    node: (i, more = config) => cluster.node(i, { config: more, args: ['--rules.alert.resend-delay=1s'] }),
    /** All rules were evaluated, later than at that time, and it has answers from there, whoever evaluates. */
    evaluated: (name, since) => until(`${name}: evaluated after ${since}`, 150, async () =>
      (await rulesOf(name)).every((r) => r.health === 'ok' && Date.parse(r.lastEvaluation) > since)),
    isHere: (name) => /rules are evaluated here/.test(cluster.get(name).err),
    waits: (name) => until(`${name} waits`, 60, () => /rules are evaluated elsewhere/.test(cluster.get(name).err)),
    hasRecorded: (name) => until(`${name} has what is recorded`, 60, async () =>
      Number((await query(cluster.get(name), 'calls:total')).result[0]?.value[1]) === total),
    /** { Costly: its activeAt, Later: ... } */
    active: async (name) => Object.fromEntries((await api(cluster.get(name), 'alerts')).alerts.map((a) => [a.labels.alertname, a.activeAt])),
  };
}

/** Each evaluation stands at its own time, a second after the one before, until `until` at least. */
async function noHole(server, since, last) {
  const found = (await query(server, `clock[${Math.ceil(Date.now() / 1000 - since)}s]`)).result;
  assert.equal(found.length, 1);
  const times = found[0].values.map(([at]) => at);
  for (const [i, at] of times.entries()) if (i) assert.equal(Math.round((at - times[i - 1]) * 1000), 1000, `a hole of ${at - times[i - 1]} s`);
  for (const [at, value] of found[0].values) assert.equal(Number(value), at);
  assert.ok(times.at(-1) > last, `${times.at(-1)} is not after ${last}`);
  return times.length;
}

/** What is the same on both: all but the times of the last evaluation. */
const states = (groups) => groups.map((g) => ({ ...g, lastEvaluation: 0, evaluationTime: 0, iterations: 0, missedIterations: 0,
  rules: g.rules.map((r) => ({ ...r, lastEvaluation: 0, evaluationTime: 0 })) }));

test('all query nodes answer what one evaluates, and another one goes on when it dies', async (t) => {
  const c = await begin(t);

  await c.node(0);
  await c.evaluated('query-0', 0);
  await c.node(1);
  await c.hasRecorded('query-0');
  await c.hasRecorded('query-1');
  await c.waits('query-1');
  await until('both alerts', 60, async () => Object.keys(await c.active('query-0')).length === 2);

  const now = Date.now();
  await c.evaluated('query-1', now);
  assert.deepEqual(states((await api(c.cluster.get('query-1'), 'rules')).groups), states((await api(c.cluster.get('query-0'), 'rules')).groups));
  assert.deepEqual((await api(c.cluster.get('query-1'), 'alerts')).alerts, (await api(c.cluster.get('query-0'), 'alerts')).alerts);
  const [elsewhere, here] = [await c.whole('query-1', 'alerts'), await c.whole('query-0', 'alerts')];
  assert.equal(elsewhere.warnings, undefined);
  assert.match(elsewhere.infos[0], /^rules are evaluated by \S+; written at 20\S+Z$/);
  assert.match(elsewhere.data.evaluatedBy, /./);
  assert.ok(Date.parse(elsewhere.data.evaluatedAt) > now - 60e3);
  assert.deepEqual([here.infos, here.data.evaluatedBy], [undefined, undefined]);
  // Filters are the same; so are the names for a Prometheus.
  const names = async (name, params) => (await c.whole(name, `rules?${params}`)).data.groups.flatMap((g) => g.rules.map((r) => [r.name, (r.alerts || []).length]));
  for (const params of ['type=alert', 'type=record', 'rule_name[]=Costly', 'exclude_alerts=true', 'group_limit=1', 'match[]={severity="page"}'])
    assert.deepEqual(await names('query-1', params), await names('query-0', params), params);
  assert.match((await request(`${c.cluster.get('query-1').url}/metrics/recorded`)).body.toString(), /^calls:total\{.*\} \d/m);

  // A node with other rules says so; one without any answers all the same.
  writeFileSync(join(c.dir, 'other.yml'), RULES.replace('10m', '11m'));
  await c.node(2, `rule_files: [${join(c.dir, 'other.yml')}]\n`);
  await c.node(3, '');
  for (const name of ['query-2', 'query-3']) {
    const answer = await c.whole(name, 'alerts');
    assert.equal(answer.data.alerts.length, 2);
    if (name === 'query-2') assert.match(answer.warnings[0], /has other rules than this node/);
    else assert.equal(answer.warnings, undefined);
    await c.cluster.kill(name);
  }

  const was = await c.active('query-0');
  await c.cluster.kill('query-0');
  const died = Date.now();
  // Nobody evaluates: it is said, and what was last known is answered.
  await until('a warning', 60, async () => {
    const { warnings, data } = await c.whole('query-1', 'alerts');
    assert.equal(data.alerts.length, 2);
    return /^rules are evaluated by \S+; the state is \d+(\.\d+)?s old/.test(warnings?.[0]);
  });
  await until('query-1 has the rules', 120, () => c.isHere('query-1'));
  await c.evaluated('query-1', died);
  t.diagnostic(`${Date.now() - died} ms`);
  assert.deepEqual(await c.active('query-1'), was);
  await until('no hole', 60, () => noHole(c.cluster.get('query-1'), now / 1000, died / 1000).catch((e) => t.diagnostic(e.message)));
  await c.node(0);
  await c.hasRecorded('query-0');
  await c.waits('query-0');
  await c.evaluated('query-0', Date.now());
  assert.deepEqual(await c.active('query-0'), was);
});

test('a query node that loses the rules goes on without them, and may have them again', async (t) => {
  const c = await begin(t);

  await c.node(0);
  await c.evaluated('query-0', 0);
  await until('both alerts', 60, async () => Object.keys(await c.active('query-0')).length === 2);
  const since = Date.now() / 1000, was = await c.active('query-0');
  await c.node(1);
  await c.waits('query-1');
  const first = c.cluster.get('query-0');
  await until('an alert was sent', 60, () => c.sent('query-0').length > 0);
  first.child.kill('SIGSTOP');
  const stopped = Date.now();
  await until('query-1 has the rules', 120, () => c.isHere('query-1'));
  await c.evaluated('query-1', stopped);
  await until('query-1 sends', 60, () => c.sent('query-1').length > 0);
  assert.deepEqual(c.sent('query-1')[0].startsAt, c.sent('query-0')[0].startsAt);
  assert.ok(c.sent('query-1').every((one) => one.name === 'Costly'));
  const before = c.sent('query-0').length;
  first.child.kill('SIGCONT');
  await until('query-0 drops them', 60, () => /another node evaluates the rules/.test(first.err));
  const dropped = Date.now();
  await c.evaluated('query-0', dropped);
  assert.equal(first.code, undefined);
  assert.equal(c.sent('query-0').length, before); // nothing is sent by a node that may have lost the rules
  await c.hasRecorded('query-0');
  assert.deepEqual(await c.active('query-0'), was);
  assert.deepEqual(await c.active('query-1'), was);
  await until('no hole', 60, () => noHole(c.cluster.get('query-1'), since, stopped / 1000).catch((e) => t.diagnostic(e.message)));

  first.err = '';
  await c.cluster.kill('query-1');
  const died = Date.now();
  await until('query-0 has the rules again', 120, () => c.isHere('query-0'));
  await c.evaluated('query-0', died);
  assert.deepEqual(await c.active('query-0'), was);
  await until('no hole', 60, () => noHole(first, since, died / 1000).catch((e) => t.diagnostic(e.message)));
});

test('without a node that evaluates, answers say so', async (t) => {
  const c = await begin(t);
  const config = 'rule_files: []\n';

  await c.node(0, config);
  const none = await c.whole('query-0', 'rules');
  assert.deepEqual([none.data.groups, none.warnings], [[], undefined]);
  // A caretaker never evaluates.
  await c.cluster.start('compact', { config: c.config, args: ['--mode=compact'] });
  for (const path of ['rules', 'alerts'])
    assert.deepEqual((await c.whole('compact', path)).warnings, ['rules do not run with --mode=compact, but on query nodes']);
});
