// Grafana's Prometheus data source, call by call as it makes them, on the demo; and the formats of a query as the
// programs take them that they are for.
import test from 'node:test';
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import { faults } from './schema.mjs';
import { api, join, query, request, root, scratch, settled, startDemo, startServer, until, writeFileSync } from './lib.mjs';

const GRAFANA = { 'User-Agent': 'Grafana/12.1.0', Accept: 'application/json', 'Accept-Encoding': 'gzip' };
const FORM = { ...GRAFANA, 'Content-Type': 'application/x-www-form-urlencoded' };

/** As Grafana's backend asks: gzip, a form where it is POST. */
async function ask(server, path, params = {}, method = 'GET') {
  const form = new URLSearchParams(params).toString();
  const res = method === 'POST' ?
    await request(`${server.url}/api/v1/${path}`, { method, headers: FORM, body: form }) :
    await request(`${server.url}/api/v1/${path}?${form}`, { headers: GRAFANA });
  const body = res.headers['content-encoding'] === 'gzip' ? gunzipSync(res.body) : res.body;
  assert.equal(res.headers['content-type'], 'application/json', `${path} ${form}: ${body}`);
  return { status: res.status, ...{ json: JSON.parse(body) } };
}

async function data(server, path, params, method) {
  const res = await ask(server, path, params, method);
  assert.equal(res.status, 200, JSON.stringify(res));
  assert.equal(res.json.status, 'success');
  return res.json.data;
}

function isSample(v) {
  assert.equal(v.length, 2);
  assert.equal(typeof v[0], 'number');
  assert.match(v[1], /^-?\d+(\.\d+)?(e[+-]\d+)?$|^NaN$|^[+-]Inf$/);
}

function isVector(d) {
  assert.equal(d.resultType, 'vector');
  for (const e of d.result) {
    assert.ok(Object.values(e.metric).every((x) => typeof x === 'string'));
    isSample(e.value);
  }
}

function isMatrix(d) {
  assert.equal(d.resultType, 'matrix');
  for (const e of d.result) e.values.forEach(isSample);
}

test('Grafana with a Prometheus data source, and formats for other programs', async (t) => {
  const dir = scratch(t);
  const demo = await startDemo(t, 'v1', 'none');
  const server = await startServer(t, { dir, config: `
global: {scrape_interval: 5s}
scrape_configs:
  - job_name: demo
    static_configs: [{targets: ["${demo.address}"], labels: {version: v1}}]
` });
  const now = await until('three profiles of each kind', 60, async () => {
    const time = Math.floor(await settled(server));
    const r = await query(server, 'merge({__name__=~"process_cpu"}[1m])', { time });
    const g = await query(server, 'merge(goroutine[1m])', { time });
    return r.result[0]?.profiles >= 3 && g.result[0]?.profiles >= 3 && time;
  });
  const range = { start: String(now - 120), end: String(now) };

  await t.test('opening the data source: health, build, rules, exemplars', async () => {
    const health = await data(server, 'query', { query: '1+1', time: `${now}.5` }, 'POST');
    assert.deepEqual(health, { resultType: 'scalar', result: [now + 0.5, '2'] });
    const build = await data(server, 'status/buildinfo');
    for (const key of ['version', 'revision', 'goVersion']) assert.equal(typeof build[key], 'string', key);
    assert.deepEqual(await data(server, 'rules'), { groups: [] });
    const exemplars = { query: 'test', start: String(Date.now() - 1800000), end: String(Date.now()) };
    assert.deepEqual(await data(server, 'query_exemplars', exemplars), []);
    assert.deepEqual(await data(server, 'query_exemplars', { ...exemplars, query: 'sum(total(cpu))' }, 'POST'), []);
  });

  await t.test('the editor and variables: labels, values, series, metadata', async () => {
    for (const method of ['GET', 'POST']) {
      const labels = await data(server, 'labels', { 'match[]': '{job="demo"}', ...range }, method);
      for (const name of ['__name__', 'instance', 'job', 'version']) assert.ok(labels.includes(name), labels.join(' '));
      const series = await data(server, 'series', { 'match[]': 'process_cpu{version="v1"}', ...range }, method);
      assert.deepEqual(series, [{ __name__: 'process_cpu', instance: demo.address, job: 'demo', version: 'v1' }]);
    }
    const names = await data(server, 'label/__name__/values', range);
    assert.ok(names.includes('process_cpu') && names.includes('memory'), names.join(' '));
    assert.deepEqual(await data(server, 'label/version/values', { 'match[]': 'process_cpu{job="demo"}', ...range }), ['v1']);
    assert.deepEqual(await data(server, 'label/version/values', { 'match[]': 'process_cpu{job="x"}', ...range }), []);
    const metadata = await data(server, 'metadata', { limit: '40000' });
    // Series of numbers have none, as `up` has none in Prometheus.
    const numbers = ['up', 'scrape_duration_seconds', 'scrape_samples_scraped', 'scrape_body_size_bytes'];
    for (const name of names.filter((x) => !numbers.includes(x))) {
      assert.ok(metadata[name]?.length > 0, name);
      for (const m of metadata[name]) {
        assert.ok(['counter', 'gauge'].includes(m.type));
        assert.equal(typeof m.help, 'string');
        assert.equal(typeof m.unit, 'string');
      }
    }
    assert.equal(metadata.process_cpu[0].unit, 'nanoseconds');
    assert.equal(metadata.memory[0].unit, 'bytes');
    const functions = await data(server, 'functions', { prefix: 'main.', limit: '5', ...range });
    assert.ok(functions.length > 1 && functions.every((f) => f.startsWith('main.')), functions.join(' '));
  });

  await t.test('panels: numbers as vectors and matrices', async () => {
    const flat = await data(server, 'query', { query: 'topk(5, flat(merge(cpu{job="demo"}[2m])))', time: String(now) }, 'POST');
    isVector(flat);
    assert.equal(flat.result.length, 5);
    assert.equal(flat.unit, 'nanoseconds');
    for (const q of ['sum by (version) (total(cpu:samples))', 'cpu:samples', 'merge by (version) (goroutine)',
      'cum_share(merge(cpu), {function="main.main"})', '1+1']) {
      const d = await data(server, 'query_range', { query: q, step: '5', ...range }, 'POST');
      isMatrix(d);
      if (q !== 'cum_share(merge(cpu), {function="main.main"})') assert.ok(d.result.length > 0, q);
    }
  });

  await t.test('panels: profiles do not break a table', async () => {
    const merged = await data(server, 'query', { query: 'merge by (version) (cpu:samples[2m])', time: String(now) }, 'POST');
    isVector(merged);
    assert.equal(merged.unit, 'count');
    const own = await query(server, 'merge by (version) (cpu:samples[2m])', { time: now });
    assert.equal(own.resultType, 'profiles');
    assert.equal(merged.result[0].value[1], String(own.result[0].cost));
    const top = await data(server, 'query', { query: 'top(3, merge(cpu[2m]))', time: String(now) }, 'POST');
    isVector(top);
    assert.equal(top.result.length, 3);
    assert.ok(top.result.every((e) => e.metric.function));
    isVector(await data(server, 'query', { query: 'cpu', time: String(now), profiles: 'totals' }));
  });

  await t.test('errors are Prometheus\'s', async () => {
    for (const [path, params, status, type] of [
      ['query', { query: 'sum(' }, 400, 'bad_data'],
      ['query_range', { query: '1', start: '0', end: '99999999', step: '1' }, 400, 'bad_data'],
      ['query_range', { query: '1', start: '10', end: '0', step: '1' }, 400, 'bad_data'],
      ['series', {}, 400, 'bad_data'],
      ['labels', { 'match[]': '{' }, 400, 'bad_data'],
      ['metadata', { limit: 'x' }, 400, 'bad_data'],
      ['functions', { start: 'x' }, 400, 'bad_data'],
      ['parse_query', { query: 'flat(1)' }, 400, 'bad_data'],
    ]) {
      const res = await ask(server, path, params);
      assert.equal(res.status, status, path);
      assert.equal(res.json.status, 'error');
      assert.equal(res.json.errorType, type);
      assert.equal(typeof res.json.error, 'string');
    }
    const cut = await ask(server, 'label/__name__/values', { limit: '1' });
    assert.equal(cut.json.data.length, 1);
    assert.deepEqual(cut.json.warnings, ['results truncated due to limit']);
  });

  await t.test('speedscope takes its file', async () => {
    const schema = JSON.parse(readFileSync(join(root, 'tests/e2e/speedscope.schema.json')));
    for (const [q, profiles] of [['merge(cpu[2m])', 1], ['memory:alloc_space[2m]', 1], ['cpu[1m] - cpu[1m] offset 30s', 2]]) {
      const params = { query: q, time: now, format: 'speedscope' };
      const res = await request(`${server.url}/api/v1/query?${new URLSearchParams(params)}`);
      assert.equal(res.status, 200, res.body.toString());
      const file = JSON.parse(res.body);
      assert.deepEqual(faults(schema, file), []);
      assert.equal(file.profiles.length, profiles, q);
      const own = await query(server, q, { time: now });
      const totals = own.result[0].flamebearer.format === 'double' ? [own.result[0].left_total, own.result[0].right_total] :
        [own.result[0].total];
      file.profiles.forEach((p, i) => {
        assert.equal(p.samples.length, p.weights.length);
        assert.ok(p.samples.every((s) => s.every((f) => f < file.shared.frames.length)));
        assert.equal(p.weights.reduce((a, b) => a + b, 0), p.endValue);
        assert.equal(p.endValue, totals[i]);
      });
    }
    assert.notDeepEqual(faults(schema, { shared: {}, profiles: [{ type: 'sampled', unit: 'x' }] }), []);
  });

  await t.test('a file for go build -pgo', async () => {
    const params = { query: 'merge(cpu:samples{job="demo"}[5m])', format: 'pgo' };
    const res = await request(`${server.url}/api/v1/query?${new URLSearchParams(params)}`);
    assert.equal(res.status, 200, res.body.toString());
    assert.ok(gunzipSync(res.body).length > 0);
    const heap = await request(`${server.url}/api/v1/query?${new URLSearchParams({ query: 'memory', format: 'pgo' })}`);
    assert.equal(heap.status, 400);
    assert.equal(heap.headers['x-go-pprof'], '1');
    assert.match(heap.body.toString(), /needs a CPU profile/);
  });

  await t.test('flamegraph.pl\'s columns', async () => {
    const params = { query: 'cpu:samples[1m] - cpu:samples[1m] offset 30s', time: now, format: 'folded' };
    const res = await request(`${server.url}/api/v1/query?${new URLSearchParams(params)}`);
    const lines = res.body.toString().trim().split('\n');
    assert.ok(lines.every((l) => / \d+ \d+$/.test(l)), lines[0]);
    const own = await query(server, params.query, { time: now });
    const sum = (k) => lines.reduce((n, l) => n + Number(l.split(' ').at(k)), 0);
    assert.equal(sum(-2), own.result[0].left_total);
    assert.equal(sum(-1), own.result[0].right_total);
  });

  await t.test('numbers go to another Prometheus', async () => {
    const res = await request(`${server.url}/federate?${new URLSearchParams({ 'match[]': '{job="demo"}' })}`);
    assert.equal(res.status, 200);
    assert.equal(res.headers['content-type'], 'text/plain; version=0.0.4; charset=utf-8');
    assert.equal((await api(server, 'query', { query: '1' })).resultType, 'scalar');
  });
});
