// Programs of C++ that are linked with gperftools and jemalloc are scraped: their functions show by name, and each number
// is that of `go tool pprof`, which asks the same program for the names.
import test from 'node:test';
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { api, execFileSync, finish, join, query, request, root, scratch, start, startServer, until, writeFileSync } from './lib.mjs';

const source = join(root, 'tests/e2e/cpp/service.cc');

function buildService(dir, name, flags) {
  const program = join(dir, name);
  execFileSync('g++', ['-O1', '-rdynamic', '-o', program, source, ...flags, '-ldl', '-pthread'], { stdio: 'pipe' });
  return program;
}

async function startService(t, program, env) {
  const run = start(t, program, [], { env: { ...process.env, ...env } });
  run.address = await until('service listens', 10, () => {
    if (run.code !== undefined) throw new Error(`service ended with ${run.code}: ${run.err}`);
    return run.out.match(/127\.0\.0\.1:\d+/)?.[0];
  });
  return run;
}

const gperftools = { TCMALLOC_SAMPLE_PARAMETER: '65536', HEAP_PROFILE_ALLOCATION_INTERVAL: '0', HEAP_PROFILE_INUSE_INTERVAL: '0' };
const jemalloc = { MALLOC_CONF: 'prof:true,lg_prof_sample:12' };
const off = 'process_cpu: {enabled: false}, memory: {enabled: false}, block: {enabled: false}, mutex: {enabled: false}, goroutine: {enabled: false}, goroutineleak: {enabled: false}';

/** The book's job. Turns are a century apart: each scrape is one that the test orders. */
const cppJob = readFileSync(join(root, 'web/book/guides/cpp.md'), 'utf8').match(/```yaml job[^\n]*\n(- job_name: cpp\n[^]*?)```/)[1].replace(/^(?=.)/gm, '  ');
const config = (gp, je) => `
global: {scrape_interval: 100y, scrape_timeout: 60s}
scrape_configs:
${cppJob.replace('10.0.0.3:8080', gp).replace('/pprof/profile}', '/pprof/profile, seconds: 2}')}
  - job_name: all
    profiling_config: {pprof_config: {${off}, allocs: {path: /pprof/allocs}}}
    static_configs: [{targets: ["${gp}"]}]
  - job_name: jemalloc
    profiling_config: {pprof_config: {${off.replace('memory: {enabled: false}', 'memory: {path: /pprof/heap}')}}}
    static_configs: [{targets: ["${je}"]}]
`;

/** Rows of a report as of -top, without its head. */
function rows(text) {
  const lines = text.split('\n');
  const head = lines.findIndex((l) => /^\s*flat\s+flat%/.test(l));
  assert.notEqual(head, -1, text);
  return lines.slice(head + 1).filter((l) => l.trim() !== '').map((l) => l.trim().split(/\s+/).join(' ')).sort();
}

async function order(server, matcher, params = {}) {
  const res = await request(`${server.url}/api/v1/targets/profile?${new URLSearchParams({ 'match[]': matcher, ...params })}`, { method: 'POST' });
  assert.equal(res.status, 200, res.body.toString());
  return JSON.parse(res.body).data;
}

test('programs of C++ show their functions', async (t) => {
  const dir = scratch(t);
  const gp = await startService(t, buildService(dir, 'gp', ['-ltcmalloc_and_profiler']), gperftools);
  const je = await startService(t, buildService(dir, 'je', ['-DJEMALLOC', '-ljemalloc']), jemalloc);
  const server = await startServer(t, { dir, args: ['--web.enable-admin-api', '--web.enable-ingest'], config: config(gp.address, je.address) });
  await until('targets', 20, async () => (await api(server, 'targets')).activeTargets.length === 4);

  const selector = (got, type) => got.query.replace(/^\w+/, (name) => `${name}:${type}`);
  const cases = [
    { what: 'CPU profile of gperftools', match: 'process_cpu{job="cpp"}', params: { seconds: 2 }, path: 'profile', types: ['samples', 'cpu'],
      functions: ['shop::rank_items', 'shop::parse_orders', 'shop::serve_requests'] },
    { what: 'sampled heap of gperftools', match: 'memory{job="cpp"}', path: 'heap', types: ['objects', 'space'], functions: ['shop::Cache::fill'] },
    { what: 'heap profiler of gperftools', match: 'allocs{job="all"}', path: 'allocs', types: ['inuse_objects', 'inuse_space'], functions: ['shop::Cache::fill'] },
  ];
  for (const c of cases) {
    await t.test(`${c.what}: the rows of go tool pprof, with names`, async () => {
      const url = `http://${gp.address}/last/pprof/${c.path}`; // the same body again
      const top = async (type) => {
        const args = ['tool', 'pprof', '-top', '-nodefraction=0', '-nodecount=100000', `-sample_index=${type}`];
        const run = await finish(t, 'go', [...args, '-symbolize=remote', url], 60, { env: { ...process.env, PPROF_TMPDIR: dir, PPROF_BINARY_PATH: dir } });
        assert.equal(run.code, 0, run.err);
        return run;
      };
      // A program that gets little of a busy machine has few samples of its time.
      const got = await until('each function was seen', 60, async () => {
        const one = await order(server, c.match, c.params), { out } = await top(c.types[0]);
        for (const f of c.functions) assert.ok(out.includes(f), `${f}: ${out}`);
        return one;
      });
      for (const type of c.types) {
        const want = await top(type);
        const text = await request(`${server.url}/api/v1/query?${new URLSearchParams({ query: selector(got, type), format: 'text' })}`);
        assert.equal(text.status, 200, text.body.toString());
        assert.deepEqual(rows(text.body.toString()), rows(want.out), type);
        for (const f of c.functions) assert.ok(want.out.includes(f), `${f}: ${want.out}`);
      }
    });
  }

  await t.test('kinds: time and allocations count, memory in use is a level', async () => {
    await order(server, 'allocs{job="all"}'); // the increase since the one before
    const text = JSON.stringify(await api(server, 'profile_types'));
    for (const type of ['process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta', 'memory:space:bytes:space:bytes"', 'allocs:alloc_space:bytes:space:bytes:delta', 'allocs:inuse_space:bytes:space:bytes"'])
      assert.ok(text.includes(type), `${type}: ${text}`);
  });

  await t.test('jemalloc', async () => {
    const got = await order(server, 'memory{job="jemalloc"}');
    const cost = await query(server, `cum(${selector(got, 'inuse_space')}, {function=~"shop::Cache::fill.*"})`);
    assert.equal(cost.result.length, 1, JSON.stringify(cost));
    // 2,000 blocks of 16 KiB of which all but one in fifty are sampled; the estimate is unsampled.
    const kept = Number(cost.result[0].value[1]);
    assert.ok(kept > 0.8 * 2000 * 16384 && kept < 1.2 * 2000 * 16384, `${kept}`);
  });

  await t.test('a body that is pushed has the total of go tool pprof', async () => {
    const body = (await request(`http://${gp.address}/last/pprof/profile`)).body;
    const file = join(dir, 'pushed.prof');
    writeFileSync(file, body);
    const res = await request(`${server.url}/api/v1/ingest?name=process_cpu&job=pushed`, { method: 'POST', body });
    assert.equal(res.status, 200, res.body.toString());
    const want = await finish(t, 'go', ['tool', 'pprof', '-raw', '-symbolize=none', file]);
    assert.equal(want.code, 0, want.err);
    const values = [...want.out.matchAll(/^ +(\d+) +(\d+): /gm)];
    const total = await query(server, 'total(process_cpu:samples{job="pushed"})');
    assert.equal(Number(total.result[0].value[1]), values.reduce((n, m) => n + Number(m[1]), 0));
    assert.ok(values.length > 0);
  });
});
