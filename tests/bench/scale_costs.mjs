// What one profile costs in a cluster, with the fleet's profiles: bytes of segments, of the head on the disk and of blocks, CPU of
// cutting and joining and of following. Segments and following: one shard that scrapes, then a query node that has nothing.
import { execFileSync } from 'node:child_process';
import { readFileSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { api, request, sleep, until } from '../e2e/lib.mjs';
import { bytesOf, cpuOf, emptyDirectory, env, fleet, lines, tsdbBench } from './common.mjs';
import { CountedCluster, listenAll } from './scale_cluster.mjs';

const SERVICES = 2, PODS = 10, INTERVAL_S = 2, SEGMENT_S = 4; // two scrapes a segment, as 15 s and 30 s are
const FIRST = 9000; // as `fleet floor` takes them
const SETS = [['fleet-cpu', '/debug/pprof/profile'], ['heap', '/debug/pprof/allocs']];

/** Paths of the scrapes of each pod: of [path][pod], one after the other. */
function recorded(dir, scrapes) {
  const out = {};
  for (const [set, path] of SETS) {
    const to = join(dir, set);
    execFileSync(fleet, ['write', to, `--set=${set}`, `--service=${SERVICES}`, `--pods=${PODS}`, `--scrapes=${scrapes}`, `--first=${FIRST}`],
      { stdio: 'ignore' });
    const by = new Map();
    for (const f of readdirSync(to).sort()) {
      const pod = f.split('.').slice(0, 2).join('.');
      by.set(pod, [...(by.get(pod) ?? []), join(to, f)]);
    }
    out[path] = [...by.values()];
  }
  return out;
}

const sum = (list) => list.reduce((a, b) => a + b, 0);

async function metric(server, name) {
  const text = (await request(`${server.url}/metrics`)).body.toString();
  return sum(text.split('\n').filter((l) => l.startsWith(`${name} `)).map((l) => Number(l.slice(name.length + 1))));
}

/**
 * Segments and following. In the first scrapes of a window most stacks are new, so bytes of segments are those of the last quarter;
 * what else is measured is a mean over all, and more than in a window of two hours.
 */
export async function shipped(t, seconds) {
  const dir = emptyDirectory('scale-costs'), scrapes = Math.ceil(seconds / INTERVAL_S) + 2;
  t.after(() => rmSync(dir, { recursive: true, force: true, maxRetries: 10 })); // last: targets are still asked until they end
  const bodies = recorded(join(dir, 'bodies'), scrapes), next = new Map();
  const addresses = await listenAll(t, SERVICES * PODS, (i, path) => {
    const n = next.get(`${i} ${path}`) ?? 0;
    next.set(`${i} ${path}`, n + 1);
    return readFileSync(bodies[path][i][Math.min(n, scrapes - 1)]);
  });
  const services = Array.from({ length: SERVICES }, (_, s) =>
    `  - {targets: [${addresses.slice(s * PODS, (s + 1) * PODS).map((a) => `'${a}'`)}], labels: {service: svc${s}}}\n`);
  const cluster = await new CountedCluster(t, { dir, config: `global: {scrape_interval: ${INTERVAL_S}s}
scrape_configs:
- job_name: fleet
  profiling_config: {pprof_config: {process_cpu: {seconds: 1}, block: {enabled: false}, mutex: {enabled: false}, goroutine: {enabled: false}, goroutineleak: {enabled: false}}}
  static_configs:
${services.join('')}` }).open();
  const idle = cpuOf((await cluster.start('idle', ['--mode=query'])).child.pid);
  const shard = await cluster.start('shard-0', ['--shard.name=shard-0', `--storage.bucket.segment-interval=${SEGMENT_S}s`],
    cluster.config);
  await sleep(seconds * 1000);
  const n = await metric(shard, 'epimetheus_scrape_scrapes_total{result="ok"}'), head = await api(shard, 'status/tsdb');
  if (!n) throw new Error('no target was scraped');
  const { manifest } = cluster.objectsOf('shard-0'), segments = manifest.windows.flatMap((w) => w.segments);
  const node = await cluster.start('query-0', ['--mode=query', '--storage.bucket.poll-interval=1s']);
  await until('the node has all', 60, async () => {
    const { shards } = await api(node, 'status/cluster');
    return shards.length === 1 && shards[0].segments >= segments.length;
  });
  const followed = await metric(shard, 'epimetheus_scrape_scrapes_total{result="ok"}'), cpu = cpuOf(node.child.pid) - idle;
  await Promise.all([node.stop(), shard.stop()]);
  const bytes = segments.map((s) => s.bytes), late = bytes.slice(-Math.ceil(bytes.length / 4));
  return { n, segmentBytes: sum(late) / (n * late.length / bytes.length), segmentBytesFirst: sum(bytes) / n, diskBytes: head.diskBytes / n, samples: head.samplesAppended / n,
    followDiskBytes: bytesOf(join(dir, 'query-0', 'data')) / followed, followCpu: Math.max(cpu, 0) / followed };
}

/** Bytes of a profile in blocks of two hours, cut at once or joined of four. */
function blocks(minutes) {
  const parts = SETS.map(([set]) => {
    const [, m] = lines(tsdbBench, ['bytes', `--data=${emptyDirectory('scale-bytes')}`, `--set=${set}`, '--scrapes=480', '--pods=5',
      `--window-minutes=${minutes}`]);
    return { 'rows.ldb': (m.raw_bytes + m.other_bytes) / m.rows, 'rollups.ldb': (m.rollup_bytes + m.symbol_bytes) / m.rows };
  });
  return Object.fromEntries(Object.keys(parts[0]).map((name) => [name, sum(parts.map((p) => p[name])) / SETS.length]));
}

/** Costs of a profile, the mean of CPU and heap. `work` cuts and joins once: half of it is taken for each. */
export async function measureCosts(t) {
  const seconds = env('BENCH_SCALE_COSTS_SECONDS', 180);
  const [w] = lines(tsdbBench, ['work', `--data=${emptyDirectory('scale-work')}`]);
  const cut = blocks(120), joined = blocks(30), s = await shipped(t, seconds);
  const work = (w.work_cpu_s / w.samples) * s.samples;
  return { ...s, workPerSample: w.work_cpu_s / w.samples, cutCpu: work / 2, joinCpu: work / 2, cut, joined, metaBytes: 700 };
}
