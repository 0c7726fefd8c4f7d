// Grafana's profilecli: each of its `query` commands, `upload` and `ready`, by the client that it is built with.
import test from 'node:test';
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { api, execFileSync, finish, join, query, request, root, scratch, startDemo, startServer, until, writeFileSync } from './lib.mjs';

const program = join(root, 'build/senders/profilecli/profilecli');

function topOf(file) {
  const text = execFileSync('go', ['tool', 'pprof', '-top', '-nodefraction=0', '-nodecount=100000', file], { stdio: 'pipe' }).toString();
  const lines = text.split('\n');
  return lines.slice(lines.findIndex((l) => /^\s*flat\s+flat%/.test(l)) + 1).filter((l) => l.trim()).map((l) => l.trim().split(/\s+/).join(' '));
}

// It may take minutes to build, which no test's time is for.
execFileSync(join(root, 'tests/e2e/senders/prepare.sh'), ['profilecli'], { stdio: ['ignore', 'ignore', 'inherit'] });

test('profilecli', async (t) => {
  const dir = scratch(t);
  const v1 = await startDemo(t, 'v1', 'none');
  const v2 = await startDemo(t, 'v2', 'scoreItems');
  const server = await startServer(t, { dir, args: ['--web.enable-ingest'], config: `
global: {scrape_interval: 2s}
scrape_configs:
  - job_name: demo
    static_configs:
      - {targets: ["${v1.address}"], labels: {version: v1}}
      - {targets: ["${v2.address}"], labels: {version: v2}}
` });
  await until('four CPU profiles of each version', 60, async () => {
    const by = await query(server, 'merge by (version) (cpu{job="demo"}[5m])');
    return by.result.length === 2 && by.result.every((e) => e.profiles >= 4 && e.total > 0);
  });
  const to = Math.floor(Date.now() / 1000) * 1000 - 2000, from = to - 600000;
  const span = { start: from / 1000, end: to / 1000 };
  const run = (flags, ...args) => finish(t, program, [`-from=${from}`, `-to=${to}`, ...flags, server.url, ...args]);
  const prints = async (flags, ...args) => {
    const r = await run(flags, ...args);
    assert.equal(r.code, 0, `${args.join(' ')}: ${r.err}`);
    return r.out ? JSON.parse(r.out) : undefined;
  };
  const fails = async (flags, ...args) => {
    const r = await run(flags, ...args);
    assert.equal(r.code, 1, r.out);
    return r.err.trim();
  };
  const get = async (params) => {
    const res = await request(`${server.url}/api/v1/query?${new URLSearchParams({ ...params, ...span })}`);
    assert.equal(res.status, 200, res.body.toString());
    return res.body;
  };
  const selected = '-query={version="v2"}';

  await t.test('query profile, query merge', async () => {
    await prints([selected], 'profile', join(dir, 'cpu.pb'));
    writeFileSync(join(dir, 'ours.pb.gz'), await get({ query: 'merge(cpu{version="v2"})', format: 'pprof' }));
    assert.deepEqual(topOf(join(dir, 'cpu.pb')), topOf(join(dir, 'ours.pb.gz')));
    assert.ok((await prints([selected], 'profile-tree')).length > 100); // base64
    const { names, levels } = (await query(server, 'merge(cpu{version="v2"})', span)).result[0].flamebearer;
    const roots = Array.from({ length: levels[1].length / 4 }, (_, i) => ({ name: names[levels[1][4 * i + 3]], total: levels[1][4 * i + 1] }));
    const heaviest = roots.reduce((a, b) => (a.total > b.total ? a : b));
    await prints([selected], 'call-site', join(dir, 'root.pb'), heaviest.name);
    const sum = execFileSync('go', ['tool', 'pprof', '-raw', join(dir, 'root.pb')], { stdio: 'pipe' }).toString()
      .split('Locations')[0].split('\n').reduce((n, l) => n + Number(l.match(/^\s*(\d+): \d/)?.[1] ?? 0), 0);
    assert.equal(sum, heaviest.total);
  });

  await t.test('query go-pgo', async () => {
    const file = join(dir, 'default.pgo');
    await prints([selected, '-type=process_cpu:samples:count:cpu:nanoseconds'], 'go-pgo', file, '5', 'true');
    writeFileSync(join(dir, 'ours.pgo'), await get({ query: 'merge(process_cpu:samples{version="v2"})', format: 'pgo' }));
    assert.ok(topOf(file).length > 0);
    assert.deepEqual(topOf(file), topOf(join(dir, 'ours.pgo')));
    const edges = (path) => execFileSync('go', ['tool', 'preprofile', '-i', path]).toString();
    assert.equal(edges(file), edges(join(dir, 'ours.pgo')));
    assert.match(await fails(['-type=goroutine:goroutine:count:goroutine:count'], 'go-pgo', file, '5', 'true'),
      /^error: invalid_argument: a profile for -pgo is a CPU profile/);
  });

  await t.test('query series, label-values-cardinality, the list of types', async () => {
    const sets = (await prints(['-query={version="v1"}'], 'series', '__profile_type__', 'version')).map((x) => Object.fromEntries(x.labels.map((l) => [l.name, l.value])));
    assert.ok(sets.some((x) => x.__profile_type__ === 'process_cpu:cpu:nanoseconds:cpu:nanoseconds' && x.version === 'v1'), JSON.stringify(sets));
    const all = (await prints([], 'series')).map((x) => JSON.stringify(Object.fromEntries(x.labels.map((l) => [l.name, l.value]))));
    const known = await api(server, 'series', { 'match[]': '{__name__!~"up|scrape_.*",job="demo"}', ...span });
    const shown = known.map((x) => Object.fromEntries(Object.entries({ ...x, service_name: x.job }).sort(([a], [b]) => (a < b ? -1 : 1))));
    assert.deepEqual(all.sort(), shown.map((x) => JSON.stringify(x)).sort());
    const counts = await prints(['-query={service_name="demo"}'], 'label-values-cardinality');
    assert.equal(counts.version, 2);
    assert.equal(counts.service_name, 1);
    const types = (await prints([], 'profile-types')).map((x) => x.ID);
    const ours = (await api(server, 'profile_types', span)).map((x) => x.type.replace(/:delta$/, ''));
    assert.deepEqual(types.sort(), [...new Set(ours)].sort());
  });

  await t.test('query top, exemplars', async () => {
    const top = await prints([], 'top', 'version');
    const totals = Object.fromEntries(top.map((s) => [s.labels[0].value, s.points.reduce((n, p) => n + p.value, 0)]));
    const ours = await query(server, 'total(merge by (version) (cpu))', span);
    assert.deepEqual(totals, Object.fromEntries(ours.result.map((e) => [e.metric.version, Number(e.value[1])])));
    // No profile has an id here, so there are no exemplars; profilecli says "no exemplars found".
    assert.ok((await prints([], 'exemplars', 'version')).every((s) => s.points.every((p) => !p.exemplars)));
  });

  await t.test('upload and ready', async () => {
    await prints([], 'ready');
    await prints([], 'upload', join(dir, 'cpu.pb'), '__name__', 'process_cpu', 'service_name', 'profilecli-upload');
    const file = readFileSync(join(dir, 'cpu.pb'));
    assert.ok(file.length > 1000);
    const stored = await until('what was uploaded', 20, async () => (await query(server, 'merge(cpu{service_name="profilecli-upload"}[1h])')).result[0]);
    assert.equal(stored.profiles, 1);
  });

  await t.test('what is refused says so', async () => {
    assert.equal(await fails([], 'profile-dot'),
      'error: unimplemented: format PROFILE_FORMAT_DOT is not supported: go tool pprof -dot draws what PROFILE_FORMAT_PPROF gives');
    assert.match(await fails(['-query={version=}'], 'profile', join(dir, 'x')), /^error: invalid_argument: selector "\{version=\}": 1:10: unexpected/);
    assert.equal(await fails([], 'heatmap'), 'error: unimplemented: method "SelectHeatmap" is not served here');
    for (const protocol of ['grpc', 'grpc-web'])
      for (const command of [['profile-types'], ['upload', join(dir, 'cpu.pb'), '__name__', 'process_cpu']])
        assert.equal(await fails([`-protocol=${protocol}`], ...command), 'error: unimplemented: gRPC and gRPC-Web are not served here: ' +
          'use the Connect protocol (application/proto or application/json)', protocol);
  });
});
