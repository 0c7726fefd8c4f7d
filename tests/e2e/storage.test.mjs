// The data directory: blocks are cut and joined while the server runs, read by the tool, deleted from, copied.
import test from 'node:test';
import assert from 'node:assert/strict';
import { cpSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { isDeepStrictEqual } from 'node:util';
import { gunzipSync } from 'node:zlib';
import { api, epitool, finish, join, query, recordedCpu, request, scratch, startServer, until, existsSync } from './lib.mjs';

const NOTHING = 'scrape_configs: []\n';
const FAST = ['--web.enable-ingest', '--web.enable-admin-api', '--storage.tsdb.window=10s',
  '--storage.tsdb.out-of-order-time-window=10s'];
const SCRAPES = 40;

/** Profiles of two pods, 2 s apart, the last one now; gives the time of the first. */
async function fill(server) {
  const body = recordedCpu();
  const first = Math.floor(Date.now() / 1000) - 2 * (SCRAPES - 1);
  for (let i = 0; i < SCRAPES; i++)
    for (const pod of ['a', 'b']) {
      const res = await request(`${server.url}/api/v1/ingest?name=process_cpu&job=shop&pod=${pod}&time=${first + 2 * i}`, { method: 'POST', body });
      assert.equal(res.status, 200, res.body.toString());
    }
  return first;
}

const count = async (server, selector, at) =>
  (await query(server, `merge(cpu{${selector}}[5m])`, { time: at })).result[0]?.profiles ?? 0;
const tool = async (t, ...args) => {
  const run = await finish(t, epitool, ['tsdb', ...args]);
  assert.equal(run.code, 0, `${args}: ${run.err}${run.out}`);
  return run.out;
};

test('windows become blocks, and queries see the same before and after, and after kill -9', async (t) => {
  const dir = scratch(t);
  let server = await startServer(t, { dir, config: NOTHING, args: FAST });
  const first = await fill(server);
  const end = first + 2 * SCRAPES;
  const ask = async () => JSON.stringify((await query(server, 'total(merge by (pod) (cpu:samples{job="shop"}[5m]))', { time: end })).result);
  const before = await ask();
  assert.match(before, /"pod":"a"/);
  const blocks = await until('blocks are cut', 30, async () => {
    const s = await api(server, 'status/tsdb');
    return s.numBlocks >= 1 && s.blocks.filter((b) => b.ulid).length;
  });
  assert.ok(blocks >= 1);
  assert.equal(await ask(), before);
  assert.equal(await count(server, 'job="shop"', end), 2 * SCRAPES);
  await server.stop('SIGKILL');
  server = await startServer(t, { dir, config: NOTHING, args: FAST });
  assert.equal(await ask(), before);

  const data = join(dir, 'data');
  const list = JSON.parse(await tool(t, 'list', '--json', data));
  assert.ok(list.some((b) => b.ulid && b.samples > 0 && b.raw && !b.damaged), JSON.stringify(list));
  assert.equal(list.reduce((n, b) => n + b.rows, 0), 2 * SCRAPES);
  assert.match(await tool(t, 'verify', data), /blocks? verified, 0 findings/);
  const analysis = JSON.parse(await tool(t, 'analyze', '--json', data));
  assert.ok(analysis.bytes.rows > 0 && analysis.samples > 0);
  const text = await tool(t, 'dump', '--match={pod="a"}', data);
  assert.equal(text.match(/^# /gm).length, SCRAPES);
  await tool(t, 'dump', '--match={pod="b"}', '-o', join(dir, 'out'), data);
  const files = readdirSync(join(dir, 'out'));
  assert.equal(files.length, SCRAPES);
  assert.ok(gunzipSync(readFileSync(join(dir, 'out', files[0]))).length > 100);
});

test('verify finds damage that the server makes up for, and counts nothing of a missing directory', async (t) => {
  const dir = scratch(t), data = join(dir, 'data');
  const server = await startServer(t, { dir, config: NOTHING, args: FAST });
  await fill(server);
  await until('blocks are cut', 30, async () => (await api(server, 'status/tsdb')).numBlocks >= 1);
  const gone = await request(`${server.url}/api/v1/admin/tsdb/delete_series?match[]=${encodeURIComponent('{pod="a"}')}`, { method: 'POST' });
  assert.equal(gone.status, 204, gone.body.toString());
  await server.stop();
  const verify = (where) => finish(t, epitool, ['tsdb', 'verify', where]);
  const ulid = readdirSync(join(data, 'blocks'))[0];
  for (const name of ['ids', 'losses', 'losses.copy', 'inventory', 'inventory.copy', `blocks/${ulid}/deleted`, `blocks/${ulid}/deleted.copy`]) {
    const file = join(data, name);
    if (!existsSync(file)) {
      assert.match(name, /^losses/);
      continue;
    }
    const whole = readFileSync(file), harmed = Buffer.from(whole);
    harmed[5] ^= 1; // the end may be spare
    writeFileSync(file, harmed);
    const run = await verify(data);
    assert.equal(run.code, 1, `${name}: ${run.out}${run.err}`);
    assert.match(run.out, new RegExp(`${name}: .*\\n(.*\\n)*\\d+ blocks? verified, 1 finding\\n$`));
    assert.doesNotMatch(run.err, /set aside/);
    assert.deepEqual(readFileSync(file), harmed);
    writeFileSync(file, whole);
  }
  assert.equal((await verify(data)).code, 0);
  const missing = await verify(join(dir, 'none'));
  assert.deepEqual([missing.code, missing.out, missing.err], [1, '', `epitool: error: ${join(dir, 'none')}: no such directory\n`]);
});

test('a snapshot is a data directory; deleted series are gone at once and after a restart', async (t) => {
  const dir = scratch(t);
  let server = await startServer(t, { dir, config: NOTHING, args: FAST });
  const first = await fill(server);
  const end = first + 2 * SCRAPES;
  await until('blocks are cut', 30, async () => (await api(server, 'status/tsdb')).numBlocks >= 1);
  await until('two lists of blocks say the same, as no block is made between them', 30, async () => {
    const [listed, blocks] = [(await api(server, 'status/tsdb')).blocks.filter((b) => b.ulid), (await api(server, 'status/tsdb/blocks')).blocks];
    return isDeepStrictEqual(blocks, listed.map((b) => ({ ulid: b.ulid, minTime: b.minTime, maxTime: b.maxTime,
      stats: { numSamples: b.numSamples, numSeries: b.numSeries }, compaction: { level: b.level }, version: 1 })));
  });
  const { name } = await api(server, 'admin/tsdb/snapshot', {}, { method: 'POST' });
  const wrong = await request(`${server.url}/api/v1/admin/tsdb/delete_series?match[]=cpu:samples`, { method: 'POST' });
  assert.equal(wrong.status, 400);
  assert.match(wrong.body.toString(), /names a profile type: profiles are deleted whole/);
  assert.equal((await request(`${server.url}/api/v1/admin/tsdb/delete_series`, { method: 'POST' })).status, 400);
  const gone = await request(`${server.url}/api/v1/admin/tsdb/delete_series?match[]=${encodeURIComponent('{pod="a"}')}`, { method: 'POST' });
  assert.equal(gone.status, 204, gone.body.toString());
  assert.equal(await count(server, 'job="shop"', end), SCRAPES);
  assert.equal(await count(server, 'pod="a"', end), 0);
  await server.stop();
  server = await startServer(t, { dir, config: NOTHING, args: FAST });
  assert.equal(await count(server, 'job="shop"', end), SCRAPES);

  const copy = join(dir, 'data', 'snapshots', name);
  assert.ok(existsSync(copy));
  const other = scratch(t);
  cpSync(copy, join(other, 'data'), { recursive: true });
  const second = await startServer(t, { dir: other, config: NOTHING, args: FAST });
  assert.equal(await count(second, 'job="shop"', end), 2 * SCRAPES);
});

test('administration wants its flag', async (t) => {
  const dir = scratch(t);
  const server = await startServer(t, { dir, config: NOTHING });
  const res = await request(`${server.url}/api/v1/admin/tsdb/snapshot`, { method: 'POST' });
  assert.equal(res.status, 403);
});
