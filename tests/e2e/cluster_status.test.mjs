// What a shard and a query node say of their bucket, a real object store: the API, in the form that the page's tests
// use, and metrics.
import test from 'node:test';
import assert from 'node:assert/strict';
import { QUERY_NODE, SHARD } from '../browser/cluster_answer.mjs';
import { startCeph } from './ceph.mjs';
import { api, request, scratch, startServer, until } from './lib.mjs';
import { Cluster, Pusher } from './shards.mjs';

const status = (server) => api(server, 'status/cluster');
const metrics = async (server) => (await request(`${server.url}/metrics`)).body.toString().split('\n');

/** The keys of an answer are those of the example, but for those that are there only at times. */
function sameKeys(answer, example, atTimes = []) {
  const keys = (o) => Object.keys(o).filter((k) => !atTimes.includes(k)).sort();
  assert.deepEqual(keys(answer), keys(example));
}

test('a bucket, its shards and its costs are shown', async (t) => {
  const alone = await startServer(t, { dir: scratch(t), config: 'scrape_configs: []\n' });
  assert.deepEqual(await status(alone), { mode: 'server' });
  assert.ok(!(await metrics(alone)).some((line) => /^epimetheus_(bucket_requests_cost|cluster_shards) [1-9]/.test(line)));

  const store = await startCeph(t, { osds: 1 });
  const cluster = new Cluster(t, { dir: scratch(t), store, total: 1 });
  const shard = await cluster.shard(0);
  const node = await cluster.node(0);
  const pusher = new Pusher(() => shard).begin();

  await t.test('a shard', async () => {
    const is = await until('segments are in the bucket', 60, async () => {
      const answer = await status(shard);
      return answer.shard.segments > 0 && answer.shard.through && answer.shard.state === 'running' && answer;
    });
    sameKeys(is, SHARD, ['cache']);
    sameKeys(is.shard, SHARD.shard, ['last_error']);
    sameKeys(is.cost, SHARD.cost);
    sameKeys(is.requests, QUERY_NODE.requests);
    sameKeys(is.requests.put, SHARD.requests.put);
    assert.equal(is.mode, 'server');
    assert.equal(is.bucket, `${store.endpoint}/${store.bucket}/epi`);
    assert.equal(is.shard.name, 'shard-0');
    assert.ok(is.shard.generation > 0 && is.shard.bytes > 0 && is.shard.lag_seconds < 60, JSON.stringify(is.shard));
    assert.ok(is.requests.put.requests > 1 && is.requests.put.sent_bytes > 0 && is.cost.since_start > 0 && is.cost.month > 0);
    const lines = await metrics(shard);
    assert.ok(lines.includes('epimetheus_publish_state{state="running"} 1'));
    assert.ok(lines.some((line) => /^epimetheus_bucket_requests_cost 0\.\d|^epimetheus_bucket_requests_cost \d.*e-/.test(line)));
  });

  await t.test('a query node', async () => {
    const is = await until('the shard is followed', 60, async () => {
      const answer = await status(node);
      return answer.shards.some((s) => s.state === 'running' && s.segments > 0) && answer;
    });
    sameKeys(is, QUERY_NODE);
    sameKeys(is.cache, QUERY_NODE.cache, ['hit_rate', 'off']);
    sameKeys(is.cost, QUERY_NODE.cost, ['requests_per_day']);
    const [one] = is.shards.filter((s) => s.name === 'shard-0');
    sameKeys(one, QUERY_NODE.shards[0]);
    assert.equal(is.mode, 'query');
    assert.ok(one.windows >= 1 && one.segments >= 1 && one.bytes > 0 && one.host && !one.late, JSON.stringify(one));
    const lines = await metrics(node);
    assert.ok(lines.includes('epimetheus_cluster_shard_late{shard="shard-0"} 0'));
    assert.ok(lines.some((line) => /^epimetheus_cluster_shard_lag_seconds\{shard="shard-0"\} \d/.test(line)));
  });

  await pusher.stop();
  await t.test('a shard that was killed is late; one that stopped is not', async () => {
    await cluster.kill('shard-0');
    const late = await until('it is late', 60, async () => {
      const [one] = (await status(node)).shards.filter((s) => s.name === 'shard-0');
      return one.late && one;
    });
    sameKeys(late, QUERY_NODE.shards[1]);
    assert.equal(late.state, 'late');
    assert.ok((await metrics(node)).includes('epimetheus_cluster_shard_late{shard="shard-0"} 1'));
    const again = await cluster.shard(0);
    await new Pusher(() => again).push();
    await until('it is there again', 60, async () =>
      (await status(node)).shards.some((s) => s.name === 'shard-0' && s.state === 'running'));
    await cluster.kill('shard-0', 'SIGTERM');
    const stopped = await until('it stopped', 60, async () => (await status(node)).shards.find((s) => s.name === 'shard-0' && s.stopped));
    sameKeys(stopped, QUERY_NODE.shards[3]);
    assert.equal(stopped.state, 'stopped');
    const lines = await metrics(node);
    assert.ok(lines.includes('epimetheus_cluster_shard_late{shard="shard-0"} 0'));
    assert.ok(lines.includes('epimetheus_cluster_shard_lag_seconds{shard="shard-0"} NaN'));
  });

  await t.test('the senders of a shard', async () => { // a shard that ends writes them once more
    const [is] = await until('they are shown', 120, async () => {
      const { senders } = await api(node, 'senders');
      return senders.length > 0 && senders;
    });
    assert.deepEqual([is.shard, is.address, is.path, is.job, is.types, is.profiles],
      ['shard-0', '127.0.0.1', '/api/v1/ingest', 'calls', ['process_cpu'], 1]);
  });
});
