// An OpenTelemetry collector, built of its own modules, relays profiles to the server by both of its OTLP exporters. What
// the server then answers is compared with what it answers to the same requests sent to it directly.
import test from 'node:test';
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { gunzipSync, gzipSync } from 'node:zlib';
import { api, execFileSync, freePort, join, query, request, root, scratch, start, startServer, until, writeFileSync } from './lib.mjs';
import { standBetween } from './senders/between.mjs';
import { fields } from './senders/pprof.mjs';

const otelcol = join(root, 'build/senders/collector/otelcol');
const PATH = '/v1development/profiles';
const TYPE = { 'content-type': 'application/x-protobuf' };

/** A recorded request whose last sample is at this time, in milliseconds. */
function recorded(name, end) {
  const body = gunzipSync(readFileSync(join(root, 'tests/proto/otlp/testdata', `${name}.pb.gz`)));
  const under = (list, field) => list.flatMap((bytes) => [...fields(bytes)].filter(([f]) => f === field));
  const profiles = [1, 2, 2].reduce((list, field) => under(list, field).map(([, v]) => v), [body]);
  const times = [
    ...under(profiles, 3).map(([, , at]) => at), // time_unix_nano
    ...under(under(profiles, 2).map(([, sample]) => sample), 5).flatMap(([, packed]) =>
      Array.from({ length: packed.length / 8 }, (_, i) => packed.subarray(i * 8, i * 8 + 8))),
  ];
  const last = times.map((at) => at.readBigUInt64LE()).reduce((a, b) => (a > b ? a : b));
  for (const at of times) at.writeBigUInt64LE(at.readBigUInt64LE() - last + BigInt(end) * 1000000n);
  return body;
}

/** Some requests of the last minutes, each with times of its own. */
function requests(names, end) {
  return names.map((name, i) => recorded(name, end - 100_000 + i * 7000 + i));
}

const exporters = {
  otlp_http: (to) => `otlp_http: {endpoint: "${to.url}"`,
  otlp_grpc: (to) => `otlp_grpc: {endpoint: "127.0.0.1:${to.grpc}", tls: {insecure: true}`,
};

/** Its log is in `err`; `url` takes OTLP over HTTP. A port that another program took meanwhile is replaced. */
async function startCollector(t, dir, exporter) {
  execFileSync(join(root, 'tests/e2e/senders/prepare.sh'), ['collector'], { stdio: 'pipe' });
  const file = join(dir, 'otelcol.yml');
  for (;;) {
    const port = await freePort();
    writeFileSync(file, `receivers:
  otlp: {protocols: {http: {endpoint: "127.0.0.1:${port}"}}}
exporters:
  ${exporter}, retry_on_failure: {initial_interval: 200ms, max_interval: 1s}, sending_queue: {num_consumers: 2}}
service:
  pipelines:
    profiles: {receivers: [otlp], exporters: [${exporter.split(':')[0]}]}
`);
    const run = start(t, otelcol, [`--config=file:${file}`, '--feature-gates=+service.profilesSupport'], { cwd: dir });
    run.url = `http://127.0.0.1:${port}`;
    const began = await until('the collector begins', 30, () =>
      (run.code !== undefined ? 'ended' : run.err.includes('Everything is ready') && 'ready'));
    if (began === 'ready') return run;
    assert.match(run.err, /address already in use/);
  }
}

async function send(to, bodies) {
  for (const body of bodies) {
    const { status, body: answer } = await request(to.url + PATH,
      { method: 'POST', headers: { ...TYPE, 'content-encoding': 'gzip' }, body: gzipSync(body) });
    assert.equal(status, 200, answer.toString());
  }
}

const flags = ['--web.enable-ingest', '--web.otlp-grpc-listen-address=127.0.0.1:0'];

async function startReceiver(t, { config = 'scrape_configs: []\n', args = flags } = {}) {
  const server = await startServer(t, { dir: scratch(t), config, args });
  server.grpc = server.err.match(/OTLP over gRPC.*\bport=(\d+)/)[1];
  return server;
}

/** What the profiles of all series are, one by one and together. */
async function answers(server, time) {
  const series = await api(server, 'series', { 'match[]': '{__name__!=""}' });
  const all = { series };
  for (const text of ['count_over_time(process_cpu:samples[1h])', 'total(process_cpu:cpu[1h])',
    'top(10000, merge(process_cpu:samples[1h]))', 'merge by (job, thread_name) (process_cpu:samples[1h])'])
    all[text] = await query(server, text, { time });
  return all;
}

async function stored(server, time) {
  const { result } = await query(server, 'sum(count_over_time(process_cpu:samples[1h]))', { time });
  return Number(result[0]?.value[1] ?? 0);
}

async function checkRelayed(relayed, bodies, time, t) {
  const direct = await startReceiver(t);
  await send(direct, bodies);
  const want = await answers(direct, time);
  const n = await stored(direct, time);
  assert.ok(n > bodies.length);
  await until('all profiles', 60, async () => await stored(relayed, time) === n);
  assert.deepEqual(await answers(relayed, time), want);
}

for (const [name, exporter] of Object.entries(exporters)) {
  test(`a collector relays by ${name} what is equal to what is sent directly`, async (t) => {
    const end = Date.now();
    const bodies = requests(['p2-standalone-99hz-steady', 'p4-standalone-20hz-tiny', 'p5-collector-49hz',
      'p2-standalone-99hz-steady'], end);
    const server = await startReceiver(t);
    const collector = await startCollector(t, scratch(t), exporter(server));
    await send(collector, bodies);
    await checkRelayed(server, bodies, end / 1000, t);
    await collector.stop();
    assert.equal(collector.code, 0, collector.err);
    assert.doesNotMatch(collector.err, /Exporting failed/);
  });

  test(`by ${name} it sends again what profiles_per_second refuses`, async (t) => {
    const end = Date.now();
    const bodies = requests(Array(6).fill('p2-standalone-99hz-steady'), end);
    const server = await startReceiver(t, { config: 'push_config: {profiles_per_second: 10}\n' });
    const collector = await startCollector(t, scratch(t), exporter(server));
    await send(collector, bodies);
    await checkRelayed(server, bodies, end / 1000, t);
    assert.match(collector.err, /more than 10 profiles per second/);
    assert.doesNotMatch(collector.err, /Dropping data/);
  });

  test(`by ${name} it sends again while the server is away`, async (t) => {
    const end = Date.now();
    const bodies = requests(Array(8).fill('p2-standalone-99hz-steady'), end);
    const dir = scratch(t);
    const [web, grpc] = [await freePort(), await freePort()];
    const args = ['--web.enable-ingest', `--web.otlp-grpc-listen-address=127.0.0.1:${grpc}`];
    const options = { dir, config: 'scrape_configs: []\n', args, port: web };
    let server = await startServer(t, options);
    const collector = await startCollector(t, scratch(t), exporter({ url: server.url, grpc }));
    await send(collector, bodies.slice(0, 2));
    await until('the first are stored', 30, () => stored(server, end / 1000));
    await send(collector, bodies.slice(2, 4));
    await server.stop('SIGKILL');
    await send(collector, bodies.slice(4));
    await until('it is refused', 30, () => collector.err.includes('Exporting failed'));
    server = await startServer(t, options);
    await checkRelayed(server, bodies, end / 1000, t);
    assert.doesNotMatch(collector.err, /Dropping data/);
  });
}

test('it sends again after 503 and 429, also what was stored before its answer was lost', async (t) => {
  const end = Date.now();
  const bodies = requests(Array(6).fill('p2-standalone-99hz-steady'), end);
  const server = await startReceiver(t);
  let asked = 0;
  // Of five requests one is stored and answered with 200, one stored and answered with 503.
  const between = await standBetween(t, server, {
    before: () => [undefined, { status: 503 }, undefined, { status: 429, headers: { 'retry-after': '1' } }, undefined]
      [asked++ % 5],
    after: (answer) => (asked % 5 === 1 ? { status: 503, headers: {}, body: '' } : answer),
  });
  const collector = await startCollector(t, scratch(t), exporters.otlp_http(between));
  await send(collector, bodies);
  await checkRelayed(server, bodies, end / 1000, t);
  const statuses = new Set(between.seen.map(({ status }) => status));
  assert.deepEqual([...statuses].sort(), [200, 429, 503]);
  assert.doesNotMatch(collector.err, /Dropping data/);
});
