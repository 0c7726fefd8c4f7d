// The leaked goroutines of Go 1.27, by default settings: of a program that serves them, and of one that does not.
import test from 'node:test';
import assert from 'node:assert/strict';
import http from 'node:http';
import { readFileSync } from 'node:fs';
import { api, join, query, request, root, scratch, startServer, until } from './lib.mjs';

const LEAKS = readFileSync(join(root, 'tests/proto/testdata/go_goroutineleak.pb.gz'));
const HEAP = readFileSync(join(root, 'tests/proto/testdata/go_heap.pb.gz'));

/** A program as Go's net/http/pprof answers; `asked` counts by path. */
async function program(t, paths) {
  const asked = {};
  const server = http.createServer((req, res) => {
    const path = req.url.split('?')[0];
    asked[path] = (asked[path] ?? 0) + 1;
    if (paths[path]) return res.end(paths[path]);
    res.writeHead(404, { 'Content-Type': 'text/plain; charset=utf-8', 'X-Go-Pprof': '1' });
    res.end('Unknown profile\n');
  });
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  t.after(() => server.close());
  return { address: `127.0.0.1:${server.address().port}`, asked };
}

test('a program that has them, and one that is older', async (t) => {
  const path = '/debug/pprof/goroutineleak', heap = '/debug/pprof/allocs';
  const newer = await program(t, { [path]: LEAKS, [heap]: HEAP }), older = await program(t, { [heap]: HEAP });
  const off = ['process_cpu', 'block', 'mutex', 'goroutine'].map((name) => `${name}: {enabled: false}`).join(', ');
  const server = await startServer(t, { dir: scratch(t), config: `global: {scrape_interval: 1s, scrape_timeout: 1s}
scrape_configs:
  - job_name: go
    profiling_config: {pprof_config: {${off}, goroutineleak: {interval: 1s}}}
    static_configs:
      - {targets: ["${newer.address}"], labels: {version: newer}}
      - {targets: ["${older.address}"], labels: {version: older}}\n` });
  await until('both were asked', 60, () => newer.asked[path] >= 3 && older.asked[path]);
  const heaps = older.asked[heap] ?? 0;
  await until('more of the older one', 60, () => older.asked[heap] >= heaps + 3);
  assert.equal(older.asked[path], 1);
  const states = async () => (await request(`${server.url}/metrics`)).body.toString()
    .match(/^epimetheus_scrape_targets\{.*[1-9]$/gm).sort().join();
  await until('all that is there is up', 60, async () =>
    (await states()) === 'epimetheus_scrape_targets{state="absent"} 1,epimetheus_scrape_targets{state="up"} 3');
  const rows = (await api(server, 'targets', { state: 'active' })).activeTargets.map((x) => `${x.labels.version} ${x.profile} ${x.lastError}`);
  assert.deepEqual(rows.sort(), ['newer goroutineleak ', 'newer memory ', 'older memory ']);
  await until('the profile', 60, async () => (await query(server, 'total(merge by (version) (goroutineleak))')).result.length);
  const total = (await query(server, 'total(merge by (version) (goroutineleak))')).result;
  assert.deepEqual(total.map((x) => [x.metric, x.value[1]]), [[{ version: 'newer' }, '3']]);
  const cum = (await query(server, 'cum(goroutineleak, {function="main.sendPrice"})')).result;
  assert.deepEqual(cum.map((x) => x.value[1]), ['3']);
  await until('values of up', 60, async () => (await query(server, 'up{profile="goroutineleak"}')).result.length);
  assert.deepEqual((await query(server, 'up{profile="goroutineleak"}')).result.map((x) => [x.metric.version, x.value[1]]), [['newer', '1']]);
});
