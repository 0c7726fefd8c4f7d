// changed() on a real program: silent while nothing changes, and it names the function that costs more since a minute.
import test from 'node:test';
import assert from 'node:assert/strict';
import { demoRegressions, query, request, scratch, startDemo, startServer, until } from './lib.mjs';

const regression = 'rankOffers';
const BASE_S = 60; // other work on the machine comes and goes: of a short time it may be all

test(`${regression} becomes slower in a running program`, async (t) => {
  const demo = await startDemo(t, 'v1', 'none');
  const config = `
global: {scrape_interval: 2s}
scrape_configs:
  - job_name: demo
    static_configs: [{targets: ["${demo.address}"]}]
`;
  const server = await startServer(t, { dir: scratch(t), config });

  await t.test('too short a time is said to be so', async () => {
    const r = await request(`${server.url}/api/v1/query?query=${encodeURIComponent('changed(cpu[30s], cpu[30s] offset 30s)')}`);
    const answer = JSON.parse(r.body);
    assert.deepEqual(answer.data.result, []);
    assert.match(answer.infos[0], /^changed\(\): /);
  });

  assert.ok(demoRegressions().includes(regression));
  await until('scrapes of the base', 2 * BASE_S, async () => {
    const r = await query(server, `merge(cpu[${BASE_S + 2}s])`);
    return r.result.length === 1 && r.result[0].profiles >= 0.4 * BASE_S; // of one every two seconds, some late
  });
  await request(`http://${demo.address}/-/regression?name=${regression}`, { method: 'POST' });
  const since = Math.floor(Date.now() / 1000);

  // The longer it is slower the surer the answer; on a machine with other work that takes longer.
  await t.test('the regression is found', async () => {
    let last;
    await until('the regression is found', 60, async () => {
      const length = Math.floor(Date.now() / 1000) - since - 2;
      if (length < 30) return false;
      last = await query(server, `changed(cpu[${length}s], cpu[${BASE_S}s] offset ${length + 2}s)`, { time: since + length + 2 });
      const found = last.result.find((c) => c.metric.function === `main.${regression}`);
      return found && Number(found.value[1]) > 0.005;
    });
  });
});
