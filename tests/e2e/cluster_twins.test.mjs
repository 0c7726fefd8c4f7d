// Two shards have the same profiles, as each server got them before it was a shard: sums count them twice, and answers say so until one of them is deleted.
import test from 'node:test';
import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { S3Fake } from '../s3_fake.mjs';
import { request, scratch, startServer, until } from './lib.mjs';
import { Cluster, profile, stored } from './shards.mjs';

const at = Math.floor(Date.now() / 1000) - 600;
const push = async (server, pod, name, value, time) => {
  const url = `${server.url}/api/v1/ingest?name=process_cpu&job=calls&pod=${pod}&time=${time}`;
  const answer = await request(url, { method: 'POST', body: profile(name, value) });
  assert.equal(answer.status, 200, answer.body.toString());
};

test('profiles that two shards have are named until one shard has deleted them', async (t) => {
  const fake = await new S3Fake().listen();
  t.after(() => fake.close());
  const cluster = new Cluster(t, { dir: scratch(t), store: fake, total: 2 });
  for (const i of [0, 1]) {
    const dir = cluster.place(`shard-${i}`);
    mkdirSync(dir, { recursive: true });
    const alone = await startServer(t, { dir, config: '', args: ['--web.enable-ingest'] });
    await push(alone, 'both', 'main.twice', 7, at);
    await push(alone, 'moved', 'main.moved', 1, at + i);
    await push(alone, `own-${i}`, 'main.own', 3, at);
    await alone.stop('SIGTERM');
  }
  for (const i of [0, 1]) await cluster.shard(i);
  const node = await cluster.node(0);
  const when = new Date(at * 1000).toISOString();
  const labels = 'process_cpu{job="calls", pod="both"}';
  const text = `1 series has profiles of one time in several shards, which count twice: ${labels} at ${when} in shard-0 and shard-1`;
  await until('both shards answer', 60, async () => {
    const { functions, warnings } = await stored(node);
    if (functions['main.own'] !== 6) return false;
    assert.deepEqual([functions, warnings], [{ 'main.twice': 14, 'main.moved': 2, 'main.own': 6 }, [text]]);
    return true;
  });
  assert.deepEqual((await stored(node, '{pod="both"}')).warnings, [text]);
  assert.deepEqual((await stored(node, '{pod!="both"}')).warnings, []);
  assert.deepEqual((await stored(node, '{job="calls"}', at + 0.5)).warnings, []);
  // As pprof the same is in a header.
  const params = { query: 'merge(process_cpu:samples{job="calls"})', start: at - 60, end: at + 60, format: 'pprof' };
  const pprof = await request(`${node.url}/api/v1/query?${new URLSearchParams(params)}`);
  assert.equal(pprof.status, 200);
  assert.ok(String(pprof.headers.warning).includes('1 series has profiles of one time in several shards'), String(pprof.headers.warning));
  const merged = new URLSearchParams({ service: 'calls', type: 'cpu', from: new Date((at - 60) * 1000).toISOString(), to: new Date((at + 60) * 1000).toISOString() });
  const profefe = await request(`${node.url}/api/0/profiles/merge?${merged}`);
  assert.equal(profefe.status, 200, profefe.body.toString());
  assert.ok(String(profefe.headers.warning).includes('1 series has profiles of one time in several shards'), String(profefe.headers.warning));

  const gone = new URLSearchParams({ 'match[]': labels, start: when, end: when });
  const answer = await request(`${cluster.get('shard-1').url}/api/v1/admin/tsdb/delete_series?${gone}`, { method: 'POST' });
  assert.ok(answer.status === 200 || answer.status === 204, answer.body.toString());
  await until('the query node knows', 60, async () => {
    const { functions, warnings } = await stored(node);
    if (functions['main.twice'] === 14) {
      assert.deepEqual(warnings, [text]);
      return false;
    }
    assert.deepEqual([functions, warnings], [{ 'main.twice': 7, 'main.moved': 2, 'main.own': 6 }, []]);
    return true;
  });
});
