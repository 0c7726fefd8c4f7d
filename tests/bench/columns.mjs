// Column stores beside the server: ClickHouse and DuckDB get the same CPU profiles as rows of service, pod, time, dense id of a
// stack and value, and answer the same questions. Each answer is compared before it is timed. README.md says how they were tuned.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { Agent } from 'node:http';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { api, epitool, query, request, root, startServer, until } from '../e2e/lib.mjs';
import { JOB, questions } from './columns/questions.mjs';
import { PODS, SERVICE, STEP_S, makeInput } from './columns/input.mjs';
import { bytesOf, cpuOf, data, emptyDirectory, env } from './common.mjs';
import { count, note } from './report.mjs';

const WINDOW_S = 7200, IN_WINDOW_S = 1200; // the profiles are in the middle of a window's first hour
const CLIENTS = 16;
const rounds = () => env('BENCH_COLUMNS_ROUNDS', 7), storeRounds = () => Math.ceil(rounds() / 3);
const ROUND_CPU = 0.2; // seconds: the clock of /proc/PID/stat ticks every 10 ms

/* ---- a column store: a process ---- */

function columnStore(t, name, kind, dense) {
  const child = spawn('python3', [join(root, 'tests/bench/columns/stores.py'), kind, dense, join(data, `columns-${kind}`)],
    { stdio: 'pipe', env: { ...process.env, PYTHONPATH: join(root, 'build/columns') } });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  let errors = '';
  child.stderr.on('data', (d) => { errors += d; });
  child.stdin.on('error', () => {}); // it ended: its answer says so
  t.after(() => child.kill());
  const ask = async (command) => {
    child.stdin.write(`${JSON.stringify(command)}\n`);
    const { value, done } = await lines.next();
    if (done) throw new Error(`${name}: ${errors.trim().split('\n').at(-1)}`);
    return JSON.parse(value);
  };
  return { name, ask };
}

/* ---- the server ---- */

const serverOf = (t, dir, ...args) => startServer(t, { dir, config: 'scrape_configs: []\n',
  args: ['--web.enable-ingest', '--query.max-threads=1', ...args] });

async function post(server, agent, params, file) {
  const url = `${server.url}/api/v1/ingest?${new URLSearchParams({ name: 'process_cpu', ...params })}`;
  const res = await request(url, { method: 'POST', agent, body: readFileSync(file) });
  if (res.status !== 200) throw new Error(`ingest: ${res.status} ${res.body}`);
}

/** CPU seconds of a server in an empty directory that stores them all. */
async function storeIn(t, dir, list, start) {
  const server = await serverOf(t, dir, '--storage.tsdb.out-of-order-time-window=1d');
  const agent = new Agent({ keepAlive: true }), before = cpuOf(server.child.pid);
  let next = 0;
  await Promise.all(Array.from({ length: CLIENTS }, async () => {
    for (let i = next++; i < list.length; i = next++) {
      const { job, instance, scrape, file } = list[i];
      await post(server, agent, { job, instance, time: start + STEP_S * (scrape + 1) }, file);
    }
  }));
  const took = cpuOf(server.child.pid) - before;
  const now = { job: 'later', instance: 'pod0', time: Date.now() / 1000 }; // the window of the others is over then
  await post(server, agent, now, list[0].file);
  agent.destroy();
  await server.stop();
  return took;
}

/** A server whose window is a block, and CPU seconds from its start until then. */
async function cut(t, dir) {
  const server = await serverOf(t, dir), blocks = join(dir, 'data/blocks');
  const block = await until('the window is cut', 60, () => existsSync(blocks) && readdirSync(blocks).find((b) => !b.includes('.')));
  return { server, took: cpuOf(server.child.pid), block: join(blocks, block) };
}

/* ---- questions ---- */

const asSql = (q, name) => ({ query: q.sql, service: SERVICE, job: JOB, function: name, ...q.window });

async function check(server, stores, q, name) {
  const whole = `${server.url}/api/v1/${q.path}?${new URLSearchParams({ ...q.params, ...q.exact })}`;
  const ours = q.ours(q.exact ? (await request(whole)).body.toString() : await api(server, q.path, q.params));
  for (const store of stores) {
    const theirs = await store.ask({ do: 'answer', ...asSql(q, name) });
    assert.deepEqual(q.theirs(theirs), ours, `${q.what}: ${store.name} answers otherwise`);
  }
}

/** CPU milliseconds of one question, over as many as take long enough. */
async function timed(server, q) {
  const before = cpuOf(server.child.pid);
  let n = 0, took;
  do {
    await api(server, q.path, q.params);
    n++;
    took = cpuOf(server.child.pid) - before;
  } while (took < ROUND_CPU);
  return (1000 * took) / n;
}

/** Notes of one question; all are asked by turns. */
async function ask(server, stores, q, name, named) {
  await check(server, stores, q, name);
  const ours = [], theirs = stores.map(() => []);
  for (let i = 0; i <= rounds(); i++) {
    if (i === 1) for (const list of [ours, ...theirs]) list.length = 0; // the first round warms up
    ours.push(await timed(server, q));
    for (const [k, store] of stores.entries())
      theirs[k].push(1000 * (await store.ask({ do: 'time', cpu: ROUND_CPU, ...asSql(q, name) })));
  }
  stores.forEach((store, k) => note(named(store, q.what), { ours, theirs: theirs[k], unit: 'ms' }));
}

/* ---- the section ---- */

function noteBytes(named, samples, block, rows, { parquet, ...tables }) {
  const a = (ours, theirs) => ({ ours: ours / samples, theirs: theirs / samples, unit: 'bytes/sample', of: tables });
  note(named('bytes a sample'), a(rows, tables.samples));
  if (parquet) note(named('bytes a sample (other: Parquet)'), a(rows, parquet));
  const all = Object.values(tables).reduce((sum, bytes) => sum + bytes);
  note(named('all bytes (other: without lines)'), { ours: bytesOf(block) / 1e6, theirs: all / 1e6, unit: 'MB', of: tables });
}

export async function columns(t) {
  execFileSync(join(root, 'tests/bench/columns/prepare.sh'), { stdio: ['ignore', 'ignore', 'inherit'] });
  const scrapes = env('BENCH_COLUMNS_SCRAPES', 60), { list, dense, made } = makeInput(scrapes), thousands = list.length / 1000;
  const hour = (Math.floor(Date.now() / 1000 / WINDOW_S) - 3) * WINDOW_S, start = hour + IN_WINDOW_S;
  const stores = [columnStore(t, 'ClickHouse', 'clickhouse', dense), columnStore(t, 'DuckDB', 'duckdb', dense)];
  const named = (store, what) => `${store.name}, ${count(list.length)} profiles: ${what}`;
  const ours = [], theirs = stores.map(() => []);
  let dir;
  for (let i = 0; i < storeRounds(); i++) {
    dir = emptyDirectory('columns-data');
    ours.push((await storeIn(t, dir, list, start)) / thousands);
    for (const [k, store] of stores.entries()) theirs[k].push((await store.ask({ do: 'store', start })) / thousands);
  }
  const { server, took, block } = await cut(t, dir), decoding = (made.decode_cpu_s + made.lookup_cpu_s) / thousands;
  const { bytes } = JSON.parse(execFileSync(epitool, ['tsdb', 'analyze', '--json', join(dir, 'data')]));
  for (const [k, store] of stores.entries()) {
    const of = (what, theirs, rest) => note(named(store, what), { ours, theirs, unit: 's a 1,000', ...rest });
    of('stored (other: from ids)', theirs[k], { of: made });
    of('stored (other: decoded by Go)', theirs[k].map((s) => s + decoding));
    const finished = await store.ask({ do: 'finish' });
    of('cut (other: put in order, summed)', (finished.ordered + finished.sums) / thousands, { ours: took / thousands, of: finished });
    noteBytes((what) => named(store, what), made.samples, block, bytes.rows, await store.ask({ do: 'bytes' }));
  }
  const folded = readFileSync(join(dense, 'folded.txt')).toString().split('\n');
  const table = await query(server, 'top(5, merge(cpu:samples))', { start, end: start + STEP_S * scrapes });
  const name = table.result[0].rows[4].function;
  for (const q of questions({ start, hour, scrapes, folded, name, n: count(PODS * scrapes) })) await ask(server, stores, q, name, named);
  await server.stop();
}
