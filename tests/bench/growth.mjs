// What costs how much with 1,000, 10,000, ... series, and with which exponent it grows: `make bench BENCH=growth`, for a
// million BENCH_SERIES=1000000. Each series has two small profiles. They are stored without HTTP by `fleet push`, which ends
// like kill -9; queries go to the real server. Costs are CPU time of the server, but for starts.
import { spawnSync } from 'node:child_process';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { Agent, get } from 'node:http';
import { freemem } from 'node:os';
import { join } from 'node:path';
import { cpuOf, emptyDirectory, env, fleet } from './common.mjs';
import { count, note, spread } from './report.mjs';
import { growthLines, growthOf, sizes } from './slope.mjs';
import { serve } from './storage.mjs';

const PODS = 1000; // of a service at most; other services come for more
const SCRAPES = 2; // the first makes the series
const STARTS = 3;
const ROUNDS = 3;
const ROUND_CPU = 0.25; // seconds: the clock of /proc/PID/stat ticks every 10 ms
const ROUND_WALL = 5; // seconds: a round ends, and one question that takes longer is asked once
const PATIENCE = '20m'; // of the server with a query
const FREE = 4096; // bytes of memory for each series, or the size is left out
const LARGE = ['--storage.tsdb.symbol-memory=16GiB', '--query.max-memory=16GiB', '--query.max-memory-total=16GiB',
  `--query.timeout=${PATIENCE}`];

/** For the file: the table's rows. */
export const grown = [];

const elapsed = (began) => Number(process.hrtime.bigint() - began) / 1e9;

const residentOf = (pid) => Number(readFileSync(`/proc/${pid}/status`).toString().match(/^VmRSS:\s+(\d+) kB$/m)[1]) * 1024;

/** n series of two profiles; what storing them took. */
function push(dir, services, pods) {
  const run = spawnSync(fleet, ['push', `--data=${join(dir, 'data')}`, '--set=small-cpu', '--kinds=1', '--unique', `--service=${services}`,
    `--pods=${pods}`, `--scrapes=${SCRAPES}`, '--every=0', '--symbols-bytes=16GiB', '--no-compaction', '--json', '--kill'], { maxBuffer: 64 << 20 });
  const line = run.stdout.toString().split('\n').find((l) => l.startsWith('{'));
  if (run.signal !== 'SIGKILL' || !line) throw new Error(`fleet push: ${run.stderr.toString().trim().split('\n').at(-1)}`);
  const p = JSON.parse(line);
  if (p.failed) throw new Error(`${p.failed} profiles were not stored`);
  return p;
}

async function begun(t, dir, n) {
  writeFileSync(join(dir, 'epimetheus.yml'), 'scrape_configs: []\n');
  return serve(t, dir, '15d', '0,1', `--config.file=${join(dir, 'epimetheus.yml')}`, `--storage.tsdb.max-series=${n + 1000}`, ...LARGE);
}

/** Questions: path and parameters of the i-th time, and what the answer must say. Another series or service each time. */
function questions(n, services, pods, span) {
  const job = (i) => `svc${String(i * 7 % services).padStart(3, '0')}`;
  const one = (i) => `{job="${job(i)}",instance="${job(i)}-pod${i * 31 % pods}"}`;
  const list = (length) => (data) => Array.isArray(data) && data.length === length;
  const merged = (profiles) => (data) => data.result?.[0]?.profiles === profiles;
  return [
    { what: 'exact selector', expected: 0, path: 'series', params: (i) => ({ 'match[]': `process_cpu${one(i)}`, ...span }), right: list(1) },
    { what: 'label values of job', expected: 1, path: 'label/job/values', params: () => span, right: list(services) },
    { what: 'label values of one job', expected: 0, path: 'label/instance/values', right: list(pods),
      params: (i) => ({ 'match[]': `{job="${job(i)}"}`, ...span }) },
    { what: 'label counts', expected: 1, path: 'label_counts', params: () => ({}),
      right: (data) => data.find((l) => l.name === 'instance')?.series === n },
    { what: 'merge of one series', expected: 0, path: 'query', params: (i) => ({ query: `merge(cpu${one(i)})`, ...span }), right: merged(SCRAPES) },
    { what: 'merge of all series', expected: 1, path: 'query', params: () => ({ query: 'merge(cpu)', ...span }), right: merged(n * SCRAPES) },
  ];
}

/** The answer's bytes; however long it takes. Connections are kept. */
function answer(url, agent) {
  return new Promise((done, fail) => {
    get(url, { agent }, (res) => {
      const chunks = [];
      res.on('data', (c) => chunks.push(c));
      res.on('error', fail);
      res.on('end', () => {
        const body = Buffer.concat(chunks);
        if (res.statusCode === 200) done(body);
        else fail(new Error(`${res.statusCode} ${body}`));
      });
    }).on('error', fail);
  });
}

/** CPU milliseconds of the server for one answer, by rounds. */
async function costOf(server, agent, { what, path, params, right }) {
  const ask = (i) => answer(`${server.url}/api/v1/${path}?${new URLSearchParams(params(i))}`, agent);
  const cpu0 = cpuOf(server.child.pid), began0 = process.hrtime.bigint(), first = JSON.parse(await ask(0)).data;
  if (!right(first)) throw new Error(`${what}: the answer is ${JSON.stringify(first).slice(0, 200)}`);
  if (elapsed(began0) > ROUND_WALL) return [(cpuOf(server.child.pid) - cpu0) * 1e3];
  const rounds = [];
  let i = 0;
  while (rounds.length < ROUNDS) {
    const before = cpuOf(server.child.pid), from = i, began = process.hrtime.bigint();
    let cpu;
    do {
      await ask(i++);
      cpu = cpuOf(server.child.pid) - before;
    } while (cpu < ROUND_CPU && elapsed(began) < ROUND_WALL);
    rounds.push(cpu * 1e3 / (i - from));
  }
  return rounds;
}

async function measure(t, n, empty, add) {
  const dir = emptyDirectory('growth'), services = Math.ceil(n / PODS), pods = Math.ceil(n / services), series = services * pods;
  const first = Math.floor(Date.now() / 1000) - 60, p = push(dir, services, pods);
  const created = p.half_cpu_s * 1e6 / series, later = (p.storing_cpu_s - p.half_cpu_s) * 1e6 / series / (SCRAPES - 1);
  add('CPU of a profile, new series', 0, n, 'us', created, p);
  add('CPU of a profile, known series', 0, n, 'us', later);
  const seconds = [], cpu = [];
  let server;
  for (let i = 0; i < STARTS; i++) {
    await server?.stop('SIGKILL');
    server = await begun(t, dir, series);
    seconds.push(server.seconds);
    cpu.push(cpuOf(server.child.pid));
  }
  add('start after kill -9', 1, n, 'seconds', seconds);
  add('start after kill -9, CPU', 1, n, 'seconds', cpu);
  add('resident memory a series', 0, n, 'bytes', (residentOf(server.child.pid) - empty) / series);
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const span = { start: first, end: Math.ceil(Date.now() / 1000) + 1 };
  for (const q of questions(series, services, pods, span)) add(q.what, q.expected, n, 'ms', await costOf(server, agent, q));
  agent.destroy();
  await server.stop('SIGKILL');
  rmSync(dir, { recursive: true, force: true });
}

/** What the server has in memory without any series. */
async function emptyServer(t) {
  const dir = emptyDirectory('growth'), server = await begun(t, dir, 0), bytes = residentOf(server.child.pid);
  await server.stop('SIGKILL');
  return bytes;
}

export async function growth(t) {
  const costs = new Map();
  const add = (what, expected, n, unit, ours, of) => {
    note(`${what}, ${count(n)} series`, { ours, unit, of });
    if (!costs.has(what)) costs.set(what, { what, unit, expected, points: [] });
    costs.get(what).points.push([n, spread(ours).median]);
  };
  const empty = await emptyServer(t);
  try {
    for (const n of sizes(env('BENCH_SERIES', 100000))) {
      if (n * FREE > freemem()) console.log(`${count(n)} series: left out, memory for them is not free`);
      else await measure(t, n, empty, add);
    }
  } finally { // what was measured before a failure is shown too
    for (const { what, unit, expected, points } of costs.values()) grown.push({ what, unit, ...growthOf(points, expected) });
    console.log(`\n${growthLines(grown).join('\n')}\n`);
  }
}
