// An object store as the cluster: a real Ceph, a server that puts its blocks there, and query nodes that read them, all on
// this machine. Each figure has its counterpart in the same run: the same blocks on a local disk, the same profiles
// without a bucket, one query node.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { Agent } from 'node:http';
import { join } from 'node:path';
import { api, epitool, request, sleep, until } from '../e2e/lib.mjs';
import { S3, startCeph } from '../e2e/ceph.mjs';
import { bucketSection } from '../e2e/shards.mjs';
import { bytesOf, cpuOf, emptyDirectory, env, fleetFiles, linked, madeDirectory, metrics } from './common.mjs';
import { bucketUse, cpuOfThread, kindOfThread, less, shareOf } from './counters.mjs';
import { endOf, serve } from './storage.mjs';
import { note, spread } from './report.mjs';

const QUERY = 'top(10, merge(process_cpu:cpu))';
const RETENTION = '15d', CPUS = '0,1', DAY = 86400;
const COLD_ROUNDS = 3, WARM_ROUNDS = 7, NODE_ROUNDS = 5, NODES = 4;
const ROUND_CPU = 0.4; // seconds: the clock of /proc/PID/stat ticks every 10 ms
const QUIET_MS = 700;
const PUBLISHING = ['bucket', 'cluster-publish', 'cluster-upload', 'cluster-local']; // threads that a server without a bucket lacks

const seconds = (began) => Number(process.hrtime.bigint() - began) / 1e9;
const use = async (server) => bucketUse(await metrics(server));
const shardArgs = (name) => [`--shard.name=${name}`, `--storage.local-retention=${RETENTION}`];

/** An answer that lacks nothing; an error or a warning throws. */
async function answerOf(server, params, agent) {
  const res = await request(`${server.url}/api/v1/query?${new URLSearchParams({ query: QUERY, ...params })}`, { agent });
  const answer = JSON.parse(res.body);
  if (answer.status !== 'success' || answer.warnings?.length)
    throw new Error(`${res.status} ${answer.error ?? ''}${JSON.stringify(answer.warnings ?? [])}`);
  return answer.data;
}

/** A server with these members of a configuration below its directory. */
function configured(t, dir, config, ...args) {
  writeFileSync(join(dir, 'epimetheus.yml'), `scrape_configs: []\n${config}`);
  return serve(t, dir, RETENTION, CPUS, `--config.file=${join(dir, 'epimetheus.yml')}`, ...args);
}

function queryNode(t, name, config) {
  const dir = emptyDirectory(name);
  writeFileSync(join(dir, 'epimetheus.yml'), config);
  return serve(t, dir, undefined, CPUS, `--config.file=${join(dir, 'epimetheus.yml')}`, '--mode=query');
}

/** The made directory where a server may write. It has no inventory, which is a loss until somebody accepts it. */
function accepted(made, name) {
  const dir = linked(made.dir, name);
  execFileSync(epitool, ['tsdb', 'repair', '--accept', join(dir, 'data')], { stdio: 'pipe' });
  return dir;
}

/** Its blocks are in the bucket, by a server that then ends. */
async function publish(t, made, config) {
  const dir = accepted(made, 'bucket-shard'), blocks = readdirSync(join(dir, 'data/blocks')).length;
  const began = process.hrtime.bigint();
  const server = await configured(t, dir, config, ...shardArgs('shard-0'));
  await until('all blocks are in the bucket', 120, async () => {
    const { shard } = await api(server, 'status/cluster');
    return shard.blocks === blocks && !shard.waiting_blocks;
  });
  const took = seconds(began), cpu = cpuOf(server.child.pid);
  await server.stop();
  return { took, cpu, blocks };
}

async function bytesIn(store, prefix) {
  const s3 = new S3(store);
  let bytes = 0;
  for (let page = await s3.list({ prefix }); ; page = await s3.list({ prefix, 'continuation-token': page.next })) {
    bytes += page.sizes.reduce((a, b) => a + b, 0);
    if (!page.truncated) return bytes;
  }
}

/** What it asked the bucket for, once it asks no more. */
async function quiet(server) {
  let last = await use(server), since = Date.now();
  await until('nothing more is read', 30, async () => {
    const now = await use(server);
    if (now.gets !== last.gets || now.bytes !== last.bytes) since = Date.now();
    last = now;
    return Date.now() - since >= QUIET_MS;
  });
  return last;
}

/** A query node on an empty directory, each round another: what opening reads, and what the first query reads after it. */
async function cold(t, config, window, blocks) {
  const opening = [], first = [], took = [];
  for (let i = 0; i < COLD_ROUNDS; i++) {
    const node = await queryNode(t, 'bucket-node', config);
    await until('the blocks are known', 30, async () => (await api(node, 'status/cluster')).shards[0]?.blocks === blocks);
    const opened = await quiet(node), began = process.hrtime.bigint();
    assert.deepEqual(await answerOf(node, window.params), window.right);
    took.push(seconds(began));
    opening.push(opened);
    first.push(less(await quiet(node), opened));
    await node.stop();
  }
  return { opening, first, took };
}

/** From exec on an empty directory to the first answer that is right and has no warning. */
async function fromNothing(t, config, window) {
  const took = [], ready = [], asked = [];
  for (let i = 0; i < COLD_ROUNDS; i++) {
    const began = process.hrtime.bigint();
    const node = await queryNode(t, 'bucket-node', config);
    let n = 0;
    await until('a right answer', 30, async () => {
      for (;; n++) {
        const answer = await answerOf(node, window.params).catch(() => undefined);
        if (answer && JSON.stringify(answer) === JSON.stringify(window.right)) return true;
        if (seconds(began) > 60) return false;
        await sleep(5);
      }
    });
    took.push(seconds(began));
    ready.push(node.seconds);
    asked.push(n + 1);
    await node.stop();
  }
  note('query node, from an empty directory to a right answer', { ours: took, unit: 'seconds', of: { ready, asked } });
}

/** CPU and wall seconds of a query: `clients` ask at once, spread over the servers, until all have used ROUND_CPU together. */
async function round(servers, params, clients, agent) {
  const cpu = () => servers.reduce((sum, s) => sum + cpuOf(s.child.pid), 0);
  const before = cpu(), took = [];
  let used = 0;
  await Promise.all(Array.from({ length: clients }, async (_, i) => {
    do {
      const began = process.hrtime.bigint();
      await answerOf(servers[i % servers.length], params, agent);
      took.push(seconds(began));
      used = cpu() - before;
    } while (used < ROUND_CPU * clients);
  }));
  return { cpu: (cpu() - before) / took.length, wall: spread(took).median };
}

/** Rounds of two lists of servers by turns, after each server answered. */
async function inTurn(ours, theirs, params, { rounds, clients, agent }) {
  for (const server of [...ours, ...theirs]) for (let i = 0; i < 2; i++) await answerOf(server, params);
  const a = [], b = [];
  for (let i = 0; i < rounds; i++) {
    a.push(await round(ours, params, clients, agent));
    b.push(await round(theirs, params, clients, agent));
  }
  return (member) => ({ ours: a.map((r) => r[member]), theirs: b.map((r) => r[member]) });
}

/* ---- publishing ---- */

/** CPU seconds by kinds of threads, of those that live. */
function cpuByThread(pid) {
  const by = {};
  for (const tid of readdirSync(`/proc/${pid}/task`)) {
    const of = (file) => readFileSync(`/proc/${pid}/task/${tid}/${file}`, 'utf8');
    const name = kindOfThread(of('comm'));
    by[name] = (by[name] ?? 0) + cpuOfThread(of('schedstat')) / 1e9;
  }
  return by;
}

/** One profile after the other to both servers, so many a second at most, for some seconds; returns how many. */
async function pushed(servers, files, { rate, until: end, from, agent }) {
  const began = process.hrtime.bigint();
  let n = 0;
  const one = async () => {
    while (seconds(began) < end) {
      const i = n++, early = i / rate - seconds(began);
      if (early > 0) await sleep(early * 1000);
      const params = new URLSearchParams({ name: 'process_cpu', job: `shop${i % 10}`, instance: `pod${i % 50}`, time: from + i / rate });
      await Promise.all(servers.map(async (server) => {
        const res = await request(`${server.url}/api/v1/ingest?${params}`, { method: 'POST', agent, body: files[i % files.length] });
        if (res.status !== 200) throw new Error(`ingest: ${res.status} ${res.body}`);
      }));
    }
  };
  await Promise.all([one(), one(), one(), one()]);
  return n;
}

/** The same profiles to a server with a bucket and to one without, at once; each round is one interval of segments. */
async function publishing(t, store, agent) {
  const rate = env('BENCH_PUSH_RATE', 200), interval = 30, rounds = 2;
  const files = fleetFiles('fleet-cpu', 10, 20).map((f) => readFileSync(f));
  const alone = await configured(t, emptyDirectory('bucket-alone'), '', '--web.enable-ingest');
  const dir = emptyDirectory('bucket-publishes');
  const shares = await configured(t, dir, bucketSection(store, 'pushed'), '--web.enable-ingest', ...shardArgs('shard-0'));
  const servers = [alone, shares], pids = servers.map((s) => s.child.pid);
  const from = Date.now() / 1000 - 300; // profiles have times of their own, in order
  const warm = await pushed(servers, files, { rate, until: 5, from, agent });
  const ours = [], theirs = [], threads = [];
  let sent = warm;
  for (let i = 0; i < rounds; i++) {
    const cpu = pids.map(cpuOf), by = cpuByThread(shares.child.pid);
    const n = await pushed(servers, files, { rate, until: interval, from: from + (sent + 1) / rate, agent });
    ours.push((cpuOf(pids[0]) - cpu[0]) / n);
    theirs.push((cpuOf(pids[1]) - cpu[1]) / n);
    threads.push(less(cpuByThread(shares.child.pid), by));
    sent += n;
  }
  const ended = Date.now();
  await until('all profiles are in the bucket', 60, async () => Date.parse((await api(shares, 'status/cluster')).shard.through) > ended);
  const stored = await bytesIn(store, 'pushed/');
  note('ingest, CPU a profile (other: and published)', { ours, theirs, unit: 'seconds', of: { rate, interval, sent, threads } });
  note('publishing, its own threads, of the others\' CPU', { ours: threads.map((by) => shareOf(by, PUBLISHING)), unit: '%' });
  note('newest profiles, bytes in the bucket for one in the head', { ours: stored / bytesOf(join(dir, 'data/head')), unit: 'bytes' });
  for (const server of servers) await server.stop();
}

/* ---- the section ---- */

export async function bucket(t) {
  const services = env('BENCH_SERVICES', 100), pods = env('BENCH_PODS', 2);
  const made = madeDirectory('bucket', [`--service=${services}`, `--pods=${pods}`, '--days=2']);
  const local = await serve(t, accepted(made, 'bucket-local'), RETENTION, CPUS);
  const local_bytes = bytesOf(join(made.dir, 'blocks')), end = endOf(made.dir);
  const store = await startCeph(t, { osds: env('BENCH_OSDS', 1) });
  const config = bucketSection(store);
  const put = await publish(t, made, config);
  note('blocks of 2 d put into the bucket, CPU of the server', { ours: put.cpu / (local_bytes / 1e9), unit: 's/GB', of: put });
  note('bytes in the bucket for one of the blocks', { ours: (await bytesIn(store, 'epi/')) / local_bytes, unit: 'bytes', of: { local_bytes } });

  const agent = new Agent({ keepAlive: true });
  t.after(() => agent.destroy());
  const windows = [['24 h to the hour', end - 5 * 3600], ['24 h to any second', end - 5 * 3600 - 1397.25]]
    .map(([what, at]) => ({ what: `top 10 of ${services} x ${pods}, ${what}`, params: { start: at - DAY, end: at } }));
  for (const window of windows) {
    window.right = await answerOf(local, window.params);
    assert.equal(window.right.result[0].rows.length, 10);
    const { opening, first, took } = await cold(t, config, window, put.blocks);
    const of = { opening, first };
    note(`${window.what}: bytes read cold`, { ours: first.map((u) => (u.bytes / local_bytes) * 100), unit: '% of the blocks', of });
    note(`${window.what}: GETs cold`, { ours: first.map((u) => u.gets), unit: 'requests' });
    note(`${window.what}: GETs cold, opening too`, { ours: first.map((u, i) => u.gets + opening[i].gets), unit: 'requests' });
    note(`${window.what}: cold`, { ours: took, unit: 'seconds' });
  }
  await fromNothing(t, config, windows[0]);

  const nodes = await Promise.all(Array.from({ length: NODES }, (_, i) => queryNode(t, `bucket-node-${i}`, config)));
  for (const { what, params, right } of windows) {
    for (const node of nodes) {
      await until('the node has all', 30, async () => (await answerOf(node, params)).result.length > 0);
      assert.deepEqual(await answerOf(node, params), right);
    }
    const by = await inTurn([local], [nodes[0]], params, { rounds: WARM_ROUNDS, clients: 1, agent });
    note(`${what}: CPU, local (other: node)`, { ...by('cpu'), unit: 'seconds' });
    note(`${what}: time, local (other: node)`, { ...by('wall'), unit: 'seconds' });
  }
  const by = await inTurn([nodes[0]], nodes, windows[0].params, { rounds: NODE_ROUNDS, clients: NODES, agent });
  note(`CPU of it, ${services} x ${pods}, ${NODES} clients, 1 node (other: ${NODES})`, { ...by('cpu'), unit: 'seconds' });
  for (const server of [local, ...nodes]) await server.stop();
  await publishing(t, store, agent);
}
