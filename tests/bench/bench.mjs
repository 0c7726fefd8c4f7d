// The figures of this server beside google/pprof's on the same profiles in the same run: `make bench`. Prints a table
// of ratios with their spread and writes build/bench.json. Recorded from the demo service under load, not made up.
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { build, query, request, root, startDemo, startServer, api } from '../e2e/lib.mjs';

const PROFILES = 1000;
const PODS = 10;
const ROUNDS = 15;
const RECORD_SECONDS = 2;
const RECORD_ROUNDS = 8;

const ends = [];
const t = { after: (fn) => ends.push(fn) };
const dir = mkdtempSync(join(tmpdir(), 'epi-bench-'));
const results = [];

function note(what, ours, theirs, unit, ratio) {
  results.push({ what, ours, theirs, unit, ratio });
  const show = (x) => (x === undefined ? '' : x >= 100 ? x.toFixed(0) : x.toPrecision(3));
  console.log(`${what.padEnd(58)} ${show(ours).padStart(10)} ${show(theirs).padStart(10)} ${unit.padEnd(12)} ${ratio ? `${show(ratio)}x` : ''}`);
}

const median = (list) => list.slice().sort((a, b) => a - b)[list.length >> 1];

/** Several demo processes at once, so that one stack is not like the other. */
async function record() {
  const demos = [];
  for (let i = 0; i < 4; i++) demos.push(await startDemo(t, i % 2 ? 'v2' : 'v1', 'none', 60));
  const files = { cpu: [], heap: [] };
  for (let round = 0; round < RECORD_ROUNDS; round++) {
    await Promise.all(demos.map(async (d, i) => {
      for (const [kind, path] of [['cpu', `profile?seconds=${RECORD_SECONDS}`], ['heap', 'allocs']]) {
        const res = await request(`http://${d.address}/debug/pprof/${path}`);
        const file = join(dir, `${kind}-${round}-${i}.pb.gz`);
        writeFileSync(file, res.body);
        files[kind].push(file);
      }
    }));
  }
  await Promise.all(demos.map((d) => d.stop()));
  return files;
}

function ingest(files) {
  const out = execFileSync('tests/proto/bench/run.sh', [build, files.cpu[0], files.heap[0]], { cwd: root }).toString();
  for (const line of out.trim().split('\n').slice(1)) {
    const [file, , , , , both, parse] = line.trim().split(/\s+/);
    note(`inflate and decode, ${file}`, Number(both), Number(parse), 'profiles/s', both / parse);
  }
}

function googleMerge(list) {
  const program = join(build, 'bench', 'merge');
  mkdirSync(join(build, 'bench'), { recursive: true });
  execFileSync('go', ['build', '-o', program, 'tests/bench/merge.go'], { cwd: root, env: { ...process.env, GO111MODULE: 'off', GOFLAGS: '', GOPATH: '/usr/share/gocode' } });
  const run = spawnSync(program, { input: list.join('\n'), maxBuffer: 1 << 20 });
  if (run.status !== 0) throw new Error(run.stderr.toString());
  return run.stdout.toString().trim().split(' ').map(Number);
}

function diskBytes(path) {
  return readdirSync(path, { withFileTypes: true, recursive: false }).reduce((n, e) => n + (e.isDirectory() ? diskBytes(join(path, e.name)) : statSync(join(path, e.name)).size), 0);
}

async function push(server, kind, name, list, start) {
  const began = process.hrtime.bigint();
  let next = 0;
  const worker = async () => {
    for (let i = next++; i < list.length; i = next++) {
      const res = await request(`${server.url}/api/v1/ingest?name=${name}&job=shop&instance=pod${i % PODS}&time=${start + Math.floor(i / PODS) * 10}`,
        { method: 'POST', body: readFileSync(list[i]) });
      if (res.status !== 200) throw new Error(`${kind}: ${res.status} ${res.body}`);
    }
  };
  await Promise.all(Array.from({ length: 16 }, worker));
  return Number(process.hrtime.bigint() - began) / 1e9;
}

async function timed(server, text, params, rounds = ROUNDS) {
  const times = [];
  let last;
  for (let i = 0; i < rounds; i++) {
    const began = process.hrtime.bigint();
    last = await query(server, text, params);
    times.push(Number(process.hrtime.bigint() - began) / 1e9);
  }
  return { s: median(times), min: Math.min(...times), max: Math.max(...times), last };
}

async function merges(files) {
  const server = await startServer(t, { dir, config: 'scrape_configs: []\n', args: ['--web.enable-ingest'] });
  const start = Math.floor(Date.now() / 1000) - Math.ceil(PROFILES / PODS) * 10 - 60;
  const span = { start: start - 1, end: Math.floor(Date.now() / 1000), max_nodes: 2048 };
  for (const [kind, name, selector] of [['cpu', 'process_cpu', 'cpu'], ['heap', 'memory', 'memory:inuse_space']]) {
    const list = Array.from({ length: PROFILES }, (_, i) => files[kind][i % files[kind].length]);
    const took = await push(server, kind, name, list, start);
    note(`ingest over HTTP, durable, ${kind} (one client process)`, PROFILES / took, undefined, 'profiles/s');
    const [seconds, total] = googleMerge(list);
    const ours = await timed(server, `merge(${selector}{job="shop"})`, span);
    if (ours.last.result[0].profiles !== PROFILES) throw new Error(`${ours.last.result[0].profiles} profiles merged`);
    if (kind === 'cpu' && ours.last.result[0].total !== total) throw new Error(`total ${ours.last.result[0].total}, google/pprof says ${total}`);
    note(`merge of ${PROFILES} ${kind} profiles as JSON (${(ours.min * 1e3).toFixed(1)}-${(ours.max * 1e3).toFixed(1)} ms)`, ours.s, seconds, 'seconds', seconds / ours.s);
    const top = await timed(server, `top(10, merge(${selector}{job="shop"}))`, span);
    note(`top 10 of the same (${(top.min * 1e3).toFixed(1)}-${(top.max * 1e3).toFixed(1)} ms)`, top.s, undefined, 'seconds');
  }
  const metrics = (await request(`${server.url}/metrics`)).body.toString();
  const rss = Number(metrics.match(/^process_resident_memory_bytes (\S+)$/m)[1]);
  note('resident memory of the server after that', rss / (1 << 20), undefined, 'MiB');
  const status = await api(server, 'status/tsdb');
  await server.stop();
  note('data directory', diskBytes(join(dir, 'data')) / (1 << 20), undefined, 'MiB');
  return status;
}

try {
  console.log(`${''.padEnd(58)} ${'this'.padStart(10)} ${'pprof'.padStart(10)}`);
  const files = await record();
  ingest(files);
  const status = await merges(files);
  note('the server program', statSync(join(build, 'epimetheus')).size / 1e6, undefined, 'MB');
  writeFileSync(join(root, 'build', 'bench.json'), `${JSON.stringify({ results, tsdb: status }, null, 1)}\n`);
} finally {
  for (const end of ends.reverse()) await end();
  rmSync(dir, { recursive: true, force: true });
}
