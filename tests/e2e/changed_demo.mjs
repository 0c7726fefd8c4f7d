// changed() on the demo fleet: how often it reports a change while there is none, and how soon when a function costs more.
//
//	EPI_BUILD=$PWD/build node tests/e2e/changed_demo.mjs [steady minutes, default 12] [scrape interval, default 5]
//
// Two demos without a regression are scraped. Then windows that end every 15 s of the steady time are judged, and the
// regression is switched on in one of the demos. It takes the steady minutes and two more. No test runs it.
import { demoRegressions, query, request, scratch, sleep, startDemo, startServer } from './lib.mjs';

const ends = [];
const t = { after: (fn) => ends.push(fn) };
const minutes = Number(process.argv[2] ?? 12);
const interval = Number(process.argv[3] ?? 5);
const pairs = [['1m', 60], ['2m', 120], ['5m', 300]].filter(([, seconds]) => seconds * 3 <= minutes * 60);

async function main() {
  const regression = demoRegressions()[0];
  const v1 = await startDemo(t, 'v1', 'none');
  const v2 = await startDemo(t, 'v2', 'none');
  const config = `
global: {scrape_interval: ${interval}s}
scrape_configs:
  - job_name: demo
    static_configs:
      - {targets: ["${v1.address}"], labels: {version: v1}}
      - {targets: ["${v2.address}"], labels: {version: v2}}
`;
  const server = await startServer(t, { dir: scratch(t), config });
  const began = Date.now() / 1000 + 2 * interval; // leaves out the first scrapes and the programs' start
  await sleep(minutes * 60000);
  const now = Math.floor(Date.now() / 1000);
  for (const [window, seconds] of pairs) {
    for (const p of ['0.01', '0.05']) {
      for (const [what, a, b, reach] of [
        ['v1, then and before', `cpu{version="v1"}[${window}]`, `cpu{version="v1"}[${window}] offset ${window}`, 2],
        ['v2, then and before', `cpu{version="v2"}[${window}]`, `cpu{version="v2"}[${window}] offset ${window}`, 2],
        ['v2 and v1', `cpu{version="v2"}[${window}]`, `cpu{version="v1"}[${window}]`, 1]]) {
        let n = 0;
        const spoke = [];
        for (let time = now; time - reach * seconds > began; time -= 15, n++) {
          const r = await query(server, `changed(${a}, ${b}, ${p})`, { time });
          if (r.result.length > 0)
            spoke.push(`${r.result[0].metric.function} ${(100 * r.result[0].value[1]).toFixed(2)}`);
        }
        console.log(`${window} p=${p} ${what}: ${spoke.length} of ${n} evaluations spoke ${spoke.slice(0, 4).join(', ')}`);
      }
    }
  }
  await request(`http://${v2.address}/-/regression?name=${regression}`, { method: 'POST' });
  const since = Date.now();
  const found = {};
  while (Date.now() - since < 120000 && Object.keys(found).length < 3) {
    for (const [name, a, b] of [['2m, before', 'cpu{version="v2"}[2m]', 'cpu{version="v2"}[2m] offset 2m'],
      ['30s, before', 'cpu{version="v2"}[30s]', 'cpu{version="v2"}[10m] offset 2m'],
      ['2m, v1', 'cpu{version="v2"}[2m]', 'cpu{version="v1"}[2m]']]) {
      const r = await query(server, `changed(${a}, ${b})`);
      const hit = r.result.find((c) => c.metric.function === `main.${regression}`);
      if (hit && !found[name]) {
        found[name] = true;
        console.log(`${name}: main.${regression} found after ${Math.round((Date.now() - since) / 1000)} s, ` +
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
