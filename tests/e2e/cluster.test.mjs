// A cluster on a real object store: three shards, two query nodes, and what happens when any of them, or the store, dies.
import test from 'node:test';
import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { S3, startCeph } from './ceph.mjs';
import { join, scratch, sleep, startServer, until } from './lib.mjs';
import { bucketSection, Cluster, manifestOf, Pusher, stored, sums, UNSENT } from './shards.mjs';

const WINDOW = ['--storage.tsdb.window=20s', '--storage.tsdb.out-of-order-time-window=10s'];

const sorted = (functions) => JSON.stringify(Object.entries(functions).sort());

/** The query node has all of these, but what a disk took; a busy machine's shards may be late at first, but not for long. */
async function hasAll(server, list, what) {
  const want = sums(list);
  return until(what, 60, async () => {
    const { functions, warnings } = await stored(server);
    assert.deepEqual(functions, want);
    assert.deepEqual(warnings.filter((w) => !UNSENT.test(w)), []);
    return true;
  });
}

/** Everybody has acknowledged so many. */
const enough = (pushers, n) => until(`${n} profiles of each`, 60, () => pushers.every((p) => p.acknowledged.length >= n));

test('three shards, two query nodes', async (t) => {
  const dir = scratch(t);
  const ceph = await startCeph(t, { osds: 3 });
  const cluster = new Cluster(t, { dir, store: ceph, interval: '3s', args: WINDOW });
  const s3 = new S3(ceph);
  const pushers = [];

  await t.test('query nodes have what shards acknowledged, to the last profile', async () => {
    for (let i = 0; i < 3; i++) await cluster.shard(i);
    for (let i = 0; i < 2; i++) await cluster.node(i);
    for (let i = 0; i < 3; i++) pushers.push(new Pusher(() => cluster.get(`shard-${i}`), { seed: i }).begin());
    await sleep(3000);
    await enough(pushers, 40);
    const list = (await Promise.all(pushers.map((p) => p.stop()))).flat();
    for (let i = 0; i < 2; i++) await hasAll(cluster.get(`query-${i}`), list, `query node ${i} has all`);
  });

  const everything = () => pushers.flatMap((p) => p.acknowledged);
  const push = async (i, n) => {
    const p = new Pusher(() => cluster.get(`shard-${i}`), { seed: 10 * pushers.length + i }).begin();
    pushers.push(p);
    await enough([p], n);
    return p.stop();
  };

  await t.test('a shard killed and started again goes on, and nothing is lost or doubled', async () => {
    const p = new Pusher(() => cluster.get('shard-1'), { seed: 77 }).begin();
    pushers.push(p);
    await sleep(1500);
    await enough([p], 20);
    await cluster.kill('shard-1');
    const n = p.acknowledged.length;
    await sleep(500);
    await cluster.shard(1);
    await enough([p], n + 20);
    await p.stop();
    await hasAll(cluster.get('query-0'), everything(), 'all is there');
  });

  if (!process.env.QUICK) await t.test('a shard that lost its disk comes back with all that its manifest promised', async () => {
    const list = await push(2, 200);
    await cluster.kill('shard-2');
    cluster.wipe('shard-2');
    const { throughMs } = await manifestOf(s3, 'shard-2');
    await cluster.shard(2);
    const before = pushers.slice(0, -1).flatMap((p) => p.acknowledged).filter((one) => one.pod.startsWith('shard-2'));
    const own = await stored(cluster.get('shard-2'));
    assert.equal(own.warnings.length, 1, own.warnings.join());
    assert.match(own.warnings[0], UNSENT);
    let kept = 0;
    while (kept < list.length && sorted(sums([...before, ...list.slice(0, kept)])) !== sorted(own.functions)) kept++;
    assert.equal(sorted(own.functions), sorted(sums([...before, ...list.slice(0, kept)])));
    const promised = list.filter((one) => 1000 * one.acked <= throughMs).length;
    assert.ok(kept >= promised, `${kept} of ${list.length}, ${promised} were promised`);
    t.diagnostic(`${list.length - kept} of ${list.length} profiles were lost with the disk, ${promised} were promised`);
    pushers.at(-1).acknowledged = list.slice(0, kept);
    for (let i = 0; i < 2; i++) await hasAll(cluster.get(`query-${i}`), everything(), 'what was in the bucket is there');
    await push(2, 20);
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
      args: ['--shard.name=shard-0', '--shard.total=3', '--storage.bucket.segment-interval=3s'] });
    await until('it ends', 120, () => other.code !== undefined);
    assert.notEqual(other.code, 0);
    assert.match(other.err, /shard-0 is in use/);
  });

  await t.test('an answer says which shard is late', async () => {
    await cluster.kill('shard-1');
    await until('a warning', 60, async () => (await stored(cluster.get('query-0'))).warnings.some((w) => /shard-1 is late/.test(w)));
    await cluster.shard(1);
    await hasAll(cluster.get('query-0'), everything(), 'it is there again');
  });

  await t.test('a caretaker keeps the bucket, answers nothing without a word, and ends in order', async () => {
    const keeper = await cluster.start('keeper', { args: ['--mode=compact', '--storage.bucket.poll-interval=1s'] });
    const { functions, warnings } = await stored(keeper);
    assert.deepEqual(functions, {});
    assert.match(warnings.join(), /ask a query node/);
    await until('it looked at all shards', 60, () => /caretaker/.test(keeper.err));
    await keeper.stop('SIGTERM');
    assert.equal(keeper.code, 0);
    await hasAll(cluster.get('query-0'), everything(), 'all is there');
  });

  await t.test('an object removed behind our back is named', async () => {
    const named = async () => (await manifestOf(s3, 'shard-0')).blocks[0]?.ulid;
    const p = new Pusher(() => cluster.get('shard-0'), { seed: 111 }).begin();
    pushers.push(p);
    await until('shard-0 has a block in the bucket', 60, named);
    await p.stop();
    await cluster.kill('shard-0', 'SIGTERM'); // its blocks are not joined any more
    const gone = await named();
    await s3.remove(`epi/shards/shard-0/blocks/${gone}/rollups.ldb`);
    await cluster.kill('query-0');
    cluster.wipe('query-0');
    await cluster.node(0);
    await until('a warning', 60, async () => (await stored(cluster.get('query-0'))).warnings.some((w) => w.includes(gone)));
  });
});
