// A query node from an empty directory: BENCH_START_SHARDS (20) shards with three windows of BENCH_START_SEGMENTS (60) segments
// each and the blocks before them, in a fake store that takes 30 ms for an answer. One shard is made of profiles of a fleet, and
// copied under the names of the others. BENCH_START_PROGRAM: another build's server, to compare with.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { S3Fake } from '../s3_fake.mjs';
import { epimetheus, epitool, finish, request, sleep, startServer, until } from '../e2e/lib.mjs';
import { bucketSection } from '../e2e/shards.mjs';
import { cpuOf, emptyDirectory, env, fleetFiles } from './common.mjs';
import { note } from './report.mjs';

const INTERVAL_S = 1; // no shard puts segments more often
const LATENCY_MS = 30;

const manifestOf = (fake, name) => JSON.parse(fake.touch('GET', `epi/shards/${name}/manifest`).toString());
const segmentsOf = (m) => m.windows.reduce((n, w) => n + w.segments.length, 0);

/** Pushes each file again and again, with the time of now, until `done`. */
async function pushAll(server, files, done) {
  const bodies = files.map((f) => readFileSync(f));
  let pushed = 0;
  for (; !done(); pushed++) {
    const params = new URLSearchParams({ name: 'process_cpu', job: 'fleet', pod: `pod-${pushed % bodies.length}`, time: (Date.now() / 1000).toFixed(3) });
    const answer = await request(`${server.url}/api/v1/ingest?${params}`, { method: 'POST', body: bodies[pushed % bodies.length] });
    if (answer.status !== 200) throw new Error(`${answer.status} ${answer.body}`);
    await sleep(10);
  }
  return pushed;
}

/** A shard that ended in order, with blocks and full windows. */
async function makeShard(t, config, fake, segments) {
  const dir = emptyDirectory('start-shard-0'), windowS = segments * INTERVAL_S;
  const server = await startServer(t, { dir, config, seconds: 60, args: ['--web.enable-ingest', '--shard.name=shard-0', '--shard.total=1',
    `--storage.bucket.segment-interval=${INTERVAL_S}s`, `--storage.tsdb.window=${windowS}s`, `--storage.tsdb.out-of-order-time-window=${windowS}s`] });
  const ends = Date.now() + 5 * windowS * 1000;
  await pushAll(server, fleetFiles('fleet-cpu', 8, 4), () => Date.now() > ends);
  await server.stop('SIGTERM');
  return manifestOf(fake, 'shard-0');
}

/** The shard's objects under another name; a manifest says whose it is, so it is made anew of them. */
async function copyShard(t, fake, file, name) {
  for (const { key } of fake.touch('GET', ''))
    if (key.startsWith('epi/shards/shard-0/') && !key.endsWith('/manifest'))
      fake.touch('PUT', key.replace('/shard-0/', `/${name}/`), fake.touch('GET', key));
  const run = await finish(t, epitool, ['bucket', 'repair', `--config.file=${file}`, '--force', name]);
  if (run.code !== 0) throw new Error(run.err);
}

async function answers(node) {
  const params = { query: 'count(total(merge by (pod) (process_cpu:samples{job="fleet"})))', start: Date.now() / 1000 - 3600, end: Date.now() / 1000 };
  const answer = JSON.parse((await request(`${node.url}/api/v1/query?${new URLSearchParams(params)}`)).body);
  if (answer.status !== 'success') throw new Error(answer.error);
  return { some: answer.data.result.length > 0, warnings: answer.warnings ?? [] };
}

/** Seconds from the node's start to each state of it. */
async function measure(t, program, name, config) {
  const began = performance.now(), at = {};
  const seconds = () => (performance.now() - began) / 1000;
  const node = await startServer(t, { dir: emptyDirectory(name), config, seconds: 600, args: ['--mode=query'], program });
  at.ready = seconds();
  await until('it has all', 900, async () => {
    const { some, warnings } = await answers(node);
    if (some && !warnings.some((w) => w.startsWith('shards are missing'))) at.first ??= seconds();
    return some && !warnings.length;
  });
  at.whole = seconds();
  at.cpu = cpuOf(node.child.pid);
  await node.stop('SIGTERM');
  return at;
}

export async function start(t) {
  const shards = env('BENCH_START_SHARDS', 20), segments = env('BENCH_START_SEGMENTS', 60);
  const fake = await new S3Fake().listen();
  t.after(() => fake.close());
  const config = `${bucketSection(fake)}scrape_configs: []\n`;
  const file = join(emptyDirectory('start-bucket'), 'bucket.yml');
  writeFileSync(file, config);
  const m = await makeShard(t, config, fake, segments);
  for (let i = 1; i < shards; i++) await copyShard(t, fake, file, `shard-${i}`);
  fake.obey('POST', '/fault', Buffer.from(JSON.stringify({ key: 'epi/', count: -1, delay: LATENCY_MS })));
  const theirs = process.env.BENCH_START_PROGRAM ? await measure(t, process.env.BENCH_START_PROGRAM, 'start-theirs', config) : {};
  const ours = await measure(t, epimetheus, 'start-node', config);
  const of = { shards, segments: shards * segmentsOf(m), blocks: shards * m.blocks.length };
  console.log(JSON.stringify(of));
  for (const [what, key] of [['ready', 'ready'], ['an answer with something of all shards', 'first'], ['whole answers', 'whole'], ['CPU', 'cpu']])
    note(`a query node from nothing: ${what}`, { ours: ours[key], theirs: theirs[key], unit: 's', of });
}
