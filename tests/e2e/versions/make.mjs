// Makes a small data directory with a server of any version, and asks that server what is in it:
//
//     node tests/e2e/versions/make.mjs EPIMETHEUS OUT [links]
//
// OUT/data is the directory, OUT/answers.json its answers (ask.mjs). `links`: the server takes OTLP and knows links.
import { createServer } from 'node:http';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { spawn } from 'node:child_process';
import { join, resolve } from 'node:path';
import { answersOf } from './ask.mjs';

const [program, out, links] = process.argv.slice(2);
const HOUR = 3600;
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

const varint = (n) => (n < 128 ? [n] : [(n % 128) | 128, ...varint(Math.floor(n / 128))]);
const field = (number, bytes) => [...varint(number * 8 + 2), ...varint(bytes.length), ...bytes];
const number = (of, n) => [...varint(of * 8), ...varint(n)];

/** Twelve functions, the stacks main > fK and main > fK > fK+1, of two requests; costs differ from profile to profile. */
function profile(i, types) {
  const strings = ['', ...types.flat(), 'handler', '/a', '/b', 'main', ...Array.from({ length: 12 }, (_, k) => `shop.f${k}`)];
  const at = (s) => strings.lastIndexOf(s);
  const all = types.map(([type, unit]) => field(1, [...number(1, at(type)), ...number(2, at(unit))]));
  for (let k = 0; k < 12; k++) {
    const n = 1 + ((i * 7919 + k * 104729) % 97);
    const stack = k % 2 ? [k + 2, 1] : [k + 2, k ? k + 1 : 2, 1];
    const label = field(3, [...number(1, at('handler')), ...number(2, at(k % 3 ? '/a' : '/b'))]);
    all.push(field(2, [...field(1, stack.flatMap(varint)), ...field(2, [...varint(n), ...varint(n * 1e7)]), ...label]));
  }
  for (let f = 0; f < 13; f++) {
    all.push(field(4, [...number(1, f + 1), ...field(4, [...number(1, f + 1), ...number(2, 10 + f)])]));
    all.push(field(5, [...number(1, f + 1), ...number(2, at('main') + f), ...number(4, at('main'))]));
  }
  for (const s of strings) all.push(field(6, [...Buffer.from(s)]));
  const [type, unit] = types.at(-1);
  all.push(field(11, [...number(1, at(type)), ...number(2, at(unit))]), number(12, 1e7), number(10, 1e9));
  return Buffer.from(all.flat());
}
const CPU = [['samples', 'count'], ['cpu', 'nanoseconds']];
const HEAP = [['inuse_objects', 'count'], ['inuse_space', 'bytes']];

/** One stack under two spans and under none, in OTLP. */
const spans = (i, atS) => JSON.stringify({
  resourceProfiles: [{
    resource: { attributes: [{ key: 'service.name', value: { stringValue: 'spans' } }] },
    scopeProfiles: [{ profiles: [{
      sampleType: { typeStrindex: 1, unitStrindex: 2 },
      timeUnixNano: `${atS - 1}000000000`,
      durationNano: '1000000000',
      samples: [{ stackIndex: 1, values: ['1'], linkIndex: 1 }, { stackIndex: 1, values: [`${2 + i}`], linkIndex: 2 },
        { stackIndex: 1, values: ['4'] }],
    }] }],
  }],
  dictionary: {
    stringTable: ['', 'samples', 'count', 'main'],
    mappingTable: [{}],
    functionTable: [{}, { nameStrindex: 3 }],
    locationTable: [{}, { lines: [{ functionIndex: 1 }] }],
    stackTable: [{}, { locationIndices: [1] }],
    linkTable: [{}, ...['b1', 'b2'].map((s) => ({ traceId: `${i}`.padStart(32, 'a'), spanId: s.padStart(16, '0') }))],
    attributeTable: [{}],
  },
});

async function serve(config, args) {
  const file = join(out, 'epimetheus.yml');
  writeFileSync(file, config);
  const child = spawn(resolve(program), [`--config.file=${file}`, `--storage.tsdb.path=${join(out, 'data')}`,
    '--web.listen-address=127.0.0.1:0', '--web.enable-ingest', '--web.enable-admin-api', '--storage.tsdb.retention.time=100y',
    '--storage.tsdb.out-of-order-time-window=0s', '--storage.tsdb.max-block-duration=1h', ...args]);
  let log = '';
  child.stderr.on('data', (d) => { log += d; });
  const ended = new Promise((done) => child.on('exit', done));
  process.on('exit', () => child.kill('SIGKILL'));
  for (let i = 0; !/msg=ready .*port=\d/.test(log); i++) {
    if (i > 100) throw new Error(log);
    await sleep(100);
  }
  const url = `http://127.0.0.1:${log.match(/msg=ready .*port=(\d+)/)[1]}`;
  return { url, stop: () => { child.kill('SIGTERM'); return ended; }, log: () => log };
}

async function post(url, body, headers = {}) {
  const res = await fetch(url, { method: 'POST', body, headers });
  if (!res.ok) throw new Error(`${url}: ${res.status} ${await res.text()}`);
}

const cut = async (server, n) => {
  for (let i = 0; i < 300; i++) {
    const status = await (await fetch(`${server.url}/api/v1/status/tsdb`)).json();
    if (status.data.blocks.filter((b) => b.ulid).length >= n) return;
    await sleep(100);
  }
  throw new Error('no blocks');
};

rmSync(out, { recursive: true, force: true });
mkdirSync(out, { recursive: true });
const now = Math.floor(Date.now() / 1000);
const first = now - (now % HOUR) - 3 * HOUR;

// Three hours of two jobs, pushed: whole hours, which have rollups. The third is cut by what comes after it.
let server = await serve('scrape_configs: []\n', ['--storage.tsdb.window=1h']);
for (let i = 0; i < 18; i++) {
  const at = first + 600 * i + 300;
  for (const [job, pod] of [['shop', 'a'], ['shop', 'b'], ['bank', 'a']])
    await post(`${server.url}/api/v1/ingest?name=process_cpu&job=${job}&pod=${pod}&time=${at}`, profile(i * 3 + pod.length, CPU));
  await post(`${server.url}/api/v1/ingest?name=memory&job=shop&pod=a&time=${at}`, profile(i, HEAP));
  if (links) await post(`${server.url}/v1development/profiles`, spans(i % 10, at), { 'Content-Type': 'application/json' });
}
await cut(server, 2);
await server.stop();

// Windows of ten seconds: numbers (up, and what a scrape took), in blocks and in the head.
const target = createServer((req, res) => res.end(profile(7, HEAP))).listen(0, '127.0.0.1');
await new Promise((done) => target.on('listening', done));
const off = ['process_cpu', 'block', 'mutex', 'goroutine'].map((p) => `${p}: {enabled: false}`).join(', ');
server = await serve(`scrape_configs:
- job_name: scraped
  scrape_interval: 2s
  scrape_timeout: 1s
  profiling_config: {pprof_config: {${off}}}
  static_configs: [{targets: ['127.0.0.1:${target.address().port}']}]
`, ['--storage.tsdb.window=10s']);
await sleep(25000);
if (links) await post(`${server.url}/v1development/profiles`, spans(5, Math.floor(Date.now() / 1000)), { 'Content-Type': 'application/json' });
await cut(server, 4);
// Ranges that were deleted, of blocks and of the window in the head.
await post(`${server.url}/api/v1/admin/tsdb/delete_series?match[]=${encodeURIComponent('{job="bank"}')}&start=${first + 4000}&end=${first + 8000}`);
const now2 = Math.floor(Date.now() / 1000);
await post(`${server.url}/api/v1/admin/tsdb/delete_series?match[]=${encodeURIComponent('{job="scraped"}')}&start=${now2 - 14}&end=${now2 - 2}`);
await server.stop();
target.close();

const last = Math.floor(Date.now() / 1000) + 1;
server = await serve('scrape_configs: []\n', ['--storage.tsdb.window=10s']);
const times = { first, end: first + 3 * HOUR, scraped: last - 30, last, links: Boolean(links) };
writeFileSync(join(out, 'answers.json'), `${JSON.stringify({ times, answers: await answersOf(server.url, times) }, null, 1)}\n`);
await server.stop();
rmSync(join(out, 'epimetheus.yml'));
rmSync(join(out, 'data/lock'), { force: true });
process.exit(0);
