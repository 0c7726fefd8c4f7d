// What a query node does not know of shards it says in each answer: those that it has not read yet, those that are new, or that there are none.
import test from 'node:test';
import assert from 'node:assert/strict';
import { S3Fake } from '../s3_fake.mjs';
import { api, request, scratch, sleep, until } from './lib.mjs';
import { Cluster, Pusher, stored, sums } from './shards.mjs';

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

// From and to in "shard a is being read: its profiles from A to B and from C to D are ...", in ms.
const spansOf = (warning) => [...warning.matchAll(/from (\S+) to (\S+)/g)].map((m) => [Date.parse(m[1]), Date.parse(m[2])]);

test('a new query node is ready with blocks, names what is not read yet, and reads it', async (t) => {
  const fake = await new S3Fake().listen();
  t.after(() => fake.close());
  const cluster = new Cluster(t, { dir: scratch(t), store: fake, total: 2, args: ['--storage.tsdb.window=10s', '--storage.tsdb.out-of-order-time-window=10s'] });
  const names = ['shard-0', 'shard-1'];
  const pushers = [];
  for (let i = 0; i < 2; i++) {
    await cluster.shard(i);
    pushers.push(new Pusher(() => cluster.get(`shard-${i}`), { seed: i + 1 }).begin(20));
  }
  const manifest = (name) => JSON.parse(fake.touch('GET', `epi/shards/${name}/manifest`).toString());
  await until('both have blocks, and windows of several segments', 120, () => names.every((name) => {
    const m = manifest(name);
    return m.blocks.length >= 2 && m.windows.length >= 2 && m.windows.every((w) => w.segments.length >= 2);
  }));
  const acknowledged = (await Promise.all(pushers.map((p) => p.stop()))).flat();
  for (const name of names) await cluster.kill(name, 'SIGTERM');
  const heads = names.flatMap((name) => manifest(name).windows);
  assert.ok(heads.length >= 4);
  const whole = await cluster.node(0);
  await until('a node with time has all', 60, async () => !(await stored(whole)).warnings.length);
  assert.deepEqual((await stored(whole)).functions, sums(acknowledged));

  // Segments do not come.
  const hold = names.map((name) => fake.obey('POST', '/fault', Buffer.from(JSON.stringify({ method: 'GET', key: `epi/shards/${name}/head/`, count: -1, delay: -1 }))).id);
  const began = performance.now();
  const node = await cluster.node(1);
  t.diagnostic(`ready after ${((performance.now() - began) / 1000).toFixed(1)} s`);
  assert.ok(hold.every(Boolean));
  const { functions, warnings } = await stored(node);
  assert.equal(warnings.length, 2, JSON.stringify(warnings));
  for (const [i, name] of names.entries()) assert.match(warnings[i], new RegExp(`^shard ${name} is being read: its profiles from .* are not all here yet \\(0% read\\)$`));
  // What is answered, and what is named, is all; and nothing is both, as no segment was read.
  const named = acknowledged.filter((one) => warnings.some((w) => w.startsWith(`shard ${one.pod.replace(/-\d+$/, '')} `)
    && spansOf(w).some(([from, to]) => one.at * 1000 > from && one.at * 1000 <= to)));
  assert.ok(named.length > 0 && named.length < acknowledged.length);
  assert.deepEqual(functions, sums(acknowledged.filter((one) => !named.includes(one))));
  // Who asks for the time of blocks is warned of nothing.
  const first = Math.min(...heads.map((w) => Number(BigInt(w.start_ns) / 1000000n))) / 1000;
  const old = async (server) => {
    const params = { query: 'flat(merge(process_cpu:samples{job="calls"}))', start: first - 3600, end: first - 1 };
    return JSON.parse((await request(`${server.url}/api/v1/query?${new URLSearchParams(params)}`)).body);
  };
  const [here, there] = [await old(node), await old(whole)];
  assert.equal(here.warnings, undefined);
  assert.ok(here.data.result.length > 0);
  assert.deepEqual(here.data.result, there.data.result);
  const shards = (await api(node, 'status/cluster')).shards;
  for (const shard of shards) {
    assert.equal(shard.state, 'reading');
    assert.equal(shard.reading.read_bytes, 0);
    assert.equal(shard.reading.segments, manifest(shard.name).windows.reduce((n, w) => n + w.segments.length, 0));
  }
  // It ends at once, whatever it reads.
  const ends = performance.now();
  await cluster.kill('query-1', 'SIGTERM');
  assert.ok(performance.now() - ends < 10000, `${performance.now() - ends} ms`);

  // Segments come slowly.
  fake.faults = [];
  for (const name of names) fake.obey('POST', '/fault', Buffer.from(JSON.stringify({ method: 'GET', key: `epi/shards/${name}/head/`, count: -1, delay: 100 })));
  const slow = await cluster.node(1);
  const sum = (by) => Object.values(by).reduce((n, v) => n + v, 0);
  let before = 0;
  await until('it has read all', 120, async () => {
    const answer = await stored(slow);
    assert.ok(sum(answer.functions) >= before, 'what was answered is answered');
    before = sum(answer.functions);
    if (!answer.warnings.length) return true;
    for (const w of answer.warnings) assert.match(w, /^shard shard-[01] is being read: /);
    return false;
  });
  assert.deepEqual((await stored(slow)).functions, sums(acknowledged));
  for (const shard of (await api(slow, 'status/cluster')).shards) {
    assert.equal(shard.state, 'stopped');
    assert.equal(shard.reading, undefined);
  }
});
