// A cluster on a real object store: three shards, two query nodes, and what happens when any of them, or the store, dies.
import test from 'node:test';
import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { S3, startCeph } from './ceph.mjs';
import { api, join, query, scratch, sleep, startServer, until, writeFileSync } from './lib.mjs';
import { bucketSection, Cluster, Pusher, stored, sums } from './shards.mjs';

const WINDOW = ['--storage.tsdb.window=20s', '--storage.tsdb.out-of-order-time-window=10s'];

const prefixSums = (list) => {
  const all = {};
  return list.map((one) => ({ ...(all[one.name] = (all[one.name] || 0) + one.value, all) }));
};

/** The query node has all of these, and says nothing else about it. */
async function hasAll(server, list, what) {
  const want = sums(list);
  return until(what, 20, async () => {
    const { functions, warnings } = await stored(server);
    assert.deepEqual(functions, want);
    assert.deepEqual(warnings, []);
    return true;
  });
}

test('three shards, two query nodes', { timeout: 600000 }, async (t) => {
  const dir = scratch(t);
  const ceph = await startCeph(t, { osds: 3 });
  const cluster = new Cluster(t, { dir, store: ceph, args: WINDOW });
  const s3 = new S3(ceph);
  const pushers = [];

  await t.test('query nodes have what shards acknowledged, to the last profile', async () => {
    for (let i = 0; i < 3; i++) await cluster.shard(i);
    for (let i = 0; i < 2; i++) await cluster.node(i);
    for (let i = 0; i < 3; i++) pushers.push(new Pusher(() => cluster.get(`shard-${i}`), { seed: i }).begin());
    await sleep(5000);
    const list = (await Promise.all(pushers.map((p) => p.stop()))).flat();
    assert.ok(list.length > 100, `${list.length} profiles`);
    for (let i = 0; i < 2; i++) await hasAll(cluster.get(`query-${i}`), list, `query node ${i} has all`);
  });

  const everything = () => pushers.flatMap((p) => p.acknowledged);
  const push = async (i, ms) => {
    const p = new Pusher(() => cluster.get(`shard-${i}`), { seed: 10 * pushers.length + i }).begin();
    pushers.push(p);
    await sleep(ms);
    return p.stop();
  };

  await t.test('a shard killed and started again goes on, and nothing is lost or doubled', async () => {
    const p = new Pusher(() => cluster.get('shard-1'), { seed: 77 }).begin();
    pushers.push(p);
    await sleep(1500);
    await cluster.kill('shard-1');
    await sleep(500);
    await cluster.shard(1);
    await sleep(1500);
    await p.stop();
    await hasAll(cluster.get('query-0'), everything(), 'all is there');
  });

  if (!process.env.QUICK) await t.test('a shard that lost its disk comes back with all but the last interval', async () => {
    const list = await push(2, 4000);
    const killed = Date.now() / 1000;
    await cluster.kill('shard-2');
    cluster.wipe('shard-2');
    await cluster.shard(2);
    const before = pushers.slice(0, -1).flatMap((p) => p.acknowledged);
    const steps = prefixSums([...before, ...list]).slice(before.length - 1);
    let kept;
    await until('what was in the bucket is there', 30, async () => {
      const { functions } = await stored(cluster.get('query-1'));
      kept = steps.findIndex((s) => JSON.stringify(Object.entries(s).sort()) === JSON.stringify(Object.entries(functions).sort()));
      return kept >= 0;
    });
    // an interval is 1 s; a segment takes a moment to arrive
    assert.ok(kept === list.length || list[kept].acked > killed - 4, `${kept} of ${list.length}, ${killed - list[kept]?.acked} s`);
    pushers.at(-1).acknowledged = list.slice(0, kept);
    const own = await stored(cluster.get('shard-2'));
    assert.deepEqual(own.functions, sums(everything().filter((one) => one.pod.startsWith('shard-2'))));
    await push(2, 1000);
    await hasAll(cluster.get('query-1'), everything(), 'it goes on');
  });

  await t.test('a query node that died has the same answers from an empty directory', async () => {
    await cluster.kill('query-0');
    cluster.wipe('query-0');
    await cluster.node(0);
    await hasAll(cluster.get('query-0'), everything(), 'all is there');
  });

  await t.test('the gateway and a disk of the store die, and nothing is lost', async () => {
    const p = new Pusher(() => cluster.get('shard-0'), { seed: 99 }).begin();
    pushers.push(p);
    await ceph.kill('rgw');
    await sleep(3000);
    await ceph.start('rgw');
    await ceph.kill('osd.1');
    await sleep(2000);
    await ceph.start('osd.1');
    await p.stop();
    await hasAll(cluster.get('query-0'), everything(), 'all is there');
  });

  await t.test('blocks take the place of windows, and answers stay', async () => {
    await until('a block is in the bucket', 60, async () =>
      (await s3.keys({ prefix: 'epi/shards/' })).some((key) => key.endsWith('/meta.json')));
    for (let i = 0; i < 2; i++) await hasAll(cluster.get(`query-${i}`), everything(), 'all is there');
  });

  await t.test('a second shard of one name is refused', async () => {
    mkdirSync(join(dir, 'other'));
    const other = await startServer(t, { dir: join(dir, 'other'), ready: false, config: bucketSection(ceph),
      args: ['--shard.name=shard-0', '--shard.total=3', '--storage.bucket.segment-interval=1s'] });
    await until('it ends', 60, () => other.code !== undefined);
    assert.notEqual(other.code, 0);
    assert.match(other.err, /shard-0 is in use/);
  });

  await t.test('one query node evaluates the rules, and another one when it dies', async () => {
    const rules = join(dir, 'rules.yml');
    writeFileSync(rules, `groups:
- name: cost
  interval: 1s
  rules:
  - {record: "calls:total", expr: "sum(total(merge(process_cpu:samples{job='calls'}[1h])))"}
  - {alert: Costly, expr: "calls:total > 0"}
`);
    const config = `rule_files: [${rules}]\n`;
    const evaluated = async (name) => (await api(cluster.get(name), 'rules')).groups[0]?.rules.every((r) => r.health === 'ok' &&
      Date.parse(r.lastEvaluation) > Date.now() - 20000);
    const total = Object.values(sums(everything())).reduce((a, b) => a + b, 0);
    const recorded = async (name) => {
      const { result } = await query(cluster.get(name), 'calls:total');
      return Number(result[0]?.value[1]);
    };
    await cluster.kill('query-0');
    await cluster.kill('query-1');
    await cluster.node(0, { config });
    await until('it evaluates', 30, () => evaluated('query-0'));
    await cluster.node(1, { config });
    for (const name of ['query-0', 'query-1'])
      await until(`${name} has what is recorded`, 20, async () => (await recorded(name)) === total);
    const since = (await api(cluster.get('query-0'), 'alerts')).alerts[0].activeAt;
    assert.equal(await evaluated('query-1'), false);
    await cluster.kill('query-0');
    const died = Date.now();
    await until('the other one evaluates', 60, () => evaluated('query-1'));
    assert.ok(Date.now() - died < 60000, `${Date.now() - died} ms`);
    const { alerts } = await api(cluster.get('query-1'), 'alerts');
    assert.deepEqual(alerts.map((a) => [a.labels.alertname, a.state]), [['Costly', 'firing']]);
    t.diagnostic(`${Date.now() - died} ms without rules; active since ${since}, ${alerts[0].activeAt}`);
    await cluster.node(0, { config });
    await until('query-0 has what is recorded', 20, async () => (await recorded('query-0')) === total);
  });

  await t.test('an answer says which shard is late', async () => {
    await cluster.kill('shard-1');
    await until('a warning', 30, async () => {
      const { warnings } = await stored(cluster.get('query-0'));
      return warnings.some((w) => /shard-1/.test(w));
    });
    await cluster.shard(1);
    await hasAll(cluster.get('query-0'), everything(), 'it is there again');
  });

  await t.test('a caretaker keeps the bucket, answers nothing without a word, and ends in order', async () => {
    const keeper = await cluster.start('keeper', { args: ['--mode=compact', '--storage.bucket.poll-interval=1s'] });
    const { functions, warnings } = await stored(keeper);
    assert.deepEqual(functions, {});
    assert.match(warnings.join(), /ask a query node/);
    await until('it looked at all shards', 30, () => /caretaker/.test(keeper.err));
    await keeper.stop('SIGTERM');
    assert.equal(keeper.code, 0);
    await hasAll(cluster.get('query-0'), everything(), 'all is there');
  });

  await t.test('an object removed behind our back is named', async () => {
    const gone = (await s3.keys({ prefix: 'epi/shards/shard-0/' })).find((key) => key.endsWith('rollups.ldb'));
    await s3.call('DELETE', gone);
    await cluster.kill('query-0');
    cluster.wipe('query-0');
    await cluster.node(0);
    await until('a warning', 30, async () => {
      const { warnings } = await stored(cluster.get('query-0'));
      return warnings.some((w) => w.includes(gone.split('/').at(-2)));
    });
  });
});
