// Profiles that are sent: a stream of OTLP requests over gRPC at a steady rate, from many hosts that each send every five
// seconds, as the eBPF profiler does: memory over time, and CPU a profile.
import { readFileSync } from 'node:fs';
import { request, sleep, startServer } from '../e2e/lib.mjs';
import { call, connect, grpcPort, recorded } from '../e2e/otlp_requests.mjs';
import { cpuOf, emptyDirectory, env } from './common.mjs';
import { count, note } from './report.mjs';

const FILE = 'p2-standalone-99hz-steady', PROFILES = 10; // a request
const EVERY_S = 5; // a host
const SETTLED_S = 10;
const MIB = 1 << 20;

const resident = (server) => Number(readFileSync(`/proc/${server.child.pid}/status`, 'utf8').match(/VmRSS:\s+(\d+)/)[1]) * 1024;

async function counter(server, name) {
  const text = (await request(`${server.url}/metrics`)).body.toString();
  return Number(text.split('\n').find((l) => l.startsWith(`${name} `))?.slice(name.length + 1) ?? 0);
}

async function stream(t, rate, seconds) {
  const server = await startServer(t, { dir: emptyDirectory('push-grpc'), config: 'scrape_configs: []\n',
    args: ['--web.enable-ingest', '--web.otlp-grpc-listen-address=127.0.0.1:0'] });
  const session = connect(t, `http://127.0.0.1:${grpcPort(server)}`);
  const hosts = Array.from({ length: (rate / PROFILES) * EVERY_S }, (_, i) => recorded(FILE, { 'k8s.node.name': `node-${i}` }));
  const between = (1000 * PROFILES) / rate, requests = (seconds * rate) / PROFILES;
  const began = performance.now(), wall = Date.now();
  const running = new Set(), failures = [], took = [], memory = [];
  let stored = 0, settledAt, before;
  for (let i = 0; i < requests; i++) {
    const due = i * between, wait = began + due - performance.now();
    if (wait > 0) await sleep(wait);
    const sentAt = performance.now();
    const one = call(session, hosts[i % hosts.length].at(wall + due)).then((a) => {
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
  const of = { seconds, stored, memory, hosts: hosts.length, appended: await counter(server, 'epimetheus_ingested_profiles_total{result="ok"}') };
  note(named('stored'), { ours: stored / elapsed, unit: 'profiles/s', of });
  note(named(`resident after ${SETTLED_S} s`), { ours: settledAt / MIB, unit: 'MiB' });
  note(named(`resident after ${seconds} s`), { ours: end / MIB, unit: 'MiB', of });
  note(named(`growth between ${SETTLED_S} and ${seconds} s`), { ours: (end - settledAt) / MIB, unit: 'MiB' });
  took.sort((a, b) => a - b);
  note(named('request to its answer, p99'), { ours: took[Math.floor(took.length * 0.99)] / 1000, unit: 'seconds' });
  note(named('CPU of the server, 1,000 profiles'), { ours: 1000 * cpu, unit: 'seconds' });
  await server.stop();
}

export async function push(t) {
  await stream(t, env('BENCH_PUSH_RATE', 200), env('BENCH_PUSH_SECONDS', 60));
}
