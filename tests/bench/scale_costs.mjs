// What one profile costs in a cluster, with the fleet's profiles: bytes of segments and of blocks, CPU of taking it in, of cutting
// and joining, of following it; requests to open a block. One shard and one query node over the fake store.
import { execFileSync } from 'node:child_process';
import { readFileSync, readdirSync, rmSync } from 'node:fs';
import { Agent } from 'node:http';
import { join } from 'node:path';
import { api, request, until } from '../e2e/lib.mjs';
import { cpuOf, emptyDirectory, fleet } from './common.mjs';
import { CountedCluster } from './scale_cluster.mjs';

const SERVICES = 2, PODS = 10, SCRAPE_S = 15, HOUR_S = 3600;
const SETS = [{ set: 'fleet-cpu', name: 'process_cpu' }, { set: 'heap', name: 'memory' }];

/** Bodies of scrape k of all pods, a file's path each. */
function bodies(dir, set, k) {
  const to = join(dir, `${set}-${k}`);
  execFileSync(fleet, ['write', to, `--set=${set}`, `--service=${SERVICES}`, `--pods=${PODS}`, '--scrapes=1', `--first=${9000 + k}`],
    { stdio: 'ignore' });
  const list = readdirSync(to).sort().map((f) => readFileSync(join(to, f)));
  rmSync(to, { recursive: true });
  return list;
}

/** An hour of profiles from `start` on, pushed; gives how many. */
async function pushHour(t, server, dir, start) {
  const agent = new Agent({ keepAlive: true, maxSockets: 16 });
  t.after(() => agent.destroy());
  let n = 0;
  const one = async (name, service, pod, at, body) => {
    const res = await request(`${server.url}/api/v1/ingest?name=${name}&job=svc${service}&instance=pod${pod}&time=${at}`,
      { method: 'POST', body, agent });
    if (res.status !== 200) throw new Error(`${name}: ${res.status} ${res.body}`);
    n++;
  };
  for (let k = 0; k < HOUR_S / SCRAPE_S; k++) {
    for (const { set, name } of SETS) {
      const list = bodies(dir, set, k);
      await Promise.all(list.map((body, i) => one(name, Math.floor(i / PODS), i % PODS,
        (start + (k + 1) * SCRAPE_S - (0.7 * SCRAPE_S * i) / list.length).toFixed(3), body)));
    }
  }
  return { n, last: (at) => one('process_cpu', 0, 0, at, bodies(dir, 'fleet-cpu', HOUR_S / SCRAPE_S)[0]) };
}

const segmentsOf = (manifest) => manifest.windows.flatMap((w) => w.segments);
const sum = (list) => list.reduce((a, b) => a + b, 0);

/** CPU seconds of a query node that takes all over from nothing, less those of one that has nothing to take. */
async function following(cluster, name, segments) {
  const node = await cluster.start(name, ['--mode=query', '--storage.bucket.poll-interval=1s']);
  await until('the node has all', 60, async () => {
    const { shards } = await api(node, 'status/cluster');
    return shards.length === 1 && shards[0].segments >= segments && shards[0].state !== 'unread';
  });
  const cpu = cpuOf(node.child.pid);
  return { node, cpu };
}

/** With windows of so long: after the hour in segments, and after it became blocks. */
async function measure(t, windowS, { follow }) {
  const dir = emptyDirectory(`scale-${windowS}`);
  const cluster = await new CountedCluster(t, { dir, config: 'scrape_configs: []\n' }).open();
  const start = Math.floor(Date.now() / 1000 / HOUR_S - 4) * HOUR_S;
  const idle = follow ? cpuOf((await cluster.start('idle', ['--mode=query'])).child.pid) : 0;
  const shard = await cluster.start('shard-0', ['--shard.name=shard-0', '--web.enable-ingest', '--storage.bucket.segment-interval=5s',
    '--storage.bucket.delete-delay=1h', `--storage.tsdb.window=${windowS}s`]);
  const before = cpuOf(shard.child.pid);
  const { n, last } = await pushHour(t, shard, dir, start);
  const ingestCpu = cpuOf(shard.child.pid) - before;
  const named = await until('all segments are there', 60, async () => {
    const { manifest } = cluster.objectsOf('shard-0');
    const { shard: s } = await api(shard, 'status/cluster');
    return s.waiting_bytes === 0 && manifest.windows.length >= HOUR_S / windowS && manifest;
  });
  const out = { n, ingestCpu: ingestCpu / n, segmentBytes: sum(segmentsOf(named).map((s) => s.bytes)) / n,
    batchBytes: segmentsOf(named).length };
  if (follow) {
    const { node, cpu } = await following(cluster, 'query-0', segmentsOf(named).length);
    out.followCpu = Math.max(cpu - idle, 0) / n;
    await node.stop();
  }
  const cutFrom = cpuOf(shard.child.pid);
  await last(start + 3 * HOUR_S);
  const block = await until('one block', 120, () => {
    const { manifest } = cluster.objectsOf('shard-0');
    return manifest.blocks.length === 1 && manifest.windows.length === 1 && manifest.blocks[0];
  });
  out.workCpu = (cpuOf(shard.child.pid) - cutFrom) / n;
  out.files = Object.fromEntries(Object.entries(block.files).map(([name, f]) => [name, f.bytes]));
  out.objects = cluster.objectsOf('shard-0');
  if (follow) {
    const { node } = await following(cluster, 'query-1', 1);
    out.opening = cluster.requestsOf('query-1').whats;
    await node.stop();
  }
  await shard.stop();
  return out;
}

/** Costs of a profile, of CPU and heap by turns. */
export async function measureCosts(t) {
  const cut = await measure(t, HOUR_S, { follow: true });
  const joined = await measure(t, HOUR_S / 4, { follow: false });
  const perProfile = (files) => Object.fromEntries(Object.entries(files).filter(([name]) => name !== 'meta.json')
    .map(([name, bytes]) => [name, bytes / cut.n]));
  return { profiles: cut.n, ingestCpu: cut.ingestCpu, segmentBytes: cut.segmentBytes, followCpu: cut.followCpu, cutCpu: cut.workCpu,
    joinCpu: Math.max(joined.workCpu - cut.workCpu, 0), cut: perProfile(cut.files), joined: perProfile(joined.files),
    metaBytes: cut.files['meta.json'], opening: cut.opening };
}
