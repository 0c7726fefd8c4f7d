// A million targets with an object store as the cluster: what a profile costs is measured here, the shards and query nodes are
// simulated (scale_model.mjs), and the simulation is compared with a small real cluster whose requests are counted.
// tsdb/bucket/SCALE.md says what comes out of it.
import { emptyDirectory, env } from './common.mjs';
import { count, note, row } from './report.mjs';
import { CountedCluster, startTargets } from './scale_cluster.mjs';
import { measureCosts } from './scale_costs.mjs';
import { DEFAULTS, Shard, follow, manifestBytes, moved, nothing, plus, priceOf, PRICES, segmentEntry, startOf } from './scale_model.mjs';

const DAY = 86400, MONTH = 30 * DAY;
const GB = 1e9, TB = 1e12;
const WITHIN = 0.1; // of what is counted, the simulation is

/** What measureCosts gave when SCALE.md was written (BENCH_SCALE_SECONDS=0 takes these), on two shared cores at a load of 45. */
export const RECORDED = { samples: 743, segmentBytes: 3356, diskBytes: 5044, followDiskBytes: 4946, followCpu: 82.8e-6, cutCpu: 56.2e-6,
  joinCpu: 56.2e-6, cut: { 'rows.ldb': 246.6, 'rollups.ldb': 133.4 }, joined: { 'rows.ldb': 246.7, 'rollups.ldb': 133.4 }, metaBytes: 700 };

/** README, "targets on one core, CPU and heap every 10 s, fetched": 6,479; so much CPU a profile of scraping and storing. */
const SCRAPE_CPU = 10 / (2 * 6479);

/** The cluster that is asked about. latencyS: of a request of a store in the same region; the store's and a network card's rate. */
const LOAD = { targets: 1e6, scrapeS: 15, profiles: 2, perShard: 10000, nodes: 2, latencyS: 0.03, bytesPerS: 1.25e9, cores: 8, busy: 0.6 };

const mean = (list) => list.reduce((a, b) => a + b, 0) / list.length;

/* ---- the check ---- */

const CHECK = { segmentS: 4, pollS: 2, windowS: 40, lateS: 20, retentionS: 300, blockMaxS: 480, deleteDelayS: 20 };
const BUSY_S = 1; // rounds and polls are late then: each waits for its interval after the one before has ended
const CHECK_SHARDS = 3, CHECK_NODES = 2, CHECK_TARGETS = 12;

const scraping = (targets) => `global: {scrape_interval: 2s}
scrape_configs:
- job_name: fleet
  profiling_config: {pprof_config: {process_cpu: {seconds: 1}, block: {enabled: false}, mutex: {enabled: false}, goroutine: {enabled: false}, goroutineleak: {enabled: false}}}
  static_configs: [{targets: [${targets.map((a) => `'${a}'`).join(', ')}]}]
`;

/** The size by the model's formula of a manifest that was written. */
export function sizeOf(m, host = m.host) {
  const keys = (m.gone ?? []).map((g) => g.key.length);
  return manifestBytes({ shard: m.shard, host, generation: m.generation, intervalS: m.interval_ns / 1e9, leaseS: m.lease_ns / 1e9, clockNs: m.clock_ns, idsBytes: m.files.ids?.bytes,
    windows: m.windows.map((w) => ({ n: w.segments.length, bytes: w.segments.reduce((n, s) => n + segmentEntry(s), 0) })),
    blocks: m.blocks.map((b) => ({ level: b.level, files: Object.fromEntries(Object.entries(b.files).map(([k, f]) => [k, f.bytes])) })),
    gone: keys });
}

const small = { 'rows.ldb': 100, 'rollups.ldb': 50, spare: 20 };
const checked = { ...DEFAULTS, ...CHECK, lagS: 1, profilesPerS: 12, segmentBytes: 0, segmentBytesPerS: 300, batchesPerS: 12,
  blockBytes: { cut: small, joined: small }, metaBytes: 600, putBytesPerS: 1e6,
  idsBytes: 30, idsChange: false };

async function run(t, seconds) {
  const addresses = await startTargets(t, CHECK_TARGETS);
  const cluster = await new CountedCluster(t, { dir: emptyDirectory('scale-check'), config: scraping(addresses),
    shardFlags: { 'storage.tsdb.window': `${CHECK.windowS}s`, 'storage.tsdb.out-of-order-time-window': `${CHECK.lateS}s`,
      'storage.tsdb.max-block-duration': `${CHECK.blockMaxS}s`, 'storage.tsdb.retention.time': `${CHECK.retentionS}s`,
      'storage.bucket.segment-interval': `${CHECK.segmentS}s`, 'storage.bucket.delete-delay': `${CHECK.deleteDelayS}s` },
    nodeFlags: { 'storage.bucket.poll-interval': `${CHECK.pollS}s` } }).open();
  for (let i = 0; i < CHECK_SHARDS; i++) await cluster.shard(i, CHECK_SHARDS);
  for (let i = 0; i < CHECK_NODES; i++) await cluster.node(i);
  await cluster.settle(seconds);
  const endS = Date.now() / 1000;
  const names = (kind, n) => Array.from({ length: n }, (_, i) => `${kind}-${i}`);
  const counted = Object.fromEntries(['shard', 'query'].map((kind) => [kind, names(kind, kind === 'shard' ? CHECK_SHARDS : CHECK_NODES)
    .map((name) => cluster.requestsOf(name).kinds).reduce((a, b) => plus(a, b))]));
  return { cluster, endS, counted };
}

/** Seconds that the shards took for a piece of work, a mean: as they logged it. */
function elapsed(cluster, message) {
  const list = Array.from({ length: CHECK_SHARDS }, (_, i) => cluster.members.get(`shard-${i}`).err).join('\n').split('\n')
    .filter((l) => l.includes(`msg="${message}"`)).map((l) => l.match(/elapsed=([\d.]+)(ms|s)\b/)).filter(Boolean)
    .map((m) => Number(m[1]) / (m[2] === 'ms' ? 1000 : 1));
  return list.length ? mean(list) : 0;
}

/** The same shards and nodes, from the times at which they were ready, with cuts and joins as long as they took. */
function simulated({ cluster, endS }) {
  const out = { shard: nothing(), query: nothing() }, cut = elapsed(cluster, 'window became a block');
  const took = { cutS: cut / CHECK.windowS, joinS: elapsed(cluster, 'blocks joined') / (4 * CHECK.windowS) };
  if (cut > BUSY_S) throw new Error(`the machine is too busy to compare: cutting a few rows took ${cut.toFixed(1)} s`);
  const at = (name) => cluster.members.get(name).startS;
  const shards = Array.from({ length: CHECK_SHARDS }, (_, i) => new Shard({ ...checked, ...took, shard: `shard-${i}` }, at(`shard-${i}`)).run(endS));
  for (const s of shards) out.shard = plus(out.shard, s.requests);
  for (let i = 0; i < CHECK_NODES; i++) {
    const from = at(`query-${i}`);
    for (const s of shards) out.query = plus(out.query, follow(s, from, endS, checked));
    out.query.list += 1 + Math.floor((endS - from) / checked.pollS);
  }
  return { out, shards };
}

export async function check(t, seconds) {
  const real = await run(t, seconds), { out } = simulated(real);
  const wrong = [];
  for (const [kind, who] of [['shard', `${CHECK_SHARDS} shards`], ['query', `${CHECK_NODES} query nodes`]]) {
    for (const request of Object.keys(out[kind])) {
      const ours = real.counted[kind][request], theirs = out[kind][request];
      if (!ours && !theirs) continue;
      note(`${who}, ${seconds} s: ${request} (other: simulated)`, { ours, theirs, unit: 'requests' });
      if (Math.abs(ours - theirs) > Math.max(WITHIN * ours, 6)) wrong.push(`${who}: ${ours} ${request}, simulated ${theirs}`);
    }
  }
  for (let i = 0; i < CHECK_SHARDS; i++) {
    const { text, manifest } = real.cluster.objectsOf(`shard-${i}`);
    note(`manifest of shard ${i} (other: by the formula)`, { ours: text.length, theirs: sizeOf(manifest), unit: 'bytes' });
    if (text.length !== sizeOf(manifest)) wrong.push(`shard ${i}: a manifest of ${text.length} bytes, by the formula ${sizeOf(manifest)}`);
  }
  if (wrong.length) throw new Error(`the simulation is not what was counted: ${wrong.join('; ')}`);
}

/* ---- a million targets ---- */

/** One shard of so many targets at the default settings, or changed ones, in its steady state; and a node that follows it. */
export function plan(costs, load = LOAD, change = {}) {
  const l = { ...LOAD, ...load }, o = { ...DEFAULTS, ...change };
  const shards = Math.ceil(l.targets / l.perShard), perS = (l.targets / shards) * l.profiles / l.scrapeS;
  const perSecond = (files) => Object.fromEntries(Object.entries(files).map(([name, bytes]) => [name, bytes * perS]));
  Object.assign(o, { lagS: l.scrapeS, profilesPerS: perS, segmentBytes: 0, segmentBytesPerS: perS * costs.segmentBytes, batchesPerS: 20,
    blockBytes: { cut: perSecond(costs.cut), joined: perSecond(costs.joined) }, metaBytes: costs.metaBytes, cutS: costs.cutCpu * perS,
    joinS: costs.joinCpu * perS, putBytesPerS: 100e6, idsBytes: 4096, idsChange: true });
  const start = 1763000000 - (1763000000 % o.windowS), from = start + o.retentionS + 2 * DAY, to = from + DAY;
  const shard = new Shard(o, start).run(from);
  const before = { requests: { ...shard.requests }, sent: { ...shard.sent }, received: shard.received };
  shard.versions = shard.versions.slice(-1);
  shard.run(to);
  const day = { requests: plus(shard.requests, before.requests, -1), received: shard.received - before.received,
    sent: Object.fromEntries(Object.keys(shard.sent).map((k) => [k, shard.sent[k] - before.sent[k]])) };
  const node = follow(shard, from, to, o);
  const first = follow({ versions: shard.versions.slice(0, 1) }, from, from + 2 * o.pollS, o); // what it had to read before that day
  for (const k of ['get', 'received', 'segments', 'segmentBytes', 'opened']) node[k] -= first[k];
  const named = shard.versions.map((v) => v.windows.reduce((n, w) => n + w.n, 0)).sort((a, b) => a - b);
  const size = shard.versions.map((v) => v.bytes).sort((a, b) => a - b);
  return { l, o, shards, perS, shard, day, node, named, size, objects: shard.objects(), stored: shard.stored() };
}

function startsOf(p, costs) {
  const list = p.shard.versions.map((v) => {
    const followS = costs.followCpu * (v.windows.reduce((n, w) => n + w.bytes, 0) / costs.segmentBytes);
    return startOf(v, p.o, { shards: p.shards, latencyS: p.l.latencyS, bytesPerS: p.l.bytesPerS, followS, cores: p.l.cores });
  }).sort((a, b) => a.segments - b.segments);
  return { least: list[0], median: list[list.length >> 1], most: list.at(-1) };
}

const SHIP_BYTES = 1 << 30; // db_options.segments_bytes: files that wait for the bucket
const PACKED = 0.63; // tsdb/FORMAT.md, "Segments": packed they are 0.56 and 0.70 of the files' bytes

/** Seconds of rows that are in segments: the window that fills, and those before it that still take late rows. */
const headS = (o) => o.windowS / 2 + o.windowS * Math.ceil(o.lateS / o.windowS);

/** Rows of [what, value, unit]. */
export function table(p, costs) {
  const { l, o, shards, day, node } = p;
  const ofNodes = plus(nothing(), node, l.nodes * shards);
  ofNodes.list += l.nodes * (DAY / o.pollS) * Math.ceil(shards / 1000);
  const cpuShard = p.perS * (SCRAPE_CPU + costs.cutCpu + 2 * costs.joinCpu), cpuNode = p.perS * shards * costs.followCpu;
  const s = startsOf(p, costs), stored = p.stored * shards;
  const money = { shards: priceOf(plus(nothing(), day.requests, shards)) * 30, nodes: priceOf(ofNodes) * 30,
    stored: (stored / TB) * PRICES.tbMonth };
  const sent = Object.values(day.sent).reduce((a, b) => a + b, 0);
  return [
    ['profiles a second', p.perS * shards], ['shards', shards], ['CPU of a shard', cpuShard, 'cores'],
    ['vCPU of the shards', shards * Math.ceil(cpuShard / l.busy), 'vCPU'],
    ['vCPU hours of the shards a month', shards * Math.ceil(cpuShard / l.busy) * 720, 'h'],
    ['CPU of following all shards, a node', cpuNode, 'cores'],
    ['objects of a shard', p.objects], ['objects in the bucket', p.objects * shards],
    ...Object.entries(day.requests).map(([k, n]) => [`${k} a day, shards`, n * shards]),
    ...['get', 'head'].map((k) => [`${k} a day, a node`, node[k] * shards]),
    ...Object.entries(day.sent).map(([k, n]) => [`put a day: ${k}`, (n * shards) / TB, 'TB']),
    ['put a day', (sent * shards) / TB, 'TB'], ['read back for joins a day', (day.received * shards) / TB, 'TB'],
    ['read a day, a node', (node.received * shards) / TB, 'TB'], ['of it manifests', ((node.received - node.segmentBytes) * shards) / TB, 'TB'],
    ['stored', stored / TB, 'TB'], ['stored bytes a profile', stored / (p.perS * shards * o.retentionS), 'bytes'],
    ['requests a month, shards', money.shards, '$'], [`requests a month, ${l.nodes} nodes`, money.nodes, '$'],
    ['stored, a month', money.stored, '$'], ['store, a month', money.shards + money.nodes + money.stored, '$'],
    ['manifest, mean', mean(p.size), 'bytes'], ['manifest, most', p.size.at(-1), 'bytes'],
    ['segments that a manifest names, mean', mean(p.named)], ['segments that a manifest names, most', p.named.at(-1)],
    ['requests of a node from nothing', s.median.requests], ['bytes of it', (s.median.bytes * shards) / TB, 'TB'],
    ['time to first answer, from blocks', s.median.blocks, 's'], ['seconds of it: waiting for requests', s.median.waiting, 's'], ['seconds of it: network', s.median.network, 's'],
    ['seconds of it: CPU of following', s.median.cpu, 's'], ['time to first answer with all', s.median.seconds / 3600, 'h'],
    ['heads on the disk of a shard, mean', (costs.diskBytes * p.perS * headS(o)) / GB, 'GB'],
    ['heads on the disk of a node, mean', (costs.followDiskBytes * p.perS * shards * headS(o)) / TB, 'TB'],
    ['network of a node', ((node.received * shards) / DAY) * 8 / GB, 'Gbit/s'],
    ['bucket away until windows want snapshots', (SHIP_BYTES * PACKED) / (p.perS * costs.segmentBytes), 's'],
    ['a snapshot of a full window', (p.perS * o.windowS * costs.segmentBytes) / GB, 'GB'],
    ['work on blocks: share of its thread', p.perS * (costs.cutCpu + 2 * costs.joinCpu), ''],
    ['targets that move, one shard more', moved(l.targets, shards, shards + 1)],
  ];
}

/** Costs of profiles of so many times as many samples, by proportion. */
export function scaled(costs, by) {
  const times = (files) => Object.fromEntries(Object.entries(files).map(([name, bytes]) => [name, bytes * by]));
  return { ...costs, segmentBytes: costs.segmentBytes * by, diskBytes: costs.diskBytes * by, followDiskBytes: costs.followDiskBytes * by, followCpu: costs.followCpu * by,
    cutCpu: costs.cutCpu * by, joinCpu: costs.joinCpu * by, cut: times(costs.cut), joined: times(costs.joined) };
}

/** What is asked first: the defaults, and one change at a time. */
const VARIANTS = [['defaults', {}, {}], ['poll each 30 s', {}, { pollS: 30 }], ['segments each 60 s', {}, { segmentS: 60 }],
  ['windows of 30 min, 10 min late', {}, { windowS: 1800, lateS: 600 }], ['5,000 targets a shard', { perShard: 5000 }, {}],
  ['20,000 targets a shard', { perShard: 20000 }, {}]];

const shown = (value) => (Math.abs(value) >= 100 ? count(Math.round(value)) : Number(value.toPrecision(3)).toString());

function print(columns) {
  const [first] = columns;
  console.log(row(['', ...columns.map((c) => c.name)], [50, ...columns.map(() => 16)]));
  for (const [i, [what, , unit = '']] of first.rows.entries())
    console.log(row([what, ...columns.map((c) => shown(c.rows[i][1])), ` ${unit}`], [50, ...columns.map(() => 16)]));
}

const WANTED = ['shards', 'objects in the bucket', 'put a day, shards', 'get a day, a node', 'head a day, a node', 'manifest, mean',
  'segments that a manifest names, mean', 'requests of a node from nothing', 'bytes of it', 'time to first answer, from blocks', 'seconds of it: waiting for requests',
  'time to first answer with all', 'requests a month, shards', 'requests a month, 2 nodes', 'store, a month'];

function variants(costs) {
  const columns = VARIANTS.map(([name, load, change]) => ({ name, rows: table(plan(costs, load, change), costs) }));
  for (const what of WANTED) {
    const values = columns.map((c) => c.rows.find((r) => r[0] === what));
    console.log(row([what, ...values.map((v) => shown(v[1])), ` ${values[0][2] ?? ''}`], [44, ...columns.map(() => 16)]));
  }
}

export async function scale(t) {
  const seconds = env('BENCH_SCALE_SECONDS', 300);
  const costs = process.env.BENCH_SCALE_SECONDS === '0' ? RECORDED : await measureCosts(t);
  for (const [what, ours, unit] of [['segments', costs.segmentBytes, 'bytes'], ['head on the disk', costs.diskBytes, 'bytes'], ['head on the disk of a query node', costs.followDiskBytes, 'bytes'],
    ['CPU of following', 1e6 * costs.followCpu, 'us'], ['CPU of cutting', 1e6 * costs.cutCpu, 'us'],
    ['CPU of joining once', 1e6 * costs.joinCpu, 'us'], ...Object.keys(costs.cut).flatMap((name) => [
      [`${name}, cut`, costs.cut[name], 'bytes'], [`${name}, joined`, costs.joined[name], 'bytes']])])
    note(`a profile of ${Math.round(costs.samples)} samples: ${what}`, { ours, unit, of: costs });
  if (seconds) await check(t, seconds);
  const large = { name: 'large services', rows: table(plan(costs), costs) };
  const tenth = { name: 'a tenth of it', rows: table(plan(scaled(costs, 0.1)), scaled(costs, 0.1)) };
  print([large, tenth]);
  console.log(row(['a tenth of it', ...VARIANTS.map(([name]) => name)], [44, ...VARIANTS.map(() => 16)]));
  variants(scaled(costs, 0.1));
}
