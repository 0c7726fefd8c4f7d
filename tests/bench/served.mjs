// Through the server, over HTTP: ingest and merges, of profiles recorded from the demo under load and of the fleet's.
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { api, build, request, startDemo, startServer } from '../e2e/lib.mjs';
import { bytesOf, costing, decoding, fleet, fleetFiles, googleMerge, lines, emptyDirectory } from './common.mjs';
import { count, note } from './report.mjs';

const PROFILES = 1000;
const PODS = 10;
const ROUNDS = 7;
const RECORD_SECONDS = 2;
const RECORD_ROUNDS = 8;

/** Several demo processes at once, so that one stack is not like the other. Once per run. */
let recorded;
function record(t) {
  recorded ??= (async () => {
    const dir = emptyDirectory('recorded');
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
  })();
  return recorded;
}

const smallest = (files) => files.reduce((a, b) => (statSync(b).size < statSync(a).size ? b : a));

/** A scrape's work but for fetching: gzip body to struct, then to a row that is stored and synced. */
export async function ingest(t) {
  const files = await record(t);
  decoding(smallest(files.cpu), 'recorded CPU');
  decoding(smallest(files.heap), 'recorded heap');
  const cpu = decoding(fleetFiles('fleet-cpu', 1, 1)[0], 'fleet-cpu');
  const heap = decoding(fleetFiles('heap', 1, 1)[0], 'heap of 2,500 entries');
  const dir = emptyDirectory('push');
  const args = ['push', `--data=${dir}`, '--set=fleet-cpu', '--kinds=2', '--service=20', '--scrapes=15', '--every=0', '--json'];
  const rates = [1, 2, 3].map(() => {
    emptyDirectory('push');
    const [p] = lines(fleet, args);
    if (p.failed) throw new Error(`${p.failed} profiles were not stored`);
    return p.profiles / p.storing_cpu_s;
  });
  note('append CPU and heap by turns, durable, a CPU second', { ours: rates, unit: 'profiles/s' });
  note('targets on one core: 10 s, CPU + heap, not fetched',
    { ours: rates.map((r) => 10 / (1 / cpu + 1 / heap + 2 / r)), unit: 'targets' });
}

async function push(server, name, list, start) {
  const began = process.hrtime.bigint();
  let next = 0;
  const worker = async () => {
    for (let i = next++; i < list.length; i = next++) {
      const res = await request(`${server.url}/api/v1/ingest?name=${name}&job=shop&instance=pod${i % PODS}` +
        `&time=${start + Math.floor(i / PODS) * 10}`, { method: 'POST', body: readFileSync(list[i]) });
      if (res.status !== 200) throw new Error(`${name}: ${res.status} ${res.body}`);
    }
  };
  await Promise.all(Array.from({ length: 16 }, worker));
  return Number(process.hrtime.bigint() - began) / 1e9;
}

async function mergeOf(server, { label, name, selector, list, checked }) {
  const start = Math.floor(Date.now() / 1000) - Math.ceil(PROFILES / PODS) * 10 - 60;
  const span = { start: start - 1, end: Math.floor(Date.now() / 1000), max_nodes: 2048 };
  const took = await push(server, name, list, start);
  note(`ingest over HTTP, durable, ${label}, one client`, { ours: PROFILES / took, unit: 'profiles/s' });
  const google = googleMerge(list);
  const ours = await costing(server, `merge(${selector}{job="shop"})`, span, ROUNDS);
  const result = ours.last.result[0];
  if (result?.profiles !== PROFILES) throw new Error(`${result?.profiles} profiles merged`);
  if (checked && result.total !== google.total) throw new Error(`total ${result.total}, google/pprof says ${google.total}`);
  note(`merge of ${count(PROFILES)} profiles as JSON, ${label}`, { ours: ours.times, theirs: google.seconds, unit: 'seconds' });
  const top = await costing(server, `top(10, merge(${selector}{job="shop"}))`, span, ROUNDS);
  note(`top 10 of the same, ${label}`, { ours: top.times, theirs: google.seconds, unit: 'seconds' });
}

async function onServer(t, name, cases) {
  const dir = emptyDirectory(name);
  const server = await startServer(t, { dir, config: 'scrape_configs: []\n', args: ['--web.enable-ingest'] });
  for (const c of cases) await mergeOf(server, c);
  const metrics = (await request(`${server.url}/metrics`)).body.toString();
  const rss = Number(metrics.match(/^process_resident_memory_bytes (\S+)$/m)[1]);
  note(`resident memory of the server after ${name}`, { ours: rss / (1 << 20), unit: 'MiB', of: await api(server, 'status/tsdb') });
  await server.stop();
  note(`data directory of ${name}`, { ours: bytesOf(join(dir, 'data')) / (1 << 20), unit: 'MiB' });
}

export async function merge(t) {
  const files = await record(t);
  const many = (list) => Array.from({ length: PROFILES }, (_, i) => list[i % list.length]);
  await onServer(t, 'merge-recorded', [
    { label: 'recorded CPU', name: 'process_cpu', selector: 'cpu', list: many(files.cpu), checked: true },
    { label: 'recorded heap', name: 'memory', selector: 'memory:inuse_space', list: many(files.heap) }]);
  await onServer(t, 'merge-fleet', [
    { label: 'fleet-cpu', name: 'process_cpu', selector: 'cpu', list: fleetFiles('fleet-cpu', PODS, PROFILES / PODS), checked: true }]);
}

export function binary() {
  note('the server program', { ours: statSync(join(build, 'epimetheus')).size / 1e6, unit: 'MB' });
}
