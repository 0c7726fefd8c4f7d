// changed() on the demo fleet: how often it finds a slow function, how often it reports a change while there is none, and how
// soon it sees a function that begins to cost more.
//
//	EPI_BUILD=$PWD/build node tests/e2e/changed_demo.mjs [steady minutes, default 12] [scrape interval, default 5]
//
// Two demos without a regression and one with are scraped. Then windows that end every 45 s of the steady time are judged,
// and the regression is switched on in one of the two. It takes the steady minutes and two more. No test runs it.
import { demoRegressions, query, request, scratch, sleep, startDemo, startServer } from './lib.mjs';

const ends = [];
const t = { after: (fn) => ends.push(fn) };
const minutes = Number(process.argv[2] ?? 12);
const interval = Number(process.argv[3] ?? 5);
const ENDS = 40;
const windows = [['2m', 120], ['5m', 300], ['10m', 600], ['15m', 900]].filter(([, seconds]) => seconds * 2 <= minutes * 60);

/** In how many evaluations, 45 s apart, a function is found (or any), and in how many in a row it is not. */
async function judge(server, began, now, [a, b, reach], name) {
  let n = 0, found = 0, missed = 0, longest = 0;
  const others = new Set();
  for (let time = now; time - reach > began && n < ENDS; time -= 45, n++) {
    const { result } = await query(server, `changed(${a}, ${b})`, { time });
    const functions = result.map((c) => c.metric.function);
    const hit = name ? functions.includes(name) : functions.length > 0;
    found += hit;
    missed = hit ? 0 : missed + 1;
    longest = Math.max(longest, missed);
    if (!name) functions.forEach((f) => others.add(f));
  }
  return `${found} of ${n}${name ? `, ${longest} missed in a row` : [...others].map((f) => ` ${f}`).join()}`;
}

async function main() {
  const regression = demoRegressions()[0];
  const slow = `main.${regression}`;
  const [v1, v2, v3] = [await startDemo(t, 'v1', 'none'), await startDemo(t, 'v2', 'none'), await startDemo(t, 'v2', regression)];
  const target = (demo, version) => `      - {targets: ["${demo.address}"], labels: {version: ${version}}}\n`;
  const config = `global: {scrape_interval: ${interval}s}
scrape_configs:
  - job_name: demo
    static_configs:
${target(v1, 'v1')}${target(v2, 'v2')}${target(v3, 'v3')}`;
  const server = await startServer(t, { dir: scratch(t), config });
  const began = Date.now() / 1000 + 2 * interval; // leaves out the first scrapes and the programs' start
  await sleep(minutes * 60000);
  const now = Math.floor(Date.now() / 1000);
  const of = (version, window) => `cpu{version="${version}"}[${window}]`;
  for (const [window, s] of windows) {
    const before = (version) => [of(version, window), `${of(version, window)} offset ${window}`, 2 * s];
    const beside = (a, b) => [of(a, window), of(b, window), s];
    console.log(`${window}: found in v3 beside v1 ${await judge(server, began, now, beside('v3', 'v1'), slow)}; ` +
      `beside v2 ${await judge(server, began, now, beside('v3', 'v2'), slow)}`);
    console.log(`${window}: anything in v2 beside v1 ${await judge(server, began, now, beside('v2', 'v1'))}; before: ` +
      `v1 ${await judge(server, began, now, before('v1'))}; v2 ${await judge(server, began, now, before('v2'))}; ` +
      `v3 ${await judge(server, began, now, before('v3'))}`);
  }
  await request(`http://${v2.address}/-/regression?name=${regression}`, { method: 'POST' });
  const since = Date.now();
  const found = {};
  while (Date.now() - since < 120000 && Object.keys(found).length < 3) {
    for (const [name, a, b] of [['2m, before', 'cpu{version="v2"}[2m]', 'cpu{version="v2"}[2m] offset 2m'],
      ['30s, before', 'cpu{version="v2"}[30s]', 'cpu{version="v2"}[10m] offset 2m'],
      ['2m, v1', 'cpu{version="v2"}[2m]', 'cpu{version="v1"}[2m]']]) {
      const r = await query(server, `changed(${a}, ${b})`);
      const hit = r.result.find((c) => c.metric.function === slow);
      if (hit && !found[name]) {
        found[name] = true;
        console.log(`${name}: ${slow} found after ${Math.round((Date.now() - since) / 1000)} s, ` +
          `${(100 * hit.value[1]).toFixed(1)} points, ${r.result.length} functions in all, first ` +
          r.result[0].metric.function);
      }
    }
    await sleep(1000);
  }
}

main().catch((e) => { console.error(e); process.exitCode = 1; }).finally(async () => {
  for (const end of ends.reverse()) await end();
});
