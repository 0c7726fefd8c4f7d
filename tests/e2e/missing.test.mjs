// Files taken from the data directory, or put into the wrong place, are named in every answer that touches their time, after
// each start; and a second push does not replace an acknowledged one.
import test from 'node:test';
import assert from 'node:assert/strict';
import { copyFileSync, rmSync } from 'node:fs';
import { cpuProfile } from '../browser/pprof.mjs';
import { api, epitool, finish, join, query, recordedCpu, request, scratch, startServer, until } from './lib.mjs';

const NOTHING = 'scrape_configs: []\n';
// Blocks of one window each: a join would replace the blocks that the test harms.
const FAST = ['--web.enable-ingest', '--storage.tsdb.window=10s', '--storage.tsdb.out-of-order-time-window=20s',
  '--storage.tsdb.max-block-duration=10s'];

/** Two different profiles. */
const profiles = () => [recordedCpu(), cpuProfile({ functions: [{ name: 'main' }], samples: [{ stack: [0], value: 1 }] })];

const push = (server, body, params) =>
  request(`${server.url}/api/v1/ingest?${new URLSearchParams({ name: 'process_cpu', job: 'shop', ...params })}`, { method: 'POST', body });

/** The whole answer, with its warnings. */
async function ask(server, text, params) {
  const res = await request(`${server.url}/api/v1/query?${new URLSearchParams({ query: text, ...params })}`);
  assert.equal(res.status, 200, res.body.toString());
  return JSON.parse(res.body);
}

test('the same series and time twice: both are there, each once, before and after kill -9', async (t) => {
  const dir = scratch(t), [first, second] = profiles();
  let server = await startServer(t, { dir, config: NOTHING, args: ['--web.enable-ingest'] });
  const time = Math.floor(Date.now() / 1000) - 5;
  const stored = async (pod) => (await query(server, `merge(cpu{job="shop",pod="${pod}"}[1m])`, { time: time + 1 })).result[0].profiles;
  assert.equal((await push(server, first, { pod: 'a', time })).status, 200);
  for (let start = 0; start < 2; start++) {
    const again = await push(server, second, { pod: 'a', time });
    assert.equal(again.status, 200);
    assert.match(JSON.parse(again.body).data.time, /\.000000001Z$/);
    // The same bytes again are no other profile: a sender that did not see the answer may ask again.
    assert.equal((await push(server, first, { pod: 'a', time })).status, 200);
    const both = await Promise.all([push(server, first, { pod: `b${start}`, time }), push(server, second, { pod: `b${start}`, time })]);
    assert.deepEqual(both.map((r) => r.status), [200, 200]);
    assert.equal(await stored('a'), 2);
    assert.equal(await stored(`b${start}`), 2);
    await server.stop('SIGKILL');
    server = await startServer(t, { dir, config: NOTHING, args: ['--web.enable-ingest'] });
  }
  assert.equal(await stored('a'), 2);
  assert.equal(await stored('b0'), 2);
});

test('blocks with other files, or none, are said by every query of their time, until a person accepts it', async (t) => {
  const dir = scratch(t), data = join(dir, 'data'), [body] = profiles();
  let server = await startServer(t, { dir, config: NOTHING, args: FAST });
  const now = Math.floor(Date.now() / 1000), end = now - now % 10;
  for (let i = 50; i > 0; i--)
    assert.equal((await push(server, body, { pod: 'a', time: end - i })).status, 200);
  const blocks = await until('blocks are cut', 30, async () => {
    const s = (await api(server, 'status/tsdb')).blocks.filter((b) => b.ulid);
    return s.length >= 2 && s;
  });
  await server.stop('SIGTERM');
  const [a, b] = blocks.map((x) => join(data, 'blocks', x.ulid));
  assert.equal((await finish(t, epitool, ['tsdb', 'verify', data])).code, 0);

  const cases = {
    'rows.ldb of another block': () => copyFileSync(join(b, 'rows.ldb'), join(a, 'rows.ldb')),
    'rollups.ldb of another block': () => copyFileSync(join(b, 'rollups.ldb'), join(a, 'rollups.ldb')),
    'a directory that is gone': () => rmSync(a, { recursive: true }),
  };
  for (const [what, harm] of Object.entries(cases)) {
    harm();
    for (let start = 0; start < 2; start++) {
      const verified = await finish(t, epitool, ['tsdb', 'verify', data]);
      assert.equal(verified.code, 1, `${what}: ${verified.out}${verified.err}`);
      server = await startServer(t, { dir, config: NOTHING, args: FAST });
      const all = await ask(server, 'count_over_time(cpu{job="shop"}[10m])', { time: end });
      assert.ok(all.warnings?.some((w) => /^loss \d+: /.test(w)), `${what}, start ${start}: ${JSON.stringify(all)}`);
      const later = await ask(server, 'count_over_time(cpu{job="shop"}[10s])', { time: end });
      assert.equal(later.warnings, undefined, `${what}, start ${start}`);
      await server.stop(start ? 'SIGTERM' : 'SIGKILL');
    }
  }
  const accepted = await finish(t, epitool, ['tsdb', 'repair', '--accept', data]);
  assert.equal(accepted.code, 0, accepted.out + accepted.err);
  for (let start = 0; start < 2; start++) {
    server = await startServer(t, { dir, config: NOTHING, args: FAST });
    assert.equal((await ask(server, 'count_over_time(cpu{job="shop"}[10m])', { time: end })).warnings, undefined);
    await server.stop('SIGTERM');
  }
  assert.equal((await finish(t, epitool, ['tsdb', 'verify', data])).code, 0);
});
