// Missing data are named in every format: a block cannot be opened, and the API, Pyroscope's and epitool are asked.
import test from 'node:test';
import assert from 'node:assert/strict';
import { readdirSync, readFileSync, truncateSync } from 'node:fs';
import { api, epitool, execFileSync, finish, join, recordedCpu, request, scratch, startServer, until, writeFileSync } from './lib.mjs';
import { faults } from './schema.mjs';

const FAST = ['--web.enable-ingest', '--storage.tsdb.window=10s', '--storage.tsdb.out-of-order-time-window=10s'];
const SCRAPES = 40;
// What an older Go records says nowhere on which line functions start, and such a profile is refused.
const formats = ['json', 'pprof', 'folded', 'speedscope', 'text', 'pgo'];
const schema = JSON.parse(readFileSync(new URL('./speedscope.schema.json', import.meta.url)));

/** A server over profiles of which one block is damaged; gives the time of the last one, too. */
async function damaged(t, dir) {
  const body = recordedCpu();
  const first = Math.floor(Date.now() / 1000) - 2 * (SCRAPES - 1);
  let server = await startServer(t, { dir, config: 'scrape_configs: []\n', args: FAST });
  for (let i = 0; i < SCRAPES; i++) {
    const res = await request(`${server.url}/api/v1/ingest?name=process_cpu&job=shop&time=${first + 2 * i}`, { method: 'POST', body });
    assert.equal(res.status, 200, res.body.toString());
  }
  await until('a block is cut', 30, async () => (await api(server, 'status/tsdb')).blocks.some((b) => b.ulid));
  await server.stop();
  const blocks = join(dir, 'data', 'blocks');
  const block = join(blocks, readdirSync(blocks).sort()[0]);
  for (const file of readdirSync(block)) if (file !== 'meta.json') truncateSync(join(block, file), 10);
  server = await startServer(t, { dir, config: 'scrape_configs: []\n', args: FAST });
  return { server, end: first + 2 * SCRAPES };
}

/** The texts of a Warning header, with the codes in front. */
const texts = (header = '') => [...header.matchAll(/(\d{3}) - "((?:\\.|[^"\\])*)"/g)].map((m) => `${m[1]} ${m[2].replace(/\\(.)/g, '$1')}`);

const tool = (...args) => execFileSync('go', ['tool', 'pprof', ...args], { stdio: ['ignore', 'pipe', 'ignore'] }).toString();

test('warnings reach every format', async (t) => {
  const dir = scratch(t);
  const { server, end } = await damaged(t, dir);
  const params = { query: 'merge(cpu{job="shop"})', start: end - 600, end };
  const ask = (more) => request(`${server.url}/api/v1/query?${new URLSearchParams({ ...params, ...more })}`);
  const json = await ask({});
  const { warnings } = JSON.parse(json.body);
  assert.ok(warnings?.length, json.body.toString().slice(0, 300));
  const want = warnings.map((w) => `299 ${w.length > 256 ? `${w.slice(0, 253)}...` : w}`);
  const line = `Warning: ${warnings[0]}`;

  await t.test('as a header', async () => {
    for (const format of formats) {
      const res = await ask({ format });
      assert.equal(res.status, 200, `${format}: ${res.body}`);
      assert.deepEqual(texts(res.headers.warning), want, format);
    }
    const scrape = await ask({ format: 'pprof', types: 'all', query: 'process_cpu{job="shop"}', start: '', end: '', time: end });
    assert.equal(scrape.status, 200, scrape.body.toString());
    assert.deepEqual(texts(scrape.headers.warning), want);
    // Where what is missing is all there would be, the error says it too.
    const none = await ask({ format: 'folded', query: 'cpu{job="none"}' });
    assert.equal(none.status, 404);
    const nothing = 'no series of "cpu" has job="none" in this time range';
    assert.deepEqual(texts(none.headers.warning), [...want, `199 ${nothing}`]);
    const plan = await request(`${server.url}/api/v1/explain_query?${new URLSearchParams({ ...params, format: 'text', analyze: 1 })}`);
    assert.deepEqual(texts(plan.headers.warning), want);
    const fine = await ask({ format: 'text', start: end + 1, end: end + 2, query: 'vector(1)' });
    assert.equal(fine.headers.warning, undefined);
  });

  await t.test('in the body, where it has a place', async () => {
    const whole = { types: 'all', query: 'process_cpu{job="shop"}', start: '', end: '', time: end };
    for (const [format, more] of [['pprof', {}], ['pgo', {}], ['pprof', whole]].filter(([f]) => formats.includes(f))) {
      const file = join(dir, `answer.${format}`);
      writeFileSync(file, (await ask({ format, ...more })).body);
      assert.ok(tool('-comments', file).split('\n').includes(line), format);
    }
    const file = join(dir, 'answer.pprof');
    writeFileSync(file, (await ask({ format: 'pprof' })).body);
    const text = (await ask({ format: 'text' })).body.toString();
    assert.ok(tool('-top', file).split('\n').includes(line));
    assert.ok(text.split('\n').includes(line), text.slice(0, 500));
    const folded = (await ask({ format: 'folded' })).body.toString();
    for (const stack of folded.trimEnd().split('\n')) assert.match(stack, /^\S.* \d+$/);
    const speedscope = JSON.parse((await ask({ format: 'speedscope' })).body);
    assert.deepEqual(faults(schema, speedscope), []);
    assert.ok(speedscope.name.includes(` - ${line}`), speedscope.name);
  });

  await t.test('in what Grafana asks as Pyroscope', async () => {
    const call = (method, body) => request(`${server.url}/querier.v1.QuerierService/${method}`,
      { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) });
    const times = { start: (end - 600) * 1000, end: end * 1000 };
    const type = 'process_cpu:cpu:nanoseconds:cpu:nanoseconds';
    const ours = (header) => texts(header).some((text) => want.includes(text));
    for (const [method, body] of [['SelectMergeStacktraces', { profileTypeID: type, labelSelector: '{job="shop"}' }],
      ['SelectMergeProfile', { profileTypeID: type, labelSelector: '{job="shop"}' }],
      ['SelectSeries', { profileTypeID: type, labelSelector: '{job="shop"}', step: 15 }], ['LabelNames', {}], ['Series', {}]]) {
      const res = await call(method, { ...body, ...times });
      assert.equal(res.status, 200, `${method}: ${res.body}`);
      assert.ok(ours(res.headers.warning), method);
    }
  });

  await t.test('in what another Prometheus scrapes', async () => {
    const res = await request(`${server.url}/federate?match[]=up`);
    assert.deepEqual(texts(res.headers.warning), want);
    assert.ok(res.body.toString().startsWith(`# ${line}\n`), res.body.toString().slice(0, 300));
  });

  await t.test('from epitool', async () => {
    const said = (run) => run.err.replace(/^time=.*\n/gm, ''); // without the database's own log
    const span = ['--start', String(end - 600), '--end', String(end)];
    for (const where of [`--server=${server.url}`, `--data=${join(dir, 'data')}`]) {
      for (const format of ['table', ...formats]) {
        const run = await finish(t, epitool, ['query', where, ...span, `--format=${format}`, '-o', join(dir, 'out'), params.query]);
        assert.equal(run.code, 0, run.err);
        assert.match(said(run), /^(epitool: warning: .*\n)+$/, `${where} ${format}`);
      }
      const none = await finish(t, epitool, ['query', where, ...span, '--format=folded', 'cpu{job="none"}']);
      assert.equal(none.code, 1);
      assert.match(said(none), /^(epitool: warning: .*\n)+(epitool: info: no series of "cpu" has job="none" .*\n)?epitool: error: the query found no profiles\n/);
      const diff = await finish(t, epitool, ['diff', where, ...span, 'cpu{job="shop"}', 'cpu{job="shop"}']);
      assert.equal(diff.code, 0, diff.err);
      assert.match(said(diff), /^(epitool: warning: .*\n)+$/);
    }
  });
});
