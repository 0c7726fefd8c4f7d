// A shard and its query node, while the clock of either makes steps: the query node has all that the shard acknowledged.
import test from 'node:test';
import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { S3Fake } from '../s3_fake.mjs';
import { join, oneSampleProfile, request, scratch, until } from './lib.mjs';
import { Cluster } from './shards.mjs';
import { DAY, HOLD, HOUR, S, steppedClock } from './stepped.mjs';

const MINUTE = 60n * S;
const FUTURE = /^profiles of the future, up to |^shard shard-0: profiles of the future, up to /;

test('clocks of a shard and of its query node', async (t) => {
  const dir = scratch(t), store = await new S3Fake().listen();
  t.after(() => store.close());
  const clocks = new Map();
  for (const name of ['shard-0', 'query-0']) {
    mkdirSync(join(dir, name), { recursive: true });
    clocks.set(name, steppedClock(join(dir, name)));
  }
  const cluster = new Cluster(t, { dir, store, total: 1, args: ['--storage.tsdb.retention.time=20y'], own: (name) => clocks.get(name).program });
  const shard = clocks.get('shard-0'), node = clocks.get('query-0');
  let acknowledged = 0, skewMs = 0;
  /** As senders do: a shard whose machine slept for longer than its lease wants to be asked again. */
  const push = async () => {
    await until('it is acknowledged', 60, async () => {
      const res = await request(`${cluster.get('shard-0').url}/api/v1/ingest?name=pushed&job=p`, { method: 'POST', body: oneSampleProfile(1) });
      if (res.status !== 503 || !/has not confirmed its lease/.test(res.body)) assert.equal(res.status, 200, res.body.toString());
      return res.status === 200;
    });
    acknowledged++;
  };
  const agree = (what) => until(`${what}: the query node has all`, 60, async () => {
    const q = new URLSearchParams({ query: 'merge(pushed[4000d])', time: Date.now() / 1000 + 200 * 86400 });
    const answer = JSON.parse((await request(`${cluster.get('query-0').url}/api/v1/query?${q}`)).body);
    assert.equal(answer.status, 'success', answer.error);
    assert.deepEqual((answer.warnings ?? []).filter((text) => !FUTURE.test(text)), []);
    assert.equal(answer.data.result[0].profiles, acknowledged);
    return true;
  });
  await cluster.shard(0);
  await push();
  await cluster.node(0);
  await agree('at first');

  // A store refuses requests of clocks that are a quarter of an hour off, as every S3 does: meanwhile profiles wait.
  for (const ns of [10n * MINUTE, -10n * MINUTE]) {
    shard.step(ns);
    await push();
    await agree(`the shard's clock is ${ns / MINUTE} minutes off`);
    shard.step(-ns);
    node.step(ns);
    await push();
    await agree(`the query node's clock is ${ns / MINUTE} minutes off`);
    node.step(-ns);
  }
  for (const ns of [50n * MINUTE, -3n * HOUR, 26n * HOUR, -40n * DAY]) {
    for (const clock of [shard, node]) {
      clock.step(ns);
      await push();
      clock.step(-ns);
      await push();
      await agree(`${clock === shard ? 'the shard' : 'the query node'} was ${ns / MINUTE} minutes off`);
    }
  }
  // All clocks, that of the store too, and they stay so.
  const all = async (ns) => {
    for (const clock of [shard, node]) {
      clock.step(ns);
      clock.pass(HOLD);
    }
    skewMs += Number((ns + HOLD) / 1000000n);
    await request(`${store.control}/clock`, { method: 'POST', body: JSON.stringify({ skew: skewMs }) });
  };
  await all(16n * DAY);
  await push();
  await agree('16 days later');
  await cluster.kill('query-0');
  await cluster.node(0);
  await push();
  await agree('the query node began anew');
  await cluster.kill('shard-0');
  await all(-16n * DAY);
  await cluster.shard(0);
  await push();
  await agree('the shard began behind what it has');
  await all(0n);
  await push();
  await agree('what held was taken over');
});
