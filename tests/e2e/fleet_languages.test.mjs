// One server for a fleet in six languages, by scraping and by every kind of push at once: each sender is in each answer about
// the fleet that it has something for, or an info names it; rules go well; the page Services has a row of each. Then odd
// senders come, and nobody else's answer changes.
import test from 'node:test';
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, readdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import { gunzipSync } from 'node:zlib';
import { cpuProfile, levelProfile } from '../browser/pprof.mjs';
import {
  api, execFileSync, join, programEnds, query, request, root, scratch, settled, start, startDemo, startServer, until,
  writeFileSync,
} from './lib.mjs';
import { recorded } from './otlp_requests.mjs';
import { standBetween } from './senders/between.mjs';
import { addProfile } from './senders/pprof.mjs';
import { forms, pushed } from './senders/requests.mjs';

const built = join(root, 'build/senders');
const read = (path) => readFileSync(join(root, path));
const chapter = (name) => read(`web/book/guides/${name}.md`).toString();

/* ---- the fleet: what sends, and what it has by the word of others ---- */

const WORK = { functions: [{ name: 'main' }, { name: 'Cart::price' }], samples: [{ stack: [0, 1], value: 30e6 }] };
const LIVE_BYTES = 53477648; // of the recording, as jfr print has it
const PROFILER = 'p2-standalone-99hz-steady';

/**
 * By job. `cpu`: its nanoseconds, true if it sends some, null if they cannot be told; `memory`: likewise, bytes in use;
 * `profiles`: how many; `runs`: a function in which it computes; `hot`: its hottest function, where that is known.
 */
const fleet = {
  shop: { what: 'Go, scraped', cpu: true, memory: true, runs: /^main\./, targets: 5 },
  ledger: { what: 'C++ with gperftools, scraped', cpu: true, memory: true, runs: /^shop::/, targets: 1 },
  growth: { what: 'Go, its heap over a second', memory: null, targets: 1 },
  web: { what: 'Node, by its SDK', cpu: true, memory: true, runs: /:renderPage:\d+$/ },
  recommend: { what: 'Python, by its SDK', cpu: true, memory: true, runs: /^rank_results$/ },
  search: { what: 'Java, a recording', cpu: 640000000, memory: true, profiles: 4, hot: 'Work.hotLeaf' },
  unknown_service: { what: 'Java, OTLP of async-profiler', cpu: null, profiles: 1 },
  cart: { what: 'Rust, a request of its form', cpu: 30e6, profiles: 1, hot: 'Cart::price' },
  host: { what: 'OTLP of the eBPF profiler', cpu: cpuOfProfiler(), profiles: 10 },
};

function cpuOfProfiler() {
  const { samples, period_ns: period } = JSON.parse(read('tests/proto/otlp/testdata/expected.json'))[`${PROFILER}.pb`];
  return samples * period;
}

/** Infos on what is left out of `cpu` and `memory`. */
const LEFT_OUT = {
  cpu: ['cpu: 1 series left out: itimer:itimer:count:itimer:ns:delta of job "unknown_service" is in count, the result in nanoseconds'],
  memory: [
    'memory: 1 series left out: memory:inuse_space:bytes:space:bytes:delta of job "growth" holds amounts, the result levels',
  ],
};

/* ---- rules: the book's, and all that examples/ has for this server ---- */

const [, bookRules] = chapter('alerts').match(/```yaml rules[^\n]*\n(groups:[^]*?)```/);
const SHARE = bookRules.match(/alert: MarshalIsExpensive\n\s+expr: (.*)/)[1];

function writeRules(dir) {
  mkdirSync(join(dir, 'rules'));
  const write = (name, text) => writeFileSync(join(dir, 'rules', name), text.replace(/interval: \w+/g, 'interval: 1s'));
  write('book.yml', bookRules);
  for (const name of readdirSync(join(root, 'examples/rules')))
    if (/\.yml$/.test(name) && name !== 'epimetheus.yml') write(name, read(`examples/rules/${name}`).toString());
}

/** All rules were evaluated after `since` (ms), without an error. */
async function checkRules(server, since) {
  const rules = await until('rules are evaluated', 60, async () => {
    const all = (await api(server, 'rules')).groups.flatMap((g) => g.rules);
    return all.length && all.every((r) => Date.parse(r.lastEvaluation) > since) && all;
  });
  for (const r of rules) assert.deepEqual([r.name, r.health, r.lastError ?? ''], [r.name, 'ok', '']);
  assert.ok(rules.some((r) => r.name === 'MarshalIsExpensive' && r.query.startsWith('cum_share(')));
  assert.ok(rules.length > 10);
}

/* ---- programs ---- */

const cppJob = chapter('cpp').match(/```yaml job[^\n]*\n(- job_name: cpp\n[^]*?)```/)[1].replace(/^(?=.)/gm, '  ');

/** CPU profiles of C++ are ordered: they take CPU time, and a scrape in its turn may end before a busy machine has given it. */
const config = (go, cpp) => `
global: {scrape_interval: 2s, scrape_timeout: 2s, evaluation_interval: 1s}
rule_files: ["rules/*.yml"]
scrape_configs:
  - job_name: shop
    profiling_config: {pprof_config: {process_cpu: {seconds: 1}}}
    static_configs: [{targets: ["${go}"]}]
  - job_name: growth
    profiling_config:
      pprof_config:
        memory: {path: /debug/pprof/heap, seconds: 1, delta: true}
        process_cpu: {enabled: false}
        block: {enabled: false}
        mutex: {enabled: false}
        goroutine: {enabled: false}
    static_configs: [{targets: ["${go}"]}]
${cppJob.replace('job_name: cpp', 'job_name: ledger').replace('10.0.0.3:8080', cpp)
    .replace('/pprof/profile}', '/pprof/profile, seconds: 1, interval: 100y, timeout: 60s}')}`;
const isOrdered = (target) => target.labels.job === 'ledger' && target.profile === 'process_cpu';

async function startCpp(t, dir) {
  const program = join(dir, 'ledger');
  execFileSync('g++', ['-O1', '-rdynamic', '-o', program, join(root, 'tests/e2e/cpp/service.cc'), '-ltcmalloc_and_profiler',
    '-ldl', '-pthread'], { stdio: 'pipe' });
  const run = start(t, program, [], { env: { ...process.env, TCMALLOC_SAMPLE_PARAMETER: '65536' } });
  run.address = await until('service listens', 10, () => run.out.match(/127\.0\.0\.1:\d+/)?.[0]);
  return run;
}

/** It was seen in the function in which it computes. */
async function hasRun(server, job) {
  const { result } = await query(server, `top(1000, merge(cpu{job="${job}"}[1h]))`);
  return result[0]?.rows.some((r) => fleet[job].runs.test(r.function) && r.flat > 0);
}

async function scrapeAll(server) {
  await until('CPU of C++', 60, async () => {
    const res = await request(`${server.url}/api/v1/targets/profile?${new URLSearchParams({ 'match[]': 'process_cpu{job="ledger"}' })}`,
      { method: 'POST' });
    assert.equal(res.status, 200, res.body.toString());
    return hasRun(server, 'ledger');
  });
  // A line has no place for a profile of the last step.
  await until('some profiles of each, and CPU of Go', 60, async () => {
    const found = ['cpu{job="shop"}', 'memory{job="shop"}', 'memory{job="ledger"}', 'memory:inuse_space{job="growth"}'].map(async (s) =>
      (await query(server, `count_over_time(${s}[1h])`)).result.some((r) => Number(r.value[1]) >= 3));
    return (await Promise.all(found)).every(Boolean) && hasRun(server, 'shop');
  });
}

/** Runs a program with an SDK until its hottest function and its memory are known; gives the profiles that it sent. */
async function runSdk(t, server, job, part, command, env, profilesOf) {
  execFileSync(join(root, 'tests/e2e/senders/prepare.sh'), [part], { stdio: 'pipe' });
  const between = await standBetween(t, server);
  const [program, ...args] = command(between.url);
  const run = start(t, program, args, { stdio: ['pipe', 'pipe', 'pipe'], env: { ...process.env, ...env } });
  await until(`profiles of ${job}`, 60, async () => {
    if (run.code !== undefined) throw new Error(`ended with ${run.code}: ${run.err}`);
    const memory = (await query(server, `total(memory{job="${job}"}[1h])`)).result;
    return await hasRun(server, job) && Number(memory[0]?.value[1]) > 0;
  });
  run.child.stdin.end();
  await programEnds(run);
  assert.equal(run.code, 0, run.err);
  for (const { path, status, answer } of between.seen) assert.equal(status, 200, `${path}: ${answer}`);
  return between.seen.flatMap(profilesOf);
}

/** What a decoder of this test's own reads of the profiles of a sender: all CPU, and the memory in use of the last one. */
function measured(profiles) {
  const total = (costs, type) => Number(costs.get(type)?.get('')[0] ?? NaN);
  const all = new Map();
  const each = profiles.map((bytes) => {
    const costs = new Map();
    addProfile(costs, bytes);
    addProfile(all, bytes);
    return costs;
  });
  return { cpu: total(all, 'cpu'), memory: total(each.filter((costs) => costs.has('inuse_space')).pop(), 'inuse_space') };
}

async function replay(server) {
  const now = Math.floor(Date.now() / 1000);
  const post = async (path, headers, body) => {
    const res = await request(server.url + path, { method: 'POST', headers, body });
    assert.equal(res.status, 200, `${path}: ${res.body}`);
  };
  const protobuf = { 'content-type': 'application/x-protobuf' };
  await post(`/ingest?name=search&format=jfr&from=${now - 20}&until=${now - 2}`, {},
    gunzipSync(read('tests/proto/jfr/recordings/async.jfr.gz')));
  await post('/v1development/profiles', protobuf, recorded('async-profiler-4.6').at(Date.now() - 20000));
  await post('/v1development/profiles', protobuf, recorded(PROFILER, { 'service.name': 'host' }).at(Date.now() - 20000));
  await post(...forms['Rust and Ruby, Push']('cart', cpuProfile(WORK), now));
}

/* ---- the page Services: its own questions, and its rows ---- */

async function pageModules(dir) {
  const ui = join(root, 'build/ui-src');
  const outfile = join(dir, 'page.mjs');
  createRequire(join(ui, 'package.json'))('esbuild').buildSync({ absWorkingDir: ui, entryPoints: ['src/testing.ts'], outfile,
    bundle: true, format: 'esm', platform: 'neutral', target: ['es2020'], logLevel: 'warning' });
  const modules = await import(pathToFileURL(outfile));
  return modules.fleet;
}

async function servicesOf(server, page, window) {
  const known = page.fleetTypes(await api(server, 'profile_types'));
  const times = page.fleetTimes(window, 2);
  const answers = {}, infos = {};
  for (const { key, name, args } of page.fleetQuestions('job', known, times)) {
    const res = await request(`${server.url}/api/v1/${name}?${new URLSearchParams(args)}`);
    const answer = JSON.parse(res.body);
    assert.deepEqual([answer.status, answer.warnings ?? []], ['success', []], `${key}: ${answer.error}`);
    answers[key] = answer.data;
    infos[key] = answer.infos ?? [];
  }
  const unit = page.coresUnit(known, answers);
  assert.equal(unit.label, 'cores');
  const rows = page.fleetRows('job', times, unit, answers);
  const recorded = answers['count job:cpu:merged']?.result ?? [];
  return {
    rows: Object.fromEntries(rows.map((r) => [r.service, r])),
    recorded: Object.fromEntries(recorded.map((r) => [r.metric.job, Number(r.value[1])])),
    infos,
  };
}

/** `recorded`: of the profiles, those that a rule made of them. */
function checkRow(row, job, recorded) {
  const { cpu, memory, hot, profiles, targets = null } = fleet[job];
  const seen = (values) => values.some((v) => v > 0);
  assert.deepEqual([row.cores > 0, seen(row.spark), row.top?.flat > 0], Array(3).fill(!!cpu), `${job}: CPU`);
  if (hot) assert.equal(row.top.function, hot);
  assert.deepEqual([row.memory > 0, seen(row.memorySpark)], [!!memory, !!memory], `${job}: memory`);
  assert.deepEqual([row.tasks > 0, seen(row.tasksSpark)], Array(2).fill(job === 'shop'), `${job}: goroutines`);
  if (profiles) assert.equal(row.profiles - recorded, profiles, `${job}: profiles`);
  assert.ok(row.profiles > recorded, `${job}: profiles`);
  const processes = targets && 1; // each scraped job is one process
  assert.deepEqual([row.up, row.targets, row.firing], [processes, processes, 0], `${job}: targets, alerts`);
}

/* ---- answers ---- */

/** A query of numbers by job: {values, infos}. */
async function byJob(server, text, time) {
  const res = await request(`${server.url}/api/v1/query?${new URLSearchParams({ query: text, time })}`);
  const { status, data, error, infos = [], warnings = [] } = JSON.parse(res.body);
  assert.deepEqual([status, warnings], ['success', []], `${text}: ${error}`);
  return { values: Object.fromEntries(data.result.map((r) => [r.metric.job, Number(r.value[1])])), infos };
}

const WHOLE = '1h';
const QUESTIONS = {
  cpu: `total(merge by (job) (cpu[${WHOLE}]))`,
  memory: `total(merge by (job) (memory[${WHOLE}]))`,
  'last memory': `total(merge by (job) (last_over_time(memory[${WHOLE}])))`,
  cores: `total(merge by (job) (rate(cpu[${WHOLE}]))) / 1e9`,
  share: SHARE.replace(/function="[^"]*"/, 'function=~".*(scoreItems|rank_items|renderPage|rank_results|hotLeaf|Cart::price).*"')
    .replace(/^cum_share/, 'max by (job) (cum_share').replace(/ > [\d.]+$/, ')').replace('[5m]', `[${WHOLE}]`),
  profiles: `sum by (job) (count_over_time(cpu[${WHOLE}]))`,
};

async function askAll(server, page, window) {
  const answers = await Promise.all(Object.values(QUESTIONS).map((text) => byJob(server, text, window.end)));
  return { ...Object.fromEntries(Object.keys(QUESTIONS).map((key, i) => [key, answers[i]])), services: await servicesOf(server, page, window) };
}

const jobsWith = (what) => Object.keys(fleet).filter((job) => fleet[job][what]).sort();

/** The jobs that an answer has, and those that infos name, are all that send. */
function checkJobs({ values, infos }, what) {
  assert.deepEqual(Object.keys(values).sort(), jobsWith(what));
  for (const [job, v] of Object.entries(values)) {
    const want = fleet[job][what];
    assert.ok(want === true ? v > 0 : v === want, `${what} of ${job}: ${v}, not ${want}`);
  }
  assert.deepEqual([...infos].sort(), LEFT_OUT[what]);
  for (const [job, { [what]: sent }] of Object.entries(fleet))
    if (sent === null) assert.ok(infos.some((info) => info.includes(`"${job}"`)), `${what}: nothing is said of ${job}`);
}

test('a fleet in six languages, and odd senders in it', async (t) => {
  const dir = scratch(t), began = Date.now() / 1000;
  writeRules(dir);
  const page = await pageModules(dir);
  const [go, cpp] = await Promise.all([startDemo(t, 'v1', 'none', 30), startCpp(t, dir)]);
  const server = await startServer(t, { dir, config: config(go.address, cpp.address),
    args: ['--web.enable-ingest', '--web.enable-admin-api'] });

  const [web, recommend] = await Promise.all([
    runSdk(t, server, 'web', 'node', (url) => [process.execPath, join(built, 'node/web.mjs'), url, 'web'], {}, ({ body }) => [body]),
    runSdk(t, server, 'recommend', 'python', (url) => ['python3', join(root, 'tests/e2e/senders/python/recommend.py'), url, 'recommend'],
      { PYTHONPATH: join(built, 'python/site') }, pushed),
    scrapeAll(server),
    replay(server),
  ]);
  const arrived = Date.now();
  const exact = { web: measured(web), recommend: measured(recommend), search: { cpu: fleet.search.cpu, memory: LIVE_BYTES } };
  for (const [job, { cpu }] of Object.entries(exact)) fleet[job].cpu = cpu;

  const end = await until('everything is stored, and all targets are up', 60, async () => {
    const time = await settled(server, (x) => !isOrdered(x));
    const up = await byJob(server, 'sum by (job) (up)', time);
    const all = Object.entries(up.values).every(([job, n]) => n === fleet[job].targets);
    // The lines of the page end with a whole step: what came last is in them.
    const { grid } = page.fleetTimes({ start: began - 60, end: time }, 2);
    return grid.end * 1000 > arrived && all && Object.keys(up.values).length === 3 && time;
  });
  const window = { start: began - 60, end };
  const before = await askAll(server, page, window);

  await t.test('CPU time: all who send it, exact where the bodies are known', () => checkJobs(before.cpu, 'cpu'));

  await t.test('memory: all who say what is in use', () => {
    checkJobs(before.memory, 'memory');
    assert.deepEqual(before['last memory'].infos.sort(), LEFT_OUT.memory);
    for (const [job, { memory }] of Object.entries(exact)) assert.equal(before['last memory'].values[job], memory, job);
  });

  await t.test('cores, shares and counts have the same jobs', () => {
    assert.deepEqual(Object.keys(before.cores.values).sort(), jobsWith('cpu'));
    for (const job of ['ledger', 'web', 'recommend', 'search', 'cart'])
      assert.ok(before.share.values[job] > 0 && before.share.values[job] <= 1, `${job}: ${before.share.values[job]}`);
    assert.deepEqual(Object.keys(before.profiles.values).sort(), [...jobsWith('cpu'), 'unknown_service'].sort());
    assert.deepEqual(before.profiles.infos, []);
  });

  await t.test('series: what cpu selects', async () => {
    const names = (await api(server, 'series', { 'match[]': 'cpu', ...window })).map((s) => `${s.__name__} ${s.job}`);
    assert.deepEqual([...new Set(names)].sort(), ['itimer unknown_service', 'wall web',
      ...jobsWith('cpu').filter((job) => job !== 'web').map((job) => `process_cpu ${job}`)].sort());
  });

  await t.test('rules of the book and of examples/ go well', async () => {
    await checkRules(server, arrived);
    await until('cores are recorded of each', 60, async () => {
      const { values } = await byJob(server, 'job:cpu:cores', Date.now() / 1000);
      return jobsWith('cpu').every((job) => values[job] > 0);
    });
  });

  await t.test('the page Services has a row of each, and each cell', () => {
    const { rows, recorded, infos } = before.services;
    assert.deepEqual(Object.keys(rows).sort(), Object.keys(fleet).sort());
    for (const job of Object.keys(fleet)) checkRow(rows[job], job, recorded[job] ?? 0);
    const leftOut = (key) => infos[key].filter((info) => / left out: /.test(info)).sort();
    for (const key of ['cores', 'cores over time', 'top']) assert.deepEqual(leftOut(key), LEFT_OUT.cpu, key);
    for (const key of ['memory', 'memory over time']) assert.deepEqual(leftOut(key), LEFT_OUT.memory, key);
  });

  // Levels are divided by the time that has any of the whole selection, so a heap is put where others have been: a scrape
  // began there, and ended.
  const { result: [{ values }] } = await query(server, `up{job="shop", profile="memory"}[${WHOLE}]`, { time: end });
  const [instant] = values.slice(0, -1).filter(([, up]) => up === '1').pop();
  const time = instant * 1000;
  const odd = {
    micro: ['process_cpu', cpuProfile({ ...WORK, time, of: ['cpu', 'microseconds'], samples: [{ stack: [0, 1], value: 20e3 }] })],
    named: ['cpu', cpuProfile({ ...WORK, time })],
    seconds: ['memory', levelProfile('inuse_space', 'seconds', { ...WORK, time })],
    kibibytes: ['memory', levelProfile('inuse_space', 'KiB', { ...WORK, time, samples: [{ stack: [0, 1], value: 1024 }] })],
    ticks: ['process_cpu', cpuProfile({ ...WORK, time, of: ['cpu', 'count'] })],
  };
  for (const [job, [name, body]] of Object.entries(odd)) {
    await t.test(`an odd sender changes no other's answers: ${job}`, async () => {
      const known = await askAll(server, page, window);
      const res = await request(`${server.url}/api/v1/ingest?${new URLSearchParams({ name, job, time: instant, interval: '1ms' })}`,
        { method: 'POST', body });
      assert.equal(res.status, 200, res.body.toString());
      const pushedAt = Date.now();
      const now = await askAll(server, page, window);
      const others = (values) => Object.fromEntries(Object.entries(values).filter(([other]) => other !== job));
      for (const key of Object.keys(QUESTIONS)) assert.deepEqual(others(now[key].values), known[key].values, key);
      assert.deepEqual(others(now.services.rows), known.services.rows);
      assert.equal(now.services.rows[job]?.profiles, 1);
      await checkRules(server, pushedAt);
    });
  }

  await t.test('odd senders are shown where they convert, and named where they do not', async () => {
    const { cpu, memory, 'last memory': last, services } = await askAll(server, page, window);
    assert.deepEqual([cpu.values.micro, cpu.values.named, cpu.values.ticks], [20e6, 30e6, undefined]);
    assert.deepEqual([last.values.kibibytes, last.values.seconds], [1 << 20, undefined]);
    assert.ok(cpu.infos.some((info) => /process_cpu:cpu:count.* of job "ticks" is in count/.test(info)), cpu.infos.join('\n'));
    assert.ok(memory.infos.some((info) => /memory:inuse_space:seconds.* of job "seconds" is in seconds/.test(info)), memory.infos.join('\n'));
    for (const job of ['micro', 'named']) assert.equal(services.rows[job].top.function, 'Cart::price');
    assert.ok(services.rows.kibibytes.memory > 0);
  });
});
