// Scraping at the size of a fleet: thousands of targets of tests/load, CPU and heap every 15 s, stored; then the same
// with a tenth of them hostile.
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { build, epimetheus, request, sleep, start, targets as activeTargets, until } from '../e2e/lib.mjs';
import { emptyDirectory, env } from './common.mjs';
import { count, note } from './report.mjs';

const load = join(build, 'tests/load/load');
const INTERVAL = 15;
const ON_TIME = 0.6; // seconds: the bucket of the server's histogram below a second

const config = (file) => `
global: {scrape_interval: ${INTERVAL}s}
scrape_configs:
- job_name: fleet
  body_size_limit: 8MB
  file_sd_configs: [{files: ['${file}']}]
  profiling_config:
    pprof_config: {block: {enabled: false}, mutex: {enabled: false}, goroutine: {enabled: false}, goroutineleak: {enabled: false}}
`;

async function metrics(server) {
  const text = (await request(`${server.url}/metrics`)).body.toString();
  return (name) => {
    const at = text.split('\n').find((l) => l.startsWith(`${name} `));
    return at ? Number(at.slice(name.length + 1)) : 0;
  };
}

/** Two connections a target and what a database needs, where that many descriptors are allowed; else as many as are. */
async function serve(t, dir, files) {
  const run = start(t, 'bash', ['-c', `ulimit -n ${files} 2>/dev/null; exec "$@"`, 'bash', epimetheus, '--web.listen-address=127.0.0.1:0',
    '--web.enable-lifecycle', `--storage.tsdb.path=${join(dir, 'data')}`, `--config.file=${join(dir, 'epimetheus.yml')}`], { cwd: dir });
  run.port = await until('server is ready', 60, () => {
    if (run.code !== undefined) throw new Error(`server ended: ${run.err}`);
    return run.err.match(/msg=ready\b.*\bport=(\d+)/)?.[1];
  });
  run.url = `http://127.0.0.1:${run.port}`;
  return run;
}

/** Sums over the targets that are honest. */
async function honest(server) {
  const list = (await activeTargets(server)).filter((a) => a.labels.kind === 'honest');
  return { n: list.length, up: list.filter((a) => a.health === 'up').length,
    errors: [...new Set(list.map((a) => a.lastError).filter(Boolean))].slice(0, 5) };
}

const elapsed = (began) => Number(process.hrtime.bigint() - began) / 1e9;

/** A tenth of the targets goes and comes back; then the same configuration again. */
async function reload(server, file, n) {
  const text = readFileSync(file), document = JSON.parse(text);
  const gone = Math.floor(n / 10);
  for (const [what, data, left] of [[`${count(gone)} targets dropped of ${count(n)}`, JSON.stringify(document.slice(gone)), n - gone],
    [`${count(gone)} targets added to ${count(n - gone)}`, text, n]]) {
    writeFileSync(`${file}.new`, data);
    await sleep(3000); // discovery waits a moment after a change for more of them
    const began = process.hrtime.bigint();
    renameSync(`${file}.new`, file);
    while ((await metrics(server))('epimetheus_scrape_pool_targets{scrape_pool="fleet"}') !== 2 * left) {
      if (elapsed(began) > 60) throw new Error(`${what}: not within 60 s`);
      await sleep(20);
    }
    note(`${what}, until taken over`, { ours: elapsed(began), unit: 'seconds' });
  }
  const began = process.hrtime.bigint();
  const res = await request(`${server.url}/-/reload`, { method: 'POST' });
  if (res.status !== 200) throw new Error(`reload: ${res.status} ${res.body}`);
  note(`reload of ${count(n)} unchanged targets`, { ours: elapsed(began), unit: 'seconds' });
}

async function measure(t, n, hostile, seconds) {
  const dir = emptyDirectory(`scrape-${hostile}`), file = join(dir, 'targets.json');
  const fleet = start(t, load, [`--targets=${n}`, `--hostile=${hostile}`, `--file=${file}`, `--interval=${INTERVAL}s`]);
  await until('targets listen', 120, () => {
    if (fleet.code !== undefined) throw new Error(fleet.err);
    return fleet.out.includes('"port"');
  });
  writeFileSync(join(dir, 'epimetheus.yml'), config(file));
  const server = await serve(t, dir, n * 3 + 4096);
  await sleep((INTERVAL * 2 + 3) * 1000); // every target has its connections and its delta base
  const before = await metrics(server);
  fleet.child.kill('SIGUSR1');
  await sleep(seconds * 1000);
  const after = await metrics(server);
  const shown = await honest(server);
  fleet.child.kill('SIGUSR1');
  const came = await until('counts', 10, () => fleet.out.trim().split('\n').filter((l) => l.includes('"honest"')).map((l) => JSON.parse(l))[1]);
  const d = (name) => after(name) - before(name);
  const delay = 'epimetheus_scrape_start_delay_seconds';
  const begun = d(`${delay}_count`), skipped = d('epimetheus_scrape_skipped_total');
  const ok = d('epimetheus_scrape_scrapes_total{result="ok"}');
  const named = (what) => `${count(n)} targets${hostile ? `, ${hostile} % hostile` : ''}: ${what}`;
  const of = { begun, skipped, ok, came, shown };
  const turns = begun + (hostile ? 0 : skipped); // a hostile one that holds on loses its own turns
  note(named(`CPU + heap each ${INTERVAL} s`), { ours: ok / seconds, unit: 'profiles/s', of });
  note(named('begun within 0.6 s of their turn'), { ours: 100 * d(`${delay}_bucket{le="${ON_TIME}"}`) / turns, unit: '%' });
  note(named('asked within 1 s of the interval'), { ours: 100 * (1 - came.honest.late / came.honest.gaps), unit: '%' });
  note(named('last scrape went well'), { ours: 100 * shown.up / shown.n, unit: '%' });
  note(named('longest gap between two requests'), { ours: came.honest.gap_max_s, unit: 'seconds' });
  const cpu = d('process_cpu_seconds_total') / ok; // a profile
  note(named('CPU of the server, 1,000 scrapes'), { ours: 1000 * cpu, unit: 'seconds' });
  if (!hostile) note(named('so many at 10 s on one core, fetched'), { ours: 10 / (2 * cpu), unit: 'targets', of });
  note(named('resident memory of the server'), { ours: after('process_resident_memory_bytes') / (1 << 20), unit: 'MiB' });
  if (!hostile) await reload(server, file, n);
  await server.stop();
  await fleet.stop();
  note(named('CPU profiles refused'), { ours: came.honest.refused, unit: 'requests' }); // another one was under way
}

export async function scrape(t) {
  const n = env('BENCH_FLEET', 10000), seconds = env('BENCH_SECONDS', 60);
  const shares = (process.env.BENCH_HOSTILE || '0 10').split(' ').map(Number);
  for (const hostile of shares) await measure(t, n, hostile, seconds);
}
