// Profiles that are sent. A stream of OTLP requests over gRPC at a steady rate, from many hosts that each send every five
// seconds, as the eBPF profiler does: memory over time, and CPU a profile. OTLP requests over HTTP, stored, beside their
// decoding alone by the collector's own types, and beside a Go program that decodes and keeps them. push.v1 beside scraping the
// same bodies at the same rate. All of them come from one address, so on a busy machine the server refuses some for a second:
// they are sent again, and counted.
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { Agent, createServer } from 'node:http';
import { join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import { build, request, root, sleep, startServer } from '../e2e/lib.mjs';
import { call, connect, fields, grpcPort, message, movable, recorded, varint } from '../e2e/otlp_requests.mjs';
import { cpuOf, emptyDirectory, env, fleetFiles, metrics } from './common.mjs';
import { otlpOfPprof } from './otlp_of_pprof.mjs';
import { count, note } from './report.mjs';
import { sender } from './sender.mjs';

const FILE = 'p2-standalone-99hz-steady', PROFILES = 10; // a request
const EVERY_S = 5; // a host
const SETTLED_S = 10;
const MIB = 1 << 20;

const resident = (server) => Number(readFileSync(`/proc/${server.child.pid}/status`, 'utf8').match(/VmRSS:\s+(\d+)/)[1]) * 1024;

const counter = async (server, name) => (await metrics(server)).get(name) ?? 0;

async function stream(t, rate, seconds) {
  const server = await startServer(t, { dir: emptyDirectory('push-grpc'), config: 'scrape_configs: []\n',
    args: ['--web.enable-ingest', '--web.otlp-grpc-listen-address=127.0.0.1:0'] });
  const session = connect(t, `http://127.0.0.1:${grpcPort(server)}`);
  const hosts = Array.from({ length: (rate / PROFILES) * EVERY_S }, (_, i) => recorded(FILE, { 'k8s.node.name': `node-${i}` }));
  const between = (1000 * PROFILES) / rate, requests = (seconds * rate) / PROFILES;
  const began = performance.now(), wall = Date.now();
  const running = new Set(), failures = [], took = [], memory = [], { counts, send } = sender();
  let stored = 0, settledAt, before;
  for (let i = 0; i < requests; i++) {
    const due = i * between, wait = began + due - performance.now();
    if (wait > 0) await sleep(wait);
    const sentAt = performance.now();
    const body = hosts[i % hosts.length].at(wall + due);
    const one = send(() => call(session, body)).then((a) => {
      running.delete(one);
      took.push(performance.now() - sentAt);
      if (a.status === 0 && a.body.length === 5) stored += PROFILES;
      else failures.push(`${a.status} ${a.message || a.error || a.body}`);
    });
    running.add(one);
    if (before === undefined && due >= SETTLED_S * 1000) {
      before = { cpu: cpuOf(server.child.pid), stored };
      settledAt = resident(server);
    }
    if (i % (rate / PROFILES) === 0) memory.push(Math.round(resident(server) / MIB));
  }
  await Promise.all(running);
  if (failures.length) throw new Error(`${failures.length} requests failed, the first: ${failures[0]}`);
  const elapsed = (performance.now() - began) / 1000, end = resident(server);
  const cpu = (cpuOf(server.child.pid) - before.cpu) / (stored - before.stored);
  const named = (what) => `OTLP over gRPC, ${count(rate)} profiles/s: ${what}`;
  const of = { seconds, stored, memory, ...counts, hosts: hosts.length, appended: await counter(server, 'epimetheus_ingested_profiles_total{result="ok"}') };
  note(named('stored'), { ours: stored / elapsed, unit: 'profiles/s', of });
  note(named(`resident after ${SETTLED_S} s`), { ours: settledAt / MIB, unit: 'MiB' });
  note(named(`resident after ${seconds} s`), { ours: end / MIB, unit: 'MiB', of });
  note(named(`growth between ${SETTLED_S} and ${seconds} s`), { ours: (end - settledAt) / MIB, unit: 'MiB' });
  took.sort((a, b) => a - b);
  note(named('request to its answer, p99'), { ours: took[Math.floor(took.length * 0.99)] / 1000, unit: 'seconds' });
  note(named('CPU of the server, 1,000 profiles'), { ours: 1000 * cpu, unit: 'seconds' });
  note(named('sent again'), { ours: counts.refused, unit: 'requests', of: counts });
  await server.stop();
}

/** Senders keep their connections. */
function connections(t) {
  const agent = new Agent({ keepAlive: true });
  t.after(() => agent.destroy());
  return agent;
}

/* ---- OTLP: stored, beside decoding alone ---- */

const REQUESTS = 400, ROUNDS = 3, CLIENTS = 8;

/** The program with the collector's own types. */
function otlpGen() {
  const gen = join(build, 'bench', 'otlp_gen');
  const go = execFileSync(join(root, 'tests/go.sh')).toString().trim();
  execFileSync(go, ['build', '-o', gen, '.'], { cwd: join(root, 'tests/proto/otlp/gen') });
  return gen;
}

/** Seconds of those types for one request, not compressed, by rounds. */
function decodedByGo(gen, body) {
  const file = join(emptyDirectory('push-otlp'), 'request.pb');
  writeFileSync(file, body);
  return Array.from({ length: ROUNDS }, () => 1 / Number(execFileSync(gen, ['bench', file], { env: { ...process.env, GOMAXPROCS: '1' } })));
}

/** CPU seconds of a process for one request, by rounds. Some clients send at once; each request is of a later time. */
async function sentTo(t, url, pid, one) {
  const headers = { 'content-type': 'application/x-protobuf' };
  const began = Date.now() - 3600e3, rounds = [];
  const agent = connections(t), { counts, send } = sender();
  for (let i = 0, n = 0; i < ROUNDS; i++) {
    const before = cpuOf(pid);
    const end = n + REQUESTS;
    await Promise.all(Array.from({ length: CLIENTS }, async () => {
      while (n < end) {
        const body = one.at(began + n++ * 2000);
        const answer = await send(() => request(url, { method: 'POST', agent, headers, body }));
        if (answer.status !== 200 || answer.body.length) throw new Error(`${answer.status} ${answer.body}`);
      }
    }));
    rounds.push((cpuOf(pid) - before) / REQUESTS);
  }
  return { rounds, counts };
}

/** HTTP, decoding, storing, syncing. */
async function storedOf(t, one) {
  const server = await startServer(t, { dir: emptyDirectory('push-otlp-data'), config: 'scrape_configs: []\n', args: ['--web.enable-ingest'] });
  const sent = await sentTo(t, `${server.url}/v1development/profiles`, server.child.pid, one);
  const stored = await counter(server, 'epimetheus_ingested_profiles_total{result="ok"}');
  if (stored !== one.profiles * REQUESTS * ROUNDS) throw new Error(`${stored} profiles were stored`);
  await server.stop();
  return sent;
}

/** The same of a program in Go that decodes a request and appends its body to a file. */
async function storedByGo(t, gen, one) {
  const program = spawn(gen, ['serve', join(emptyDirectory('push-otlp-go'), 'bodies')], { stdio: ['ignore', 'pipe', 'inherit'] });
  t.after(() => program.kill());
  const [port] = await once(program.stdout, 'data');
  const sent = await sentTo(t, `http://127.0.0.1:${Number(port)}/`, program.pid, one);
  program.kill();
  return sent;
}

async function otlp(t) {
  const gen = otlpGen();
  const { body, samples } = otlpOfPprof(readFileSync(fleetFiles('fleet-cpu', 1, 1)[0]), 'shop');
  const small = recorded(FILE, { 'k8s.node.name': 'node-1' }), large = movable(body);
  for (const [what, one] of [[`${large.profiles} types of ${count(samples)} stacks`, large], [`${small.profiles} small profiles`, small]]) {
    const { rounds, counts } = await storedOf(t, one), of = { bytes: one.bytes, clients: CLIENTS, ...counts };
    note(`OTLP request of ${what}, stored (other: decoded by Go)`, { ours: rounds, theirs: decodedByGo(gen, one.at(Date.now())), unit: 'seconds', of });
    const { rounds: theirs } = await storedByGo(t, gen, one);
    note(`OTLP request of ${what}, stored (other: decoded and kept by Go)`, { ours: rounds, theirs, unit: 'seconds', of });
  }
}

/* ---- push.v1, beside scraping ---- */

const SENDERS = 100, SETTLING_S = 3, MEASURED_S = 20; // each sends or is scraped once a second

/** A profile without its time; and, with another one, as a body. */
const timeless = (raw) => Buffer.concat(fields(raw, 0, raw.length).filter((f) => f.field !== 9).map((f) => raw.subarray(f.from, f.end)));
const timed = (raw, ms) => gzipSync(Buffer.concat([raw, varint(9 * 8), varint(Math.round(ms) * 1e6)]));

const label = (name, value) => message(1, message(1, name), message(2, value));

/** CPU seconds of the server for a profile, by rounds. */
async function costOf(server, stored) {
  const rounds = [];
  await sleep(SETTLING_S * 1000);
  for (let i = 0; i < ROUNDS; i++) {
    const cpu = cpuOf(server.child.pid), n = await counter(server, stored);
    await sleep(MEASURED_S * 1000 / ROUNDS);
    rounds.push((cpuOf(server.child.pid) - cpu) / ((await counter(server, stored)) - n));
  }
  return rounds;
}

async function scraped(t, bodies) {
  let i = 0;
  const target = createServer((_, res) => res.end(timed(bodies[i++ % bodies.length], Date.now())));
  await new Promise((listening) => target.listen(0, '127.0.0.1', listening));
  t.after(() => target.close());
  const off = ['process_cpu', 'memory', 'block', 'mutex', 'goroutine', 'goroutineleak'].map((p) => `        ${p}: {enabled: false}\n`).join('');
  const one = (k) => `      - {targets: ["127.0.0.1:${target.address().port}"], labels: {pod: "pod-${k}"}}\n`;
  const server = await startServer(t, { dir: emptyDirectory('push-scraped'), config: `scrape_configs:
  - job_name: bench
    scrape_interval: 1s
    profiling_config:
      pprof_config:
${off}        bench: {path: /bench}
    static_configs:
${Array.from({ length: SENDERS }, (_, k) => one(k)).join('')}` });
  const rounds = await costOf(server, 'epimetheus_scrape_scrapes_total{result="ok"}');
  await server.stop();
  target.closeAllConnections();
  return rounds;
}

async function pushed(t, bodies) {
  const server = await startServer(t, { dir: emptyDirectory('push-v1'), config: 'scrape_configs: []\n', args: ['--web.enable-ingest'] });
  const url = `${server.url}/push.v1.PusherService/Push`, headers = { 'content-type': 'application/proto' };
  const agent = connections(t), { counts, send: sendUntilTaken } = sender();
  let going = true, failure;
  const send = async (k) => {
    for (let i = k; going; i++) {
      const began = Date.now();
      const labels = [label('__name__', 'bench'), label('service_name', 'bench'), label('pod', `pod-${k}`)];
      const sample = message(2, message(1, timed(bodies[i % bodies.length], began)));
      const body = message(1, ...labels, sample);
      const answer = await sendUntilTaken(() => request(url, { method: 'POST', agent, headers, body }));
      if (answer.status !== 200) failure = `${answer.status} ${answer.body}`;
      await sleep(Math.max(0, 1000 - (Date.now() - began)));
    }
  };
  const all = Array.from({ length: SENDERS }, (_, k) => sleep((1000 * k) / SENDERS).then(() => send(k)));
  const rounds = await costOf(server, 'epimetheus_ingested_profiles_total{result="ok"}');
  going = false;
  await Promise.all(all);
  if (failure) throw new Error(failure);
  await server.stop();
  return { rounds, counts };
}

async function beside(t) {
  const bodies = fleetFiles('fleet-cpu', 10, 10).map((f) => timeless(gunzipSync(readFileSync(f))));
  const { rounds, counts } = await pushed(t, bodies);
  note('CPU of a profile by push.v1 (other: scraped)', { ours: rounds, theirs: await scraped(t, bodies), unit: 'seconds', of: counts });
  note('push.v1: sent again', { ours: counts.refused, unit: 'requests', of: counts });
}

export async function push(t) {
  await otlp(t);
  await beside(t);
  await stream(t, env('BENCH_PUSH_RATE', 200), env('BENCH_PUSH_SECONDS', 60));
}
