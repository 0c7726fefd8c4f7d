// Pyroscope's SDKs as the registries have them send to the server. Of each, two processes of one service run a function
// that computes and one that allocates. What the server answers is compared with the bodies that it acknowledged, which
// another decoder reads: the JDK's own for recordings, tests/e2e/senders/pprof.mjs for the rest.
import test from 'node:test';
import assert from 'node:assert/strict';
import { cpuProfile } from '../browser/pprof.mjs';
import { api, execFileSync, join, programEnds, query, request, root, scratch, start, startServer, until, writeFileSync } from './lib.mjs';
import { standBetween } from './senders/between.mjs';
import { inflated } from './senders/pprof.mjs';
import { forms, parts, pprofCosts, pushed } from './senders/requests.mjs';

const built = join(root, 'build/senders');
const prepare = (part) => execFileSync(join(root, 'tests/e2e/senders/prepare.sh'), [part], { stdio: 'pipe' });

/** The costs of Java's recordings, as the JDK reads them. */
function jfrCosts(requests, dir) {
  const costs = new Map();
  const add = (type, names, value) => {
    if (!costs.has(type)) costs.set(type, new Map());
    const of = costs.get(type);
    const to = (name, column) => {
      if (!of.has(name)) of.set(name, [0n, 0n]);
      of.get(name)[column] += value;
    };
    to('', 0);
    if (names.length) to(names[0], 0);
    for (const name of new Set(names)) to(name, 1);
  };
  requests.forEach((request, i) => {
    const file = join(dir, `${i}.jfr`);
    writeFileSync(file, inflated(parts(request).jfr));
    const print = ['print', '--json', '--stack-depth', '2048', '--events',
      'jdk.ExecutionSample,jdk.ObjectAllocationInNewTLAB,jdk.ObjectAllocationOutsideTLAB', file];
    const { events } = JSON.parse(execFileSync('jfr', print, { maxBuffer: 1 << 30 })).recording;
    for (const { type, values } of events) {
      const names = (values.stackTrace?.frames ?? []).map(({ method }) => `${method.type.name}.${method.name}`);
      if (type === 'jdk.ExecutionSample') add('cpu', names, 10_000_000n);
      if (type === 'jdk.ObjectAllocationInNewTLAB') add('alloc_in_new_tlab_bytes', names, BigInt(values.tlabSize));
      if (type === 'jdk.ObjectAllocationOutsideTLAB')
        add('alloc_outside_tlab_bytes', names, BigInt(values.allocationSize));
    }
  });
  return costs;
}

const senders = [
  {
    name: 'go',
    package: 'github.com/grafana/pyroscope-go',
    command: (url) => [join(built, 'go/cart'), url, 'sent'],
    costs: pprofCosts((request) => [parts(request).profile]),
    cpu: 'process_cpu:cpu',
    hot: { 'process_cpu:cpu': /^main\.priceCart$/, 'process_cpu:samples': /^main\.priceCart$/,
      'memory:alloc_space': /^main\.loadItems$/, 'memory:alloc_objects': /^main\.loadItems$/ },
    levels: ['memory:inuse_objects', 'memory:inuse_space'],
  },
  {
    name: 'node',
    package: '@pyroscope/nodejs',
    command: (url) => [process.execPath, join(built, 'node/web.mjs'), url, 'sent'],
    costs: pprofCosts((request) => [request.body]),
    cpu: 'wall:cpu',
    hot: { 'wall:cpu': /:renderPage:\d+$/, 'wall:wall': /:renderPage:\d+$/, 'wall:samples': /:renderPage:\d+$/ },
    levels: ['memory:inuse_objects', 'memory:inuse_space'],
  },
  {
    name: 'python',
    package: 'pyroscope-io',
    command: (url) => ['python3', join(root, 'tests/e2e/senders/python/recommend.py'), url, 'sent'],
    env: { PYTHONPATH: join(built, 'python/site') },
    costs: pprofCosts(pushed),
    cpu: 'process_cpu:cpu',
    hot: { 'process_cpu:cpu': /^rank_results$/, 'memory:alloc_space': /^load_vectors$/,
      'memory:alloc_objects': /^load_vectors$/ },
    levels: ['memory:inuse_objects', 'memory:inuse_space'],
  },
  {
    name: 'java',
    package: 'io.pyroscope:agent',
    command: (url, dir) => ['java', `-Djava.io.tmpdir=${dir}`, `-javaagent:${join(built, 'java/agent.jar')}`, '-cp', join(built, 'java'), 'Search'],
    env: { PYROSCOPE_APPLICATION_NAME: 'sent', PYROSCOPE_FORMAT: 'jfr', PYROSCOPE_PROFILER_EVENT: 'itimer',
      PYROSCOPE_PROFILER_ALLOC: '512k', PYROSCOPE_UPLOAD_INTERVAL: '2s', PYROSCOPE_LABELS: 'region=here' },
    costs: jfrCosts,
    cpu: 'process_cpu:cpu',
    hot: { 'process_cpu:cpu': /^Search\.scoreDocuments$/, 'memory:alloc_in_new_tlab_bytes': /^Search\.readIndex$/ },
    levels: [],
  },
];

async function costOf(server, type, hot) {
  const { result } = await query(server, `top(1000, merge(${type}{service_name="sent"}[1h]))`);
  const row = result[0]?.rows.find(({ function: name }) => hot.test(name));
  return row && { total: result[0].total, flat: row.flat, cum: row.cum, name: row.function };
}

function expected(costs, type, hot) {
  const of = costs.get(type.split(':')[1]);
  const row = [...of].filter(([name]) => hot.test(name));
  assert.equal(row.length, 1, `${type}: ${row.map(([name]) => name)}`);
  const [[name, [flat, cum]]] = row;
  return { total: Number(of.get('')[0]), flat: Number(flat), cum: Number(cum), name };
}

/**
 * A sample stands for what the CPU clock went on since the one before, so a process has no more of them than CPU time,
 * but for one more of each thread that is under way. Python's are taken by the wall clock, of threads that run or could:
 * so no longer than the process took. How many a runtime loses on a busy machine is its own affair, and each that it sent
 * is counted above; less than a hundredth would be another unit.
 */
function checkTime(cost, said) {
  const used = said.reduce((sum, { cpu_ns: ns, wall_ns: wall }) => sum + (ns ?? wall), 0);
  assert.ok(cost <= used * 1.1 + 1e9, `${cost} of ${used}`);
  assert.ok(cost >= used / 100, `${cost} of ${used}`);
}

for (const sender of senders) {
  test(`${sender.package} sends to the server as it does to Pyroscope`, async (t) => {
    prepare(sender.name);
    const dir = scratch(t);
    const server = await startServer(t, { dir, config: 'scrape_configs: []\n', args: ['--web.enable-ingest'] });
    const between = await standBetween(t, server);
    const [program, ...args] = sender.command(between.url, dir);
    const env = { ...process.env, PYROSCOPE_SERVER_ADDRESS: between.url, ...sender.env };
    const runs = [1, 2].map(() => start(t, program, args, { cwd: dir, stdio: ['pipe', 'pipe', 'pipe'], env }));

    await until(`${sender.name}: functions by name`, 60, async () => {
      for (const run of runs) if (run.code !== undefined) throw new Error(`ended with ${run.code}: ${run.err}`);
      if (between.seen.filter(({ status }) => status === 200).length < 12) return false;
      const costs = await Promise.all(Object.entries(sender.hot).map(([type, hot]) => costOf(server, type, hot)));
      return costs.every((cost) => cost?.flat > 0);
    });
    for (const run of runs) run.child.stdin.end();
    for (const run of runs) {
      await programEnds(run);
      assert.equal(run.code, 0, run.err);
    }

    for (const { path, status, answer } of between.seen) assert.equal(status, 200, `${path}: ${answer}`);
    const costs = sender.costs(between.seen, dir);
    for (const [type, hot] of Object.entries(sender.hot))
      assert.deepEqual(await costOf(server, type, hot), expected(costs, type, hot), type);
    const { cum } = await costOf(server, sender.cpu, sender.hot[sender.cpu]);
    checkTime(cum, runs.map((run) => JSON.parse(run.out)));

    // Neither processes nor starts are labels.
    const names = [...new Set([...Object.keys(sender.hot), ...sender.levels].map((type) => type.split(':')[0]))].sort();
    const series = await api(server, 'series', { 'match[]': '{__name__!=""}' });
    assert.deepEqual(series, names.map((name) => ({ __name__: name, job: 'sent', region: 'here', service_name: 'sent' })));
    const types = await api(server, 'profile_types');
    for (const { name, sample_type: sample, delta } of types)
      assert.equal(delta, !sender.levels.includes(`${name}:${sample}`), `${name}:${sample}`);
  });
}

// The SDKs for Rust, Ruby and .NET are not run: requests of their form are sent.
const work = { functions: [{ name: 'main' }, { name: 'Shop::work' }], samples: [{ stack: [0, 1], value: 30e6 }] };
for (const [name, make] of Object.entries(forms)) {
  test(`SDKs for ${name}`, async (t) => {
    const server = await startServer(t, { dir: scratch(t), config: 'scrape_configs: []\n', args: ['--web.enable-ingest'] });
    const [path, headers, body] = make('sent', cpuProfile(work), Math.floor(Date.now() / 1000) - 5);
    const options = { method: 'POST', headers: { ...headers, 'x-scope-orgid': 'team' }, body };
    const sent = await request(server.url + path, options);
    assert.equal(sent.status, 200, sent.body.toString());
    assert.deepEqual(await costOf(server, 'cpu', /Shop/), { total: 30e6, flat: 30e6, cum: 30e6, name: 'Shop::work' });
    assert.deepEqual(await api(server, 'series', { 'match[]': '{__name__!=""}' }),
      [{ __name__: 'process_cpu', job: 'sent', region: 'here', service_name: 'sent' }]);
    // As after a lost answer.
    assert.equal((await request(server.url + path, options)).status, 200);
    assert.equal((await costOf(server, 'cpu', /Shop/)).total, 30e6);
  });
}

test('an SDK that is refused is told the flag', async (t) => {
  prepare('node');
  const dir = scratch(t);
  const server = await startServer(t, { dir, config: 'scrape_configs: []\n' });
  const between = await standBetween(t, server);
  const [program, ...args] = senders[1].command(between.url);
  start(t, program, args, { cwd: dir, stdio: ['pipe', 'pipe', 'pipe'] });
  const [{ status, answer }] = await until('a refusal', 30, () => between.seen[0]?.status && between.seen);
  assert.equal(status, 404);
  assert.match(answer, /--web\.enable-ingest/);
});
