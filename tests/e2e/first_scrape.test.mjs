// A target's first scrape: at once after the start of the server, by the server's own times, though the interval is an hour.
import test from 'node:test';
import assert from 'node:assert/strict';
import { api, scratch, startDemo, startServer, targets, until } from './lib.mjs';

const INTERVAL_S = 3600;
const MOST_S = 300; // of an hour; a busy machine takes seconds

test('the first profiles of a new target begin at the start of the server, and again after a restart', async (t) => {
  const dir = scratch(t), demo = await startDemo(t, 'v1', 'none');
  const config = `global: {scrape_interval: 1h}
scrape_configs:
  - job_name: shop
    profiling_config: {pprof_config: {process_cpu: {seconds: 1}}}
    static_configs: [{targets: ["${demo.address}"]}]
`;
  const offsets = [];
  for (let i = 0; i < 2; i++) {
    const server = await startServer(t, { dir, config });
    const all = await until('all profiles are stored', 30, async () => {
      const rows = await targets(server);
      return rows.length === 5 && rows.every((r) => r.health === 'up') && rows;
    });
    const { startTime } = await api(server, 'status/runtimeinfo');
    for (const row of all) {
      const after = (Date.parse(row.lastScrape) - Date.parse(startTime)) / 1000;
      assert.ok(after >= 0 && after < MOST_S, `${row.profile}: ${after} s after the start`);
      const next = (Date.parse(row.nextProfile) - Date.parse(row.lastScrape)) / 1000;
      assert.ok(next >= INTERVAL_S && next < 2 * INTERVAL_S + 2 * MOST_S, `${row.profile}: the second one ${next} s later`);
    }
    // Sharing moves the turns of CPU profiles, so that two servers meet.
    offsets.push(Object.fromEntries(all.filter((r) => r.profile !== 'process_cpu')
      .map((r) => [r.profile, (Date.parse(r.nextProfile) / 1000) % INTERVAL_S])));
    await server.stop();
  }
  const [one, two] = offsets;
  assert.ok(new Set(Object.values(one).map(Math.round)).size > 1, 'profiles have offsets of their own');
  for (const [profile, at] of Object.entries(one)) {
    const apart = Math.abs(at - two[profile]);
    assert.ok(Math.min(apart, INTERVAL_S - apart) < 5, `${profile} keeps its offset: ${at} and ${two[profile]}`);
  }
});
