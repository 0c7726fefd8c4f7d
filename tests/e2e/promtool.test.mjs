// Prometheus's own clients ask: Debian's promtool, and the variables of Grafana's Prometheus data source. None of them knows
// profiles, so none may get any.
import test from 'node:test';
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { api, debian, finish, query, request, scratch, settled, startDemo, startServer, until } from './lib.mjs';

const promtool = join(debian('prometheus'), 'promtool');

test('promtool and Grafana\'s variables get numbers', async (t) => {
  const dir = scratch(t);
  const demo = await startDemo(t, 'v1', 'none');
  const server = await startServer(t, { dir, config: `
global: {scrape_interval: 2s}
scrape_configs:
  - job_name: demo
    static_configs: [{targets: ["${demo.address}"], labels: {version: v1}}]
` });
  const at = await until('three profiles of each kind', 60, async () => {
    const time = Math.floor(await settled(server));
    for (const name of ['cpu', 'memory', 'goroutine'])
      if (!((await query(server, `merge(${name}[1m])`, { time })).result[0]?.profiles >= 3)) return null;
    return time;
  });
  const run = (...args) => finish(t, promtool, ['query', ...args]);
  const prints = async (...args) => {
    const r = await run(...args);
    assert.equal(r.code, 0, `${args.join(' ')}: ${r.err}${r.out}`);
    assert.equal(r.err, '', args.join(' '));
    return r.out.trim().split('\n');
  };
  const instant = (text) => prints('instant', `--time=${at}`, server.url, text);

  await t.test('query instant: each kind of value', async () => {
    for (const text of ['cpu', 'merge by (job) (cpu[1m])', 'memory:inuse_space', 'goroutine', 'cpu[1m] - cpu[1m] offset 10s',
      'focus(merge(cpu[1m]), "main")', 'process_cpu:cpu:nanoseconds:cpu:nanoseconds{job="demo"}', 'total(cpu[1m])', 'up']) {
      const lines = await instant(text);
      assert.ok(lines.length > 0 && lines.every((l) => /^[a-z_]*\{.*\} => -?[\d.e+]+ @\[\d+(\.\d+)?\]$/.test(l)), `${text}: ${lines.join('\n')}`);
    }
    const total = (await query(server, 'total(merge(cpu:samples[1m]))', { time: at })).result[0].value[1];
    assert.deepEqual(await instant('merge(cpu:samples[1m])'), [`{} => ${total} @[${at}]`]);
    const top = await instant('top(3, merge(cpu[1m]))');
    assert.equal(top.length, 3);
    assert.ok(top.every((l) => l.startsWith('{function="')), top.join('\n'));
    assert.deepEqual(await instant('1 + 1'), [`scalar: 2 @[${at}]`]);
    assert.deepEqual(await instant('cpu{job="x"}'), ['']);
  });

  await t.test('query range', async () => {
    for (const text of ['cpu', 'merge(cpu)', 'total(cpu)', 'goroutine', 'topk(2, flat(merge(cpu)))', 'up', '1'])
      assert.ok((await prints('range', `--start=${at - 30}`, `--end=${at}`, '--step=5s', server.url, text)).some((l) => / @\[\d+\]$/.test(l)), text);
  });

  await t.test('query series and labels', async () => {
    assert.deepEqual(await prints('series', '--match=process_cpu', '--match=up{job="none"}', server.url),
      [`{__name__="process_cpu", instance="${demo.address}", job="demo", version="v1"}`]);
    assert.deepEqual(await prints('labels', server.url, 'version'), ['v1']);
    assert.ok((await prints('labels', server.url, '__name__')).includes('process_cpu'));
  });

  await t.test('errors are the server\'s', async () => {
    const r = await run('instant', server.url, 'sum(');
    assert.equal(r.code, 1);
    assert.match(r.err, /1:5: unexpected end of query/);
  });

  await t.test('variables of Grafana', async () => {
    const grafana = async (path, params) => {
      const res = await request(`${server.url}/api/v1/${path}?${new URLSearchParams(params)}`, { headers: { 'User-Agent': 'Grafana/12.1.0' } });
      assert.equal(res.status, 200, `${path} ${JSON.stringify(params)}: ${res.body}`);
      return JSON.parse(res.body).data;
    };
    const range = { start: String(at - 60), end: String(at + 60) };
    // label_values(version), label_values(METRIC, version) as new and as old Grafana asks
    assert.deepEqual(await grafana('label/version/values', range), ['v1']);
    for (const metric of ['process_cpu', 'cpu', 'cpu:samples', 'process_cpu:cpu:nanoseconds:cpu:nanoseconds', '{__name__=~"process_.*"}', 'up']) {
      assert.deepEqual(await grafana('label/version/values', { 'match[]': metric, ...range }), ['v1'], metric);
      assert.ok((await grafana('series', { 'match[]': metric, ...range })).every((x) => x.version === 'v1'), metric);
    }
    // metrics(REGEX), label_names()
    assert.ok((await grafana('label/__name__/values', range)).includes('goroutine'));
    assert.ok((await grafana('labels', range)).includes('version'));
    // query_result(QUERY): each element of a vector becomes "NAME{LABELS} VALUE TIME"
    for (const text of ['cpu', 'merge by (version) (cpu[1m])', 'top(3, merge(cpu[1m]))', 'topk(3, flat(merge(cpu[1m])))', 'up']) {
      const d = await grafana('query', { query: text, time: String(at) });
      assert.equal(d.resultType, 'vector', text);
      assert.ok(d.result.length > 0 && d.result.every((e) => e.value.length === 2), text);
    }
  });

  await t.test('everybody else gets profiles', async () => {
    assert.equal((await query(server, 'cpu', { time: at })).resultType, 'profiles');
    assert.equal((await api(server, 'query', { query: 'cpu', time: at }, { headers: { 'User-Agent': 'Go-http-client/1.1' } })).resultType, 'profiles');
    const flame = await request(`${server.url}/api/v1/query`, { method: 'POST', body: `query=cpu&time=${at}&profiles=flame`,
      headers: { 'User-Agent': 'Go-http-client/1.1', 'Content-Type': 'application/x-www-form-urlencoded' } });
    assert.equal(JSON.parse(flame.body).data.resultType, 'profiles');
  });

  await t.test('what Prometheus\'s page and exporters ask beside that', async () => {
    assert.deepEqual(await api(server, 'status/walreplay'), { min: 0, max: 0, current: 0 });
    assert.deepEqual(await api(server, 'notifications'), []);
    assert.equal((await request(`${server.url}/api/v1/notifications/live`)).status, 204);
    assert.deepEqual(await api(server, 'status/tsdb/blocks'), { blocks: [] });
    const features = await api(server, 'features');
    assert.equal(features.promql.offset, true);
    assert.equal(features.service_discovery_providers.kubernetes, true);
    const types = await api(server, 'targets/metadata', { match_target: '{version="v1"}', metric: 'goroutine' });
    assert.deepEqual(types.map((x) => [x.target, x.type, x.unit]),
      [[{ instance: demo.address, job: 'demo', version: 'v1' }, 'gauge', 'count']]);
  });
});
