// Requests beside connections that never send one, and are opened again at once when the server ends them.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { request, start, startServer, until } from '../e2e/lib.mjs';
import { certificates } from '../e2e/certificates.mjs';
import { emptyDirectory, env } from './common.mjs';
import { note } from './report.mjs';

const ROUNDS = 3;
const REQUESTS = env('BENCH_CROWD_REQUESTS', 300);
const CROWDS = [['nothing', 0], ['nothing', 520], ['nothing', 1200], ['nothing', 5000], ['head', 5000], ['hello', 0],
  ['hello', 2000]];
const NAMES = { nothing: 'silent connections', head: 'half heads', hello: 'half TLS hellos' };

function quantile(sorted, q) {
  return sorted[Math.min(sorted.length - 1, Math.ceil(q * sorted.length) - 1)];
}

/** Each request on a connection of its own, one after the other. Milliseconds, sorted. */
async function latencies(url) {
  const all = [];
  for (let i = 0; i < REQUESTS; i++) {
    const began = process.hrtime.bigint();
    const res = await request(`${url}/-/healthy`, { rejectUnauthorized: false });
    if (res.status !== 200) throw new Error(`${res.status} ${res.body}`);
    all.push(Number(process.hrtime.bigint() - began) / 1e6);
  }
  return all.sort((a, b) => a - b);
}

async function beside(t, dir, [say, count]) {
  const args = [], tls = say === 'hello';
  if (tls) args.push(`--web.config.file=${join(dir, 'web.yml')}`);
  const server = await startServer(t, { dir, config: 'scrape_configs: []\n', args, scheme: tls ? 'https' : 'http' });
  const silent = start(t, process.execPath, [new URL('../e2e/silent.mjs', import.meta.url).pathname, server.port, count, say]);
  if (count) await until('the connections are open', 60, () => /open/.test(silent.out));
  const p50 = [], p99 = [];
  for (let round = 0; round < ROUNDS; round++) {
    const ms = await latencies(server.url);
    p50.push(quantile(ms, 0.5));
    p99.push(quantile(ms, 0.99));
  }
  await silent.stop('SIGKILL');
  await server.stop();
  note(`request beside ${count} ${NAMES[say]}, p50`, { ours: p50, unit: 'ms' });
  note(`request beside ${count} ${NAMES[say]}, p99`, { ours: p99, unit: 'ms' });
}

export async function crowd(t) {
  const dir = emptyDirectory('crowd');
  certificates(dir);
  writeFileSync(join(dir, 'web.yml'), 'tls_server_config: {cert_file: server.pem, key_file: server.key}\n');
  for (const one of CROWDS) await beside(t, dir, one);
}
