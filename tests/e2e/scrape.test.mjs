// Scraping as an operator sees it: series about scrapes, and what a target's page says.
import test from 'node:test';
import assert from 'node:assert/strict';
import http from 'node:http';
import zlib from 'node:zlib';
import { api, query, request, scratch, sleep, startDemo, startServer, targets, until, writeFileSync, join } from './lib.mjs';

const one = (result) => Object.fromEntries(result.map((x) => [`${x.metric.job ?? ''} ${x.metric.instance ?? ''} ${x.metric.profile ?? ''}`.trim(),
  Number(x.value[1])]));
const heapOnly = '{process_cpu: {enabled: false}, block: {enabled: false}, mutex: {enabled: false}, goroutine: {enabled: false}, goroutineleak: {enabled: false}}';

test('up and its companions', async (t) => {
  const dir = scratch(t);
  const demo = await startDemo(t, 'v1', 'none', 10);
  const config = (down) => `
global: {scrape_interval: 2s}
scrape_configs:
  - job_name: x
    profiling_config: {pprof_config: {process_cpu: {seconds: 1}, block: {enabled: false}, mutex: {enabled: false}, goroutine: {enabled: false}, goroutineleak: {enabled: false}}}
    static_configs: [{targets: ["${demo.address}"${down}]}]
`;
  const server = await startServer(t, { dir, config: config(', "127.0.0.1:1"'), args: ['--web.enable-lifecycle'] });
  const ups = { [`x ${demo.address} memory`]: 1, [`x ${demo.address} process_cpu`]: 1, 'x 127.0.0.1:1 memory': 0, 'x 127.0.0.1:1 process_cpu': 0 };
  // Scrapes go on, and one of a busy machine may be out of time: what is said meanwhile is asked for anew.
  await until('four values and their companions', 40, async () => {
    assert.deepEqual(one((await query(server, 'up{job="x"}')).result), ups);
    assert.deepEqual(Object.keys(one((await query(server, 'up == 0')).result)).sort(), ['x 127.0.0.1:1 memory', 'x 127.0.0.1:1 process_cpu']);
    assert.deepEqual(one((await query(server, 'count by (job) (up)')).result), { x: 4 });
    assert.deepEqual(one((await query(server, 'sum by (profile) (up)')).result), { memory: 1, process_cpu: 1 });

    const seconds = one((await query(server, 'scrape_duration_seconds{profile="process_cpu"}')).result);
    assert.ok(seconds[`x ${demo.address} process_cpu`] >= 1, JSON.stringify(seconds));
    const list = (await targets(server)).filter((x) => x.health === 'up');
    for (const [name, field] of [['scrape_samples_scraped', 'lastSamples'], ['scrape_body_size_bytes', 'lastBytes']]) {
      const got = one((await query(server, name)).result);
      assert.ok(got[`x ${demo.address} memory`] > 0, name);
      assert.equal(got['x 127.0.0.1:1 memory'], 0, name);
      // A second in which the demo had nothing to do gives a CPU profile without samples.
      const sure = list.filter((x) => field === 'lastBytes' || x.profile === 'memory');
      assert.ok(sure.length > 0 && sure.every((x) => x[field] > 0), JSON.stringify(list.map((x) => [x.profile, x[field]])));
    }
    const scraped = await query(server, 'up', { time: Date.parse(list[0].lastScrape) / 1000 });
    assert.ok(scraped.result.length > 0, 'a value stands at the start of its scrape');
    return true;
  });

  // Numbers are no profiles: what offers types does not see them, what lists names does.
  const types = (await api(server, 'profile_types')).map((x) => x.name);
  assert.ok(types.includes('memory') && !types.some((x) => /^(up|scrape_)/.test(x)), types.join());
  assert.ok((await api(server, 'label/__name__/values')).includes('up'));
  assert.match((await request(`${server.url}/federate?match[]=up`)).body.toString(), /^up\{.*instance="127\.0\.0\.1:1".*\} 0 \d+$/m);
  assert.match((await request(`${server.url}/metrics`)).body.toString(), /^epimetheus_scrape_report_values_total\{result="ok"\} [1-9]/m);

  // A target that goes away ends its series at once, not after the lookback.
  writeFileSync(join(dir, 'epimetheus.yml'), config(''));
  assert.equal((await request(`${server.url}/-/reload`, { method: 'POST' })).status, 200);
  await until('the series ended', 10, async () => (await query(server, 'up == 0')).result.length === 0);
  assert.equal((await query(server, 'up')).result.length, 2);
});

test('relabelling, step by step', async (t) => {
  const dir = scratch(t);
  const server = await startServer(t, { dir, config: `
scrape_configs:
  - job_name: j
    profiling_config: {pprof_config: ${heapOnly}}
    static_configs: [{targets: ["127.0.0.1:1", "127.0.0.1:2"], labels: {__meta_zone: eu}}]
    relabel_configs:
      - {source_labels: [__meta_zone, job], separator: "-", target_label: zone}
      - {source_labels: [__address__], regex: ".*:2", action: drop}
      - {source_labels: [zone], modulus: 8, target_label: shard, action: hashmod}
` });
  const all = await api(server, 'targets');
  assert.equal(all.activeTargets.length, 1);
  assert.deepEqual(all.droppedTargetCounts, { j: 1 });
  assert.deepEqual(all.droppedTargets, [{ discoveredLabels: { __address__: '127.0.0.1:2', __meta_zone: 'eu', __scheme__: 'http',
    __scrape_interval__: '1m', __scrape_timeout__: '10s', job: 'j' }, scrapePool: 'j' }]);

  const active = all.activeTargets[0];
  const steps = (labels, options) => api(server, 'targets/relabel_steps', { scrapePool: 'j', labels: JSON.stringify(labels) }, options);
  const kept = await steps(active.discoveredLabels);
  assert.deepEqual(kept.steps.map((x) => x.rule), [
    { sourceLabels: ['__meta_zone', 'job'], separator: '-', regex: '(.*)', targetLabel: 'zone', replacement: '$1', action: 'replace' },
    { sourceLabels: ['__address__'], separator: ';', regex: '.*:2', replacement: '$1', action: 'drop' },
    { sourceLabels: ['zone'], separator: ';', regex: '(.*)', modulus: 8, targetLabel: 'shard', replacement: '$1', action: 'hashmod' },
  ]);
  assert.ok(kept.steps.every((x) => x.keep));
  assert.deepEqual(kept.steps[0].output, { ...active.discoveredLabels, zone: 'eu-j' });
  assert.deepEqual(kept.steps[1].output, kept.steps[0].output);
  assert.deepEqual(kept.profiles, [{ profile: 'memory', keep: true, labels: { __name__: 'memory', ...active.labels }, scrapeUrl: active.scrapeUrl }]);

  const dropped = await steps(all.droppedTargets[0].discoveredLabels);
  assert.deepEqual(dropped.steps.map((x) => x.keep), [true, false, false]);
  assert.deepEqual(dropped.steps[2].output, {});
  assert.deepEqual(dropped.profiles, [{ profile: 'memory', keep: false, droppedBy: 1 }]);
  assert.deepEqual((await steps({})).profiles, [{ profile: 'memory', keep: true, error: 'no address' }]);

  const form = await request(`${server.url}/api/v1/targets/relabel_steps`, { method: 'POST', headers: { 'Content-Type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams({ scrapePool: 'j', labels: JSON.stringify({ __address__: 'a:1', x: 'y'.repeat(100000) }) }).toString() });
  assert.equal(form.status, 200);
  for (const [params, want] of [
    [{ labels: '{}' }, 'no scrapePool parameter provided'],
    [{ scrapePool: 'j' }, 'no labels parameter provided'],
    [{ scrapePool: 'j', labels: '[]' }, 'error parsing labels: not an object'],
    [{ scrapePool: 'j', labels: '{"a": 1}' }, 'error parsing labels: the value of "a" is not a string'],
    [{ scrapePool: 'j', labels: '{"a"' }, /^error parsing labels: /],
    [{ scrapePool: 'k', labels: '{}' }, 'error getting scrape config: scrape pool "k" not found'],
  ]) {
    const res = await request(`${server.url}/api/v1/targets/relabel_steps?${new URLSearchParams(params)}`);
    const body = JSON.parse(res.body);
    assert.equal(res.status, 400);
    assert.equal(body.errorType, 'bad_data');
    if (want instanceof RegExp) assert.match(body.error, want);
    else assert.equal(body.error, want);
  }
});

test('profile a target now', async (t) => {
  const dir = scratch(t);
  const demo = await startDemo(t, 'v1', 'none', 50);
  const server = await startServer(t, { dir, args: ['--web.enable-admin-api', '--log.level=debug'], config: `
global: {scrape_interval: 5s, scrape_timeout: 5s}
scrape_configs:
  - job_name: x
    profiling_config: {pprof_config: {process_cpu: {seconds: 1}, block: {enabled: false}, mutex: {enabled: false}, goroutine: {enabled: false}, goroutineleak: {enabled: false}}}
    static_configs: [{targets: ["${demo.address}"]}]
  - job_name: down
    profiling_config: {pprof_config: ${heapOnly}}
    static_configs: [{targets: ["127.0.0.1:1"]}]
` });
  await until('up', 40, async () => (await query(server, 'up == 1')).result.length === 2);
  // On a busy machine any scrape may be out of time; one that is ordered is then ordered again.
  const LATE = /context deadline exceeded/;
  const order = (params, options = {}) => until('an answer in time', 30, async () => {
    const res = await request(`${server.url}/api/v1/targets/profile?${new URLSearchParams(params)}`, { method: 'POST', ...options });
    if (res.status >= 500) assert.doesNotMatch(res.body.toString(), LATE);
    return res;
  });
  const cpu = (await targets(server)).find((x) => x.profile === 'process_cpu');

  // In line with the scrapes of its job, which go on and fail for it not once.
  let began;
  const got = await until('a profile with samples', 30, async () => {
    began = Date.now() / 1000;
    const answer = await order({ scrapePool: 'x', scrapeUrl: cpu.scrapeUrl, seconds: 3 });
    assert.equal(answer.status, 200, answer.body.toString());
    const { data } = JSON.parse(answer.body);
    return data.samples > 0 && data;
  });
  assert.ok(Date.now() / 1000 - began >= 3);
  assert.deepEqual(got.labels, { __name__: 'process_cpu', instance: demo.address, job: 'x' });
  assert.match(got.scrapeUrl, /\?seconds=3$/);
  assert.ok(got.samples > 0 && got.bytes > 0 && got.time > began + 3 && got.time < Date.now() / 1000 + 1, JSON.stringify(got));
  assert.match(got.query, /^process_cpu\{instance=".*", job="x"\} @ \d+\.\d{3}$/);
  const shown = await query(server, got.query);
  assert.equal(shown.result[0].profiles, 1);
  const total = await query(server, `total(${got.query})`);
  assert.ok(Number(total.result[0].value[1]) > 0);

  const heap = await order({ 'match[]': 'heap{job="x"}' });
  assert.equal(heap.status, 200, heap.body.toString());
  assert.equal(JSON.parse(heap.body).data.labels.__name__, 'memory');

  const file = await order({ 'match[]': 'cpu{job="x"}', format: 'pprof', seconds: 1 });
  assert.equal(file.headers['content-type'], 'application/octet-stream');
  assert.ok(zlib.gunzipSync(file.body).includes('nanoseconds'));

  // A client that goes away takes its place in line with it.
  const gone = http.request(`${server.url}/api/v1/targets/profile?${new URLSearchParams({ scrapeUrl: cpu.scrapeUrl, seconds: 60 })}`, { method: 'POST', agent: false });
  gone.on('error', () => {});
  gone.end();
  await sleep(1500);
  gone.destroy();
  const next = await order({ scrapeUrl: cpu.scrapeUrl, seconds: 1 });
  assert.equal(next.status, 200, next.body.toString());

  for (const [params, status, want] of [
    [{}, 400, 'name a target by scrapeUrl or match[]'],
    [{ scrapePool: 'x' }, 400, 'name a target by scrapeUrl or match[]'],
    [{ scrapeUrl: 'http://nowhere/' }, 404, 'no target matches'],
    [{ scrapePool: 'down', scrapeUrl: cpu.scrapeUrl }, 404, 'no target matches'],
    [{ 'match[]': '{job="x"}' }, 400, '2 targets match: name one'],
    [{ 'match[]': '{job="x"' }, 400, /^invalid parameter "match\[\]": 1:9: /],
    [{ 'match[]': 'heap{job="x"}', seconds: 2 }, 400, 'a profile of "memory" is not measured over seconds'],
    [{ scrapeUrl: cpu.scrapeUrl, seconds: 'x' }, 400, 'invalid parameter "seconds": a number from 1 to 600'],
    [{ scrapeUrl: cpu.scrapeUrl, seconds: 601 }, 400, 'seconds is a number from 1 to 600'],
    [{ scrapeUrl: cpu.scrapeUrl, format: 'text' }, 400, 'invalid parameter "format": must be "json" or "pprof"'],
    [{ 'match[]': '{job="down"}' }, 503, /Connection refused/],
  ]) {
    const res = await order(params);
    const { error } = JSON.parse(res.body);
    assert.equal(res.status, status, `${JSON.stringify(params)}: ${error}`);
    if (want instanceof RegExp) assert.match(error, want);
    else assert.equal(error, want);
  }
  const failed = (job) => server.err.split('\n').filter((l) => l.includes(` msg="scrape failed" job=${job} `));
  assert.ok(failed('down').length > 0, server.err);
  assert.deepEqual(failed('x').filter((l) => !LATE.test(l)), []);
});

test('nobody has a target profiled without the flag', async (t) => {
  const dir = scratch(t);
  const server = await startServer(t, { dir, config: 'scrape_configs: []\n' });
  const path = `${server.url}/api/v1/targets/profile?scrapeUrl=x`;
  assert.equal((await request(path, { method: 'POST' })).status, 403);
  assert.equal((await request(path)).status, 405);
});

/** One sample of one function, 42 bytes in use. */
function tinyProfile() {
  const strings = ['', 'inuse_space', 'bytes', 'main.work'].map((x) => Buffer.concat([Buffer.from([0x32, x.length]), Buffer.from(x)]));
  return zlib.gzipSync(Buffer.concat([Buffer.from([0x0a, 4, 8, 1, 0x10, 2, 0x12, 6, 0x0a, 1, 1, 0x12, 1, 42, 0x22, 6, 8, 1, 0x22, 2, 8, 1,
    0x2a, 4, 8, 1, 0x10, 3]), ...strings]));
}

async function listen(t, handler) {
  const server = http.createServer(handler);
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  t.after(() => { server.closeAllConnections(); server.close(); });
  return `127.0.0.1:${server.address().port}`;
}

test('requests as configured', async (t) => {
  const dir = scratch(t);
  const seen = { first: [], second: [] };
  const second = await listen(t, (req, res) => {
    seen.second.push(req);
    setTimeout(() => res.end(tinyProfile()), req.url.includes('/profile') ? 1200 : 0);
  });
  const first = await listen(t, (req, res) => {
    seen.first.push(req);
    res.writeHead(302, { Location: `http://${second}/moved` }).end();
  });
  const cpuOnly = '{memory: {enabled: false}, block: {enabled: false}, mutex: {enabled: false}, goroutine: {enabled: false}, goroutineleak: {enabled: false}}';
  const server = await startServer(t, { dir, config: `
global: {scrape_interval: 1s, scrape_timeout: 1s}
scrape_configs:
  - job_name: moved
    basic_auth: {username: u, password: p}
    http_headers: {X-Scope: {values: [tenant-a]}, X-Key: {secrets: [geheim]}}
    params: {gc: ['1'], debug: ['0']}
    profiling_config: {pprof_config: ${heapOnly}}
    static_configs: [{targets: ["${first}"]}]
    relabel_configs:
      - {target_label: __param_debug, replacement: '2'}
      - {target_label: __scrape_timeout__, replacement: 500ms}
  - job_name: still
    follow_redirects: false
    profiling_config: {pprof_config: ${heapOnly}}
    static_configs: [{targets: ["${first}"]}]
  - job_name: a
    profiling_config: {pprof_config: ${cpuOnly}}
    static_configs: [{targets: ["${second}"]}]
  - job_name: b
    profiling_config: {pprof_config: ${cpuOnly}}
    static_configs: [{targets: ["${second}"]}]
` });
  const health = async (job) => (await targets(server)).find((x) => x.scrapePool === job);
  await until('moved is up', 20, async () => (await health('moved')).health === 'up');
  const asked = seen.first.find((x) => x.headers.authorization);
  assert.equal(asked.url, '/debug/pprof/allocs?debug=2&gc=1');
  assert.equal(asked.headers.authorization, `Basic ${Buffer.from('u:p').toString('base64')}`);
  assert.equal(asked.headers['x-scope'], 'tenant-a');
  assert.equal(asked.headers['x-key'], 'geheim');
  assert.equal(asked.headers['x-prometheus-scrape-timeout-seconds'], '0.5');
  const moved = seen.second.find((x) => x.url === '/moved');
  assert.equal(moved.headers.authorization, undefined, 'credentials stay with the host they are for');
  assert.equal(moved.headers['x-key'], undefined);
  await until('still is tried', 20, async () => (await health('still')).lastError ===
    `server returned HTTP status 302 Found: it leads to http://${second}/moved, and the job has "follow_redirects: false"`);
  assert.equal((await health('still')).health, 'down');

  // Two jobs on one CPU profiler take turns, and are told.
  await until('two jobs are told', 20, () => /two jobs take CPU profiles of one target: they take turns/.test(server.err));
  await until('both get theirs', 20, async () => (await health('a')).scrapes > 0 && (await health('b')).scrapes > 0);
});
