// A query node that has not read a shard yet says so in each answer: it is ready after some time, with the shards that it has.
import test from 'node:test';
import assert from 'node:assert/strict';
import { S3Fake } from '../s3_fake.mjs';
import { scratch, until } from './lib.mjs';
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
