// How long do shocks last? Real services under a random load, their shares per slice, and the autocorrelation of these.
//
//	EPI_BUILD=$PWD/build node tests/promql/changed/services/services.mjs [minutes, default 30]
//
// The demo, a Go server and a node server get requests of five kinds, at random times and of random sizes; our own server
// scrapes all but node's (whose profile node writes itself) and itself, and answers queries. Of the greatest functions of each the
// shares per ten seconds are taken. Sampling is white, so the covariance of slices apart is that of shocks alone. No test runs it.
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import http from 'node:http';
import { build, join, query, root, scratch, sleep, start, startDemo, startServer, until, writeFileSync } from '../../../e2e/lib.mjs';

const ends = [];
const t = { after: (fn) => ends.push(fn) };
const minutes = Number(process.argv[2] ?? 30);
const here = join(root, 'tests/promql/changed/services');
const SLICE_S = 10;
const TOP = 8;
const LAGS = [1, 2, 3, 6, 12, 18, 30, 60]; // slices

async function address(run) {
  return until('it listens', 20, () => run.out.match(/127\.0\.0\.1:\d+/)?.[0]);
}

const get = (url) => new Promise((done) => {
  http.get(url, (res) => res.resume().on('end', done)).on('error', done);
});

/** Requests whose times are Poisson's and whose sizes are heavy-tailed, until `end`. */
async function load(host, perSecond, sizes, end) {
  const kinds = Object.keys(sizes);
  while (Date.now() < end) {
    await sleep(-Math.log(1 - Math.random()) * 1000 / perSecond);
    const kind = kinds[Math.floor(Math.random() * kinds.length)];
    get(`http://${host}/${kind}?n=${Math.round(sizes[kind] * Math.min(20, (1 - Math.random()) ** -0.7))}`);
  }
}

async function queries(server, end) {
  const asked = ['topk(10, flat(cpu[2m]))', 'cpu[5m]', 'changed(cpu{job="go"}[2m], cpu{job="go"}[5m] offset 2m)', 'sum by (job) (total(cpu[1m]))'];
  while (Date.now() < end) {
    await sleep(-Math.log(1 - Math.random()) * 150);
    await query(server, asked[Math.floor(Math.random() * asked.length)]).catch(() => {});
  }
}

/** Counts per function and slice, from matrices of the server. */
async function fromServer(server, job, from, to) {
  const out = new Map();
  for (let s = from; s < to; s += SLICE_S) {
    const r = await query(server, `sum by (function) (flat(cpu:samples{job="${job}"}[${SLICE_S}s]))`, { time: s + SLICE_S });
    for (const c of r.result) {
      const f = c.metric.function;
      if (!out.has(f)) out.set(f, []);
      out.get(f)[(s - from) / SLICE_S] = Number(c.value[1]);
    }
  }
  return out;
}

/** The same from a profile that node wrote; idle time is left out. */
function fromNode(dir, skip_s) {
  const file = readdirSync(dir).find((n) => n.endsWith('.cpuprofile'));
  const p = JSON.parse(readFileSync(join(dir, file), 'utf8'));
  const names = new Map(p.nodes.map((n) => [n.id, `${n.callFrame.functionName}@${n.callFrame.lineNumber}`]));
  const out = new Map();
  let at = 0;
  p.samples.forEach((id, i) => {
    at += p.timeDeltas[i] / 1e6;
    const f = names.get(id), slice = Math.floor((at - skip_s) / SLICE_S);
    if (slice < 0 || /^\((idle|program|root)\)/.test(f)) return;
    if (!out.has(f)) out.set(f, []);
    out.get(f)[slice] = (out.get(f)[slice] ?? 0) + 1;
  });
  return out;
}

function describe(name, counts) {
  if (counts.size === 0) return;
  const n = Math.max(...[...counts.values()].map((v) => v.length));
  const totals = Array.from({ length: n }, (_, i) => [...counts.values()].reduce((s, v) => s + (v[i] ?? 0), 0));
  const all = totals.reduce((a, b) => a + b);
  const sum = (v) => v.reduce((a, b) => a + (b ?? 0), 0);
  const top = [...counts].map(([f, v]) => [f, v, sum(v)]).sort((a, b) => b[2] - a[2]).slice(0, TOP);
  let excess = 0, sampling = 0, square = 0;
  const at = LAGS.map(() => 0);
  for (const [, v, of] of top) {
    const share = of / all;
    const x = totals.map((total, i) => (total > 0 ? (v[i] ?? 0) / total - share : 0));
    const white = totals.reduce((a, total) => a + (total > 0 ? share * (1 - share) / total : 0), 0) / n;
    excess += x.reduce((a, b) => a + b * b, 0) / n - white;
    sampling += white;
    square += share * share;
    LAGS.forEach((lag, k) => {
      let c = 0;
      for (let i = lag; i < n; i++) c += x[i] * x[i - lag];
      at[k] += c / (n - lag);
    });
  }
  console.log(`| ${name} | ${n} | ${(all / n).toFixed(0)} | ${(100 * Math.sqrt(Math.max(excess, 0) / square)).toFixed(1)} % | ` +
    `${(excess / sampling).toFixed(2)} | ${at.map((c) => (c / excess).toFixed(2)).join(' | ')} |`);
}

async function main() {
  const dir = scratch(t);
  const go = join(build, 'services-go');
  execFileSync('go', ['build', '-o', go, join(here, 'server.go')], { stdio: 'inherit' });
  const demo = await startDemo(t, 'v1', 'none');
  const goHost = await address(start(t, go, []));
  const node = start(t, process.execPath, ['--cpu-prof', '--cpu-prof-interval', '10000', `--cpu-prof-dir=${dir}`, join(here, 'server.cjs')]);
  const nodeHost = await address(node), nodeBegan = Date.now();
  const jobs = { demo: demo.address, go: goHost };
  const config = () => 'global: {scrape_interval: 5s}\nscrape_configs:\n' + Object.entries(jobs).map(([job, host]) =>
    `  - {job_name: ${job}, static_configs: [{targets: ["${host}"]}]}\n`).join('');
  const server = await startServer(t, { dir, config: config() });
  jobs.self = `127.0.0.1:${server.port}`; // known only now
  writeFileSync(join(dir, 'epimetheus.yml'), config());
  server.child.kill('SIGHUP');
  const end = Date.now() + minutes * 60000;
  const loads = [load(goHost, 30, { json: 250, sort: 250, hash: 250, gzip: 160, match: 1200 }, end),
    load(nodeHost, 30, { json: 1200, sort: 600, hash: 400, gzip: 250, match: 3000 }, end), queries(server, end)];
  await sleep(60000); // what starts is not steady
  const from = Math.ceil(Date.now() / 1000 / SLICE_S) * SLICE_S;
  await Promise.all(loads);
  const to = Math.floor(Date.now() / 1000 / SLICE_S) * SLICE_S - SLICE_S;
  await node.stop('SIGTERM');
  console.log(`| service | slices of ${SLICE_S} s | samples in each | shocks, of the share | shocks / sampling | ` +
    LAGS.map((l) => `${l * SLICE_S} s`).join(' | ') + ' |');
  for (const job of Object.keys(jobs))
    describe(job, await fromServer(server, job, from, to));
  describe('node', fromNode(dir, from - nodeBegan / 1000));
}

main().catch((e) => { console.error(e); process.exitCode = 1; }).finally(async () => {
  for (const end of ends.reverse()) await end();
});
