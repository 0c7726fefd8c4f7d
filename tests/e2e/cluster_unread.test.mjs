// What a query node does not know of shards it says in each answer: those that it has not read yet, those that are new, or that there are none.
import test from 'node:test';
import assert from 'node:assert/strict';
import { S3Fake } from '../s3_fake.mjs';
import { scratch, sleep, until } from './lib.mjs';
import { Cluster, Pusher, stored } from './shards.mjs';

test('a shard whose first look goes on is named', async (t) => {
  const fake = await new S3Fake().listen();
  t.after(() => fake.close());
  const cluster = new Cluster(t, { dir: scratch(t), store: fake, total: 2 });
  const pushers = [];
  for (let i = 0; i < 2; i++) {
    await cluster.shard(i);
    pushers.push(new Pusher(() => cluster.get(`shard-${i}`)).begin());
  }
  await until('both have segments in the bucket', 60, () => {
    const keys = fake.touch('GET', '').map((o) => o.key);
    return [0, 1].every((i) => keys.some((key) => key.startsWith(`epi/shards/shard-${i}/head/`)));
  });
  for (const p of pushers) await p.stop();
  const slow = fake.obey('POST', '/fault', Buffer.from(JSON.stringify({ method: 'GET', key: 'epi/shards/shard-1/', count: -1, delay: -1 })));
  assert.ok(slow.id);
  const node = await cluster.node(0);
  const unread = 'shards are missing that are not read yet: 1 of 2, the first is shard-1';
  await until('the other shard answers, and this one is named', 60, async () => {
    const { functions, warnings } = await stored(node);
    assert.ok(warnings.includes(unread), JSON.stringify(warnings));
    return Object.keys(functions).length;
  });
  fake.faults = [];
  await until('all is there', 300, async () => {
    const answer = await stored(node);
    return !answer.warnings.some((w) => w.startsWith('shards are missing'));
  });
});

test('from its first profile on, a new shard is answered or its lack is said', async (t) => {
  const fake = await new S3Fake().listen();
  t.after(() => fake.close());
  const cluster = new Cluster(t, { dir: scratch(t), store: fake, total: 2 });
  const node = await cluster.node(0);
  assert.deepEqual((await stored(node)).warnings, ['the bucket has no shards: no profiles were published yet']);
  for (const i of [0, 1]) {
    await cluster.shard(i);
    const pusher = new Pusher(() => cluster.get(`shard-${i}`), { job: `job-${i}` });
    await pusher.push();
    const acknowledged = performance.now();
    // News of a shard may be as old as two intervals and a second; the list of shards, two polls and a second. Both are 3 s here.
    const silent = [];
    await until('it is answered', 60, async () => {
      const asked = performance.now() - acknowledged;
      const { functions, warnings } = await stored(node, `{job="job-${i}"}`);
      if (Object.keys(functions).length) return true;
      if (!warnings.length) silent.push(asked);
      await sleep(20);
    });
    assert.deepEqual(silent.filter((ms) => ms > 3000), []);
    t.diagnostic(`shard-${i} was answered after ${((performance.now() - acknowledged) / 1000).toFixed(1)} s, ${silent.length} answers before had no word of it`);
  }
});
