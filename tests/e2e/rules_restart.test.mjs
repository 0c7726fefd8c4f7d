// After kill -9: what rules recorded and alerted before, and do not any more, ends at their first turn. What they go on with
// has no gap and no mark.
import test from 'node:test';
import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { query, request, scratch, startDemo, startServer, until } from './lib.mjs';
import { S, steppedClock } from './stepped.mjs';

const WINDOW = 60, LOOKBACK = 300;

test('recorded series and alerts end after kill -9', async (t) => {
  const dir = scratch(t), clock = steppedClock(dir);
  const demos = { v1: await startDemo(t, 'v1', 'none', 20), v2: await startDemo(t, 'v2', 'none', 20) };
  mkdirSync(join(dir, 'rules'));
  writeFileSync(join(dir, 'rules/a.yml'), JSON.stringify({ groups: [
    { name: 'record', rules: [{ record: 'version:goroutines', expr: `total(merge by (version) (goroutine[${WINDOW}s]))` }] },
    { name: 'alert', rules: [{ alert: 'Runs', expr: `total(merge by (version) (goroutine[${WINDOW}s])) > 0`, labels: { severity: 'page' } }] },
  ] }));
  const off = Object.fromEntries(['process_cpu', 'memory', 'block', 'mutex'].map((name) => [name, { enabled: false }]));
  const options = { ...clock.program, dir, config: JSON.stringify({
    global: { evaluation_interval: '1s', scrape_interval: '2s' },
    rule_files: ['rules/*.yml'],
    scrape_configs: [{ job_name: 'shop', profiling_config: { pprof_config: off },
      static_configs: Object.entries(demos).map(([version, demo]) => ({ targets: [demo.address], labels: { version } })) }],
  }) };
  const versions = async (server, text, at) => (await query(server, text, at)).result.map((e) => e.metric.version).sort();
  const both = (server, text) => until(`both versions in ${text}`, 30, async () => (await versions(server, text)).length === 2);

  let server = await startServer(t, options);
  await both(server, 'version:goroutines');
  await both(server, 'ALERTS{alertstate="firing"}');
  await server.stop('SIGKILL');
  await demos.v2.stop();
  clock.pass(BigInt(WINDOW + 1) * S); // what was scraped of it is outside of the window
  server = await startServer(t, options);
  for (const text of ['version:goroutines', 'ALERTS', 'ALERTS_FOR_STATE']) {
    // By the rules, not by the lookback: it still reaches back to the last value.
    const [{ values }] = (await query(server, `${text}{version="v2"}[10m]`)).result;
    const time = values.at(-1)[0] + LOOKBACK - 5;
    await until(`only v1 in ${text}`, 15, async () => JSON.stringify(await versions(server, text, { time })) === '["v1"]');
  }
  const federated = (await request(`${server.url}/federate?match[]=version:goroutines&match[]=ALERTS`)).body.toString();
  assert.match(federated, /^version:goroutines\{.*version="v1"/m);
  assert.doesNotMatch(federated, /v2/);

  // v1 is there at each second since it was scraped again: no mark ended it.
  await until('some turns', 20, async () => Number((await query(server, 'count_over_time(version:goroutines{version="v1"}[1h])')).result[0]?.value[1]) >= 10);
  const end = Math.floor(clock.now()) - 1;
  const line = (await query(server, 'version:goroutines{version="v1"}')).result;
  assert.equal(line.length, 1);
  const res = await request(`${server.url}/api/v1/query_range?${new URLSearchParams({ query: 'version:goroutines{version="v1"}', start: end - 4, end, step: 1 })}`);
  assert.equal(JSON.parse(res.body).data.result[0].values.length, 5);
});
