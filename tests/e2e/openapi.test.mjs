// The description of the API: openapi-spec-validator accepts it, answers and errors of a live server fit its schemas, each
// parameter in it is read, and a client that is generated from it works.
import test from 'node:test';
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { copyFileSync, symlinkSync } from 'node:fs';
import { startFullServer } from './openapi_server.mjs';
import { finish, join, recordedCpu, request, root, scratch, startServer, until, writeFileSync } from './lib.mjs';

execFileSync(join(root, 'tests/e2e/senders/prepare.sh'), ['openapi'], { stdio: ['ignore', 'ignore', 'inherit'] });
const tools = join(root, 'build/senders/openapi');

/** Faults of a document and of answers to it, as validate.py finds them. */
async function validate(t, document, answers) {
  const dir = scratch(t);
  writeFileSync(join(dir, 'openapi.json'), JSON.stringify(document));
  writeFileSync(join(dir, 'answers.json'), JSON.stringify(answers));
  const run = await finish(t, 'python3', [join(root, 'tests/e2e/openapi/validate.py'), join(dir, 'openapi.json'),
    join(dir, 'answers.json')], 120, { env: { ...process.env, PYTHONPATH: join(tools, 'site') } });
  assert.equal(run.code, 0, run.err);
  return JSON.parse(run.out);
}

const operations = (document) => Object.entries(document.paths).flatMap(([path, item]) =>
  Object.entries(item).map(([method, op]) => ({ path, method, ...op, parameters: op.parameters ?? [] })));

/** Sends a request; its answer is kept for validation. `query` is a list of pairs. */
function asker(server, answers) {
  return async (op, { query = [], inPath = {}, body, headers } = {}) => {
    const path = op.path.replace(/\{(\w+)\}/g, (_, name) => encodeURIComponent(inPath[name]));
    const text = query.length ? `?${new URLSearchParams(query)}` : '';
    const res = await request(server.url + path + text, { method: op.method.toUpperCase(), body, headers });
    const media = res.headers['content-type']?.split(';')[0];
    answers.push({ path: op.path, method: op.method, status: res.status, media,
      body: /json|text/.test(media ?? '') ? res.body.toString() : res.body.length ? 'bytes' : '' });
    return res;
  };
}

test('the description holds', async (t) => {
  const server = await startFullServer(t);
  const document = JSON.parse((await request(`${server.url}/api/v1/openapi.json`)).body);
  const all = operations(document), answers = [];
  const ask = asker(server, answers);
  const byId = (id) => all.find((op) => op.operationId === id) ?? assert.fail(id);
  const iso = (s) => new Date(s * 1000).toISOString().slice(0, 19);
  const found = await request(`${server.url}/api/0/profiles?service=demo&from=${iso(server.end - 60)}&to=${iso(server.end + 60)}`);
  const inPaths = { labelValues: { name: 'job' }, getFile: { id: server.file }, querierOther: { method: 'SelectHeatmap' },
    profefeGet: { id: JSON.parse(found.body).body[0].id }, uploadAnnounced: { id: 'abcdef0123456789' } };
  const valueOf = { start: server.end - 30, end: server.end, from: iso(server.end - 60), to: iso(server.end + 60) };
  const statuses = { source: 404, notificationsLive: 204 }; // no debuginfod server is configured
  const readers = all.filter((op) => op.method === 'get');
  // What the document shows as an example, at times that this server has.
  const shown = (op) => op.parameters.filter((p) => p.in === 'query' && p.example !== undefined).map((p) =>
    [p.name, valueOf[p.name] ?? (Array.isArray(p.example) ? p.example[0] : p.example)]);
  const required = (op) => op.parameters.filter((p) => p.in === 'query' && p.required).map((p) => p.name);

  await t.test('every GET, as its example says', async () => {
    for (const op of readers) {
      const res = await ask(op, { query: shown(op), inPath: inPaths[op.operationId] });
      assert.equal(res.status, statuses[op.operationId] ?? 200, `${op.path}: ${res.body}`);
    }
    assert.ok(readers.length >= 40, `${readers.length}`);
  });

  await t.test('forms are the same', async () => {
    for (const op of all.filter((o) => o.operationId.endsWith('ByForm'))) {
      const get = byId(op.operationId.replace(/ByForm$/, ''));
      const res = await ask(op, { body: new URLSearchParams(shown(get)).toString(),
        headers: { 'Content-Type': 'application/x-www-form-urlencoded' } });
      assert.equal(res.status, 200, `${op.path}: ${res.body}`);
    }
  });

  await t.test('queries of each type and form', async () => {
    const query = byId('query'), range = byId('queryRange');
    for (const text of ['cpu', 'top(3, cpu)', 'total(cpu)', 'up', '1', '"a"', 'diff(merge(cpu{version="v1"}), merge(cpu{version="v2"}))',
      'sum by (job) (total(cpu))', 'total(cpu)[10s:5s]'])
      assert.equal((await ask(query, { query: [['query', text]] })).status, 200, text);
    for (const format of query.parameters.find((p) => p.name === 'format').schema.enum)
      assert.equal((await ask(query, { query: [['query', 'merge(cpu{job="demo"})'], ['format', format], ['files', 'true']] })).status, 200, format);
    const steps = [['start', server.end - 10], ['end', server.end], ['step', 5]];
    for (const text of ['cpu', 'total(cpu)', '1']) assert.equal((await ask(range, { query: [['query', text], ...steps] })).status, 200);
    for (const text of ['-(1 + 2)', 'cpu and on (job) memory', 'quantile(0.5, total(cpu))', 'flat(cpu, "main.*")[5m:1m]',
      'topk(1, total(cpu @ end() offset 5m))', 'merge by (job) (cpu)', 'cum{function=~"main.*"}(cpu)'])
      await ask(byId('parseQuery'), { query: [['query', text]] });
    for (const extra of [['analyze', 'true'], ['format', 'text'], ['step', '5']])
      await ask(byId('explainQuery'), { query: [['query', 'sum(total(cpu))'], extra, ...(extra[0] === 'step' ? steps.slice(0, 2) : [])] });
    const link = await ask(byId('sourceLinks'), { query: [['path', '/src/main.go'], ['line', 3], ['label.version', 'v1']] });
    assert.equal(JSON.parse(link.body).data.url, 'https://git.example.org/shop/blob/v1/main.go#L3');
    for (const [id, name, value] of [['labelCounts', 'label', 'job'], ['getFile', 'content', 'true']])
      assert.equal((await ask(byId(id), { query: [[name, value]], inPath: inPaths[id] })).status, 200);
  });

  await t.test('requests that change something', async () => {
    const now = ['time', Date.now() / 1000], body = recordedCpu();
    const ok = async (id, options, status = 200) => {
      const res = await ask(byId(id), options);
      assert.equal(res.status, status, `${id}: ${res.body}`);
      return res;
    };
    const targets = JSON.parse((await request(`${server.url}/api/v1/targets`)).body).data.activeTargets;
    const cpu = targets.find((x) => x.profile === 'goroutine');
    await ok('profileTarget', { query: [['scrapePool', 'demo'], ['scrapeUrl', cpu.scrapeUrl]] });
    await ok('ingest', { query: [['name', 'cpu'], ['job', 'other'], now], body });
    await ok('deleteSeries', { query: [['match[]', 'process_cpu{job="other"}']] }, 204);
    await ok('snapshot', {});
    await ok('acceptLosses', {});
    await ok('reload', {});
    const kept = JSON.parse((await ok('lookAtFile', { query: [['name', 'a'], ['keep', '1h']], body })).body).data.id;
    await ok('deleteFile', { inPath: { id: kept } });
    await ok('pyroscopeIngest', { query: [['name', 'php'], ['format', 'folded']], body: 'a;b 3\n' });
    await ok('profefeCollect', { query: [['service', 'old'], ['type', 'cpu'], ['created_at', iso(Date.now() / 1000)]], body });
    const connect = { 'Content-Type': 'application/json' };
    await ok('mcp', { body: '{"jsonrpc":"2.0","id":1,"method":"ping"}', headers: connect });

    const cpuType = { profileTypeID: 'process_cpu:cpu:nanoseconds:cpu:nanoseconds', labelSelector: '{job="demo"}',
      start: String(Math.floor(server.end - 60) * 1000), end: String(Math.ceil(server.end) * 1000) };
    for (const [id, message] of [['querierProfileTypes', {}], ['querierSelectSeries', { ...cpuType, step: 15 }],
      ['querierSelectMergeStacktraces', cpuType], ['querierSelectMergeProfile', cpuType], ['querierDiff', { left: cpuType, right: cpuType }], ['querierLabelNames', {}], ['querierLabelValues', { name: 'job' }],
      ['querierSeries', {}], ['querierGetProfileStats', {}]])
      await ok(id, { body: JSON.stringify(message), headers: connect });

  });

  await t.test('errors', async () => {
    for (const op of readers) {
      const names = required(op);
      if (names.length && op.operationId !== 'queryExemplars')
        assert.equal((await ask(op, { inPath: inPaths[op.operationId] })).status, 400, op.path);
    }
    await ask(byId('query'), { query: [['query', 'top(']] });
    await ask(byId('query'), { query: [['query', 'cpu{job="none"}'], ['format', 'pprof']] });
    await ask(byId('getFile'), { inPath: { id: '0'.repeat(32) } });
    await ask(byId('deleteFile'), { inPath: { id: '0'.repeat(32) } });
    await ask(byId('profefeGet'), { inPath: { id: 'x' } });
    for (const op of all.filter((o) => o.method === 'post' && !/ByForm$|^(quit|reload|snapshot)$/.test(o.operationId)))
      await ask(op, { inPath: inPaths[op.operationId] ?? { id: 'abcdef0123456789' }, body: '\x01' });
  });

  await t.test('each parameter is read', async () => {
    const bad = { format: 'nonsense', step: '-1' };
    const typed = (p) => p.schema.enum || p.schema.type === 'integer' || /Time|Duration/.test(p.schema.$ref ?? '') || /match|query/.test(p.name);
    // These are taken as they are, by Prometheus too.
    const lenient = new Set(['targets state', 'targets health', 'queryRange types', 'explainQuery format', 'profefeFind limit']);
    let checked = 0;
    for (const op of readers)
      for (const p of op.parameters.filter((x) => x.in === 'query')) {
        const others = shown(op).filter(([name]) => name !== p.name);
        const res = await ask(op, { query: [...others, [p.name, bad[p.name] ?? '{nonsense']], inPath: inPaths[op.operationId] });
        assert.ok(res.status < 500, `${op.operationId} ${p.name}: ${res.status} ${res.body}`);
        if (!typed(p) || lenient.has(`${op.operationId} ${p.name}`)) continue;
        assert.equal(res.status, 400, `${op.operationId} ${p.name}: ${res.body}`);
        checked++;
      }
    assert.ok(checked > 50, `${checked}`);
  });

  const { faults, checked } = await validate(t, document, answers);
  assert.deepEqual(faults, []);
  assert.ok(checked >= answers.length, `${checked} of ${answers.length}`);
  assert.ok(all.every((op) => op.summary && !op.summary.endsWith('.') && op.responses), 'each has a summary');
});

test('a generated client makes ten calls', async (t) => {
  const server = await startFullServer(t);
  const dir = scratch(t);
  await until('the rules were evaluated', 30, async () =>
    JSON.parse((await request(`${server.url}/api/v1/alerts`)).body).data.alerts.length);
  for (const name of ['package.json', 'tsconfig.json', 'client.ts']) copyFileSync(join(tools, name), join(dir, name));
  symlinkSync(join(tools, 'node_modules'), join(dir, 'node_modules'));
  writeFileSync(join(dir, 'openapi.json'), (await request(`${server.url}/api/v1/openapi.json`)).body);
  const tool = (path, ...args) => finish(t, process.execPath, [join(tools, 'node_modules', path), ...args], 120, { cwd: dir });
  const made = await tool('openapi-typescript/bin/cli.js', 'openapi.json', '-o', 'api.ts');
  assert.equal(made.code, 0, made.out + made.err);
  const compiled = await tool('typescript/bin/tsc', '--project', 'tsconfig.json');
  assert.equal(compiled.code, 0, compiled.out);
  const run = await finish(t, process.execPath, [join(dir, 'out/client.js'), server.url, String(server.end)]);
  assert.equal(run.code, 0, run.err);
  const got = JSON.parse(run.out);
  assert.equal(got.top.length, 2);
  assert.ok(got.top.flat().length && got.flame.includes('total'), run.out);
  assert.ok(got.points >= 1, run.out);
  assert.deepEqual([...new Set(got.series)].sort(), ['memory', 'process_cpu']);
  assert.deepEqual(got.jobs, ['batch', 'demo']);
  assert.ok(got.targets.length >= 10 && got.targets.includes('up'));
  assert.deepEqual(got.groups, ['alerting']);
  assert.match(got.version, /^\d+\.\d+/);
  assert.deepEqual(got.refused, [400, 'bad_data']);
  assert.equal(got.accepted, 0);
});

test('a prefix is in the description, and nobody reads it without signing in', async (t) => {
  const dir = scratch(t);
  writeFileSync(join(dir, 'token'), 'a-token-for-this-test-of-users\n');
  writeFileSync(join(dir, 'web.yml'), 'users: [{name: ci, token_file: token, roles: [ingest]}]\n');
  const server = await startServer(t, { dir, config: 'scrape_configs: []\n',
    args: ['--web.route-prefix=/prof', `--web.config.file=${join(dir, 'web.yml')}`] });
  const url = `${server.url}/prof/api/v1/openapi.json`;
  assert.equal((await request(url)).status, 401);
  const res = await request(url, { headers: { Authorization: 'Bearer a-token-for-this-test-of-users' } });
  assert.equal(res.status, 200);
  assert.deepEqual(JSON.parse(res.body).servers, [{ url: '/prof' }]);
});
