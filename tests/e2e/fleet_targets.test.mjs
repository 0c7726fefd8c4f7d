// Targets on a query node: those of all shards, by the API; a shard that has put no list, or whose list is damaged, is named.
import test from 'node:test';
import assert from 'node:assert/strict';
import { gunzipSync, gzipSync } from 'node:zlib';
import { S3Fake } from '../s3_fake.mjs';
import { api, request, scratch, startServer, until } from './lib.mjs';
import { Cluster } from './shards.mjs';

/** The bytes of an object; undefined if it is not there. */
const object = (fake, key) => fake.touch('GET', '').some((o) => o.key === key) ? fake.touch('GET', key) : undefined;
const full = async (server, path) => JSON.parse((await request(`${server.url}/api/v1/${path}`)).body);

test('a query node lists what each shard scrapes', async (t) => {
  const fake = await new S3Fake().listen();
  t.after(() => fake.close());
  // Servers that the shards scrape: pprof endpoints of their own.
  const scraped = [];
  for (let i = 0; i < 4; i++) scraped.push(await startServer(t, { dir: scratch(t), config: 'scrape_configs: []\n' }));
  const addresses = scraped.map((s) => new URL(s.url).host);
  // Nobody listens there; whatever ports the servers have, each shard has some of these.
  const closed = [1, 2, 3, 4, 5, 6, 7, 8].map((port) => `127.0.0.1:${port}`);
  const config = `scrape_configs:
  - job_name: fleet
    scrape_interval: 2s
    relabel_configs: [{source_labels: [drop], regex: "yes", action: drop}]
    static_configs:
      - targets: [${[...addresses, ...closed].map((a) => JSON.stringify(a)).join(', ')}]
      - targets: ["10.9.9.9:1"]
        labels: {drop: "yes"}
  - job_name: files
    file_sd_configs: [{files: [none-*.json]}]
`;
  const cluster = new Cluster(t, { dir: scratch(t), store: fake, total: 2, config });
  const shards = [await cluster.shard(0), await cluster.shard(1)];
  const old = { key: 'epi/targets/shard-1' };
  const node = await cluster.node(0);

  await until('both have scraped', 60, async () => {
    const lists = await Promise.all(shards.map((s) => api(s, 'targets')));
    return lists.every((l) => l.activeTargets.every((x) => x.scrapes > 1));
  });
  const before = new Date().toISOString();
  const lists = await until('both have put their lists since', 90, () => {
    const texts = [0, 1].map((i) => object(fake, `epi/targets/shard-${i}`)).map((b) => b && gunzipSync(b).toString());
    return texts.every((text) => text && JSON.parse(text.split('\n')[0]).time > before) && texts;
  });
  assert.match(lists[0], /^\{"time":"\S+","leftOut":0,"pools":\[\{"name":"files",/);

  const answer = await until('the node has read them', 60, async () => {
    const a = await full(node, 'targets');
    return a.data.shards?.length === 2 && a.data.shards.every((s) => s.time > before) && a;
  });
  assert.deepEqual([answer.warnings, answer.infos], [undefined, undefined]);
  const rows = (l) => l.map((x) => [x.shard, x.discoveredLabels.__address__, x.profile, x.health, x.scrapePool].join(' ')).sort();
  const want = [];
  for (const [i, shard] of shards.entries()) {
    const own = (await api(shard, 'targets')).activeTargets;
    assert.ok(own.length && own.every((x) => x.shard === undefined));
    want.push(...rows(own.map((x) => ({ ...x, shard: `shard-${i}` }))));
  }
  assert.deepEqual(rows(answer.data.activeTargets), want.sort());
  assert.equal(new Set(answer.data.activeTargets.map((x) => x.discoveredLabels.__address__)).size, 12);
  const down = answer.data.activeTargets.filter((x) => closed.includes(x.discoveredLabels.__address__));
  assert.ok(down.every((x) => x.health === 'down' && /refused/.test(x.lastError)));
  // What another shard scrapes is no dropped target of the fleet, and what relabelling drops is there once.
  assert.deepEqual(answer.data.droppedTargets.map((x) => [x.discoveredLabels.__address__, x.reason]), [['10.9.9.9:1', undefined]]);
  assert.deepEqual(answer.data.droppedTargetCounts, { files: 0, fleet: 1 });
  assert.deepEqual(answer.data.shards.map((s) => [s.shard, s.leftOut]), [['shard-0', 0], ['shard-1', 0]]);
  assert.equal(answer.data.shards[0].targets + answer.data.shards[1].targets, want.length);
  assert.deepEqual(await api(node, 'scrape_pools'), { scrapePools: ['files', 'fleet'] });
  assert.deepEqual((await api(node, 'targets', { scrapePool: 'files' })).activeTargets, []);
  await until('their types are known', 60, async () => {
    const types = await api(node, 'targets/metadata', { metric: 'process_cpu' });
    return new Set(types.map((x) => x.target.instance)).size === 4;
  });

  await t.test('a shard without a list is named, and so is one whose list is damaged', async () => {
    for (const name of ['shard-0', 'shard-1']) await cluster.kill(name);
    fake.touch('DELETE', 'epi/targets/shard-1');
    fake.touch('PUT', 'epi/targets/shard-0', gzipSync('{"time":"2026-01-01T00:00:00Z","pools":[]}\n[]\n'));
    const second = await cluster.node(1);
    const said = await full(second, 'targets');
    assert.deepEqual(said.warnings, ['the targets of shard shard-0 are missing: targets: line 2: not an object',
      'the targets of shard shard-1 are missing: it has put no list into the bucket yet']);
    assert.deepEqual([said.data.activeTargets, said.data.shards], [[], undefined]);
  });
});
