// Grafana's Pyroscope data source, call by call as it makes them, with an encoder and a decoder of protobuf of this
// file's own; what comes back is compared with what our own API says to the same question.
import test from 'node:test';
import assert from 'node:assert/strict';
import { gunzipSync, gzipSync } from 'node:zlib';
import { api, finish, join, query, request, scratch, settled, startDemo, startServer, until, writeFileSync } from './lib.mjs';

const CPU = 'process_cpu:cpu:nanoseconds:cpu:nanoseconds';
const GOROUTINES = 'goroutine:goroutine:count:goroutine:count';

/* ---- protobuf ---- */

function varint(n) {
  const out = [];
  for (n = BigInt.asUintN(64, BigInt(n)); n > 127n; n >>= 7n) out.push(Number(n & 127n) | 128);
  return Buffer.from([...out, Number(n)]);
}

/** [[number, value]]: integers as varints, {double}, strings, buffers. */
function encode(fields) {
  return Buffer.concat(fields.flatMap(([id, v]) => {
    if (typeof v === 'number') return [varint(id * 8), varint(v)];
    if (v.double !== undefined) {
      const b = Buffer.alloc(8);
      b.writeDoubleLE(v.double);
      return [varint(id * 8 + 1), b];
    }
    const bytes = Buffer.from(v);
    return [varint(id * 8 + 2), varint(bytes.length), bytes];
  }));
}

function reader(b) {
  let at = 0;
  return {
    get more() { return at < b.length; },
    varint() {
      let n = 0n, shift = 0n;
      for (;;) {
        const byte = b[at++];
        assert.notEqual(byte, undefined, 'cut short');
        n |= BigInt(byte & 127) << shift;
        shift += 7n;
        if (byte < 128) return Number(BigInt.asIntN(64, n));
      }
    },
    bytes(n) {
      assert.ok(at + n <= b.length, 'cut short');
      return b.subarray(at, at += n);
    },
  };
}

/** By a schema {number: [name, kind]}; kind: 'string', 'int', 'double', 'bytes', 'ints' or a schema; a name in [] is a list. */
function decode(b, schema) {
  const out = {};
  for (const [name] of Object.values(schema)) if (name.startsWith('[')) out[name.slice(1)] = [];
  const r = reader(b);
  while (r.more) {
    const tag = r.varint();
    const [name, kind] = schema[tag >> 3] ?? assert.fail(`field ${tag >> 3}`);
    const raw = [r.varint, () => r.bytes(8).readDoubleLE(), () => r.bytes(r.varint())][tag & 7]();
    let v = raw;
    if (kind === 'string') v = new TextDecoder('utf-8', { fatal: true }).decode(raw);
    else if (kind === 'ints') {
      v = [];
      for (const x = reader(raw); x.more;) v.push(x.varint());
    } else if (typeof kind === 'object') v = decode(raw, kind);
    if (name.startsWith('[')) out[name.slice(1)].push(v);
    else out[name] = v;
  }
  return out;
}

const pair = { 1: ['name', 'string'], 2: ['value', 'string'] };
const names = { 1: ['[names', 'string'] };
const types = { 1: ['[types', { 1: ['id', 'string'], 2: ['name', 'string'], 4: ['sampleType', 'string'], 5: ['sampleUnit', 'string'],
  6: ['periodType', 'string'], 7: ['periodUnit', 'string'] }] };
const series = { 1: ['[series', { 1: ['[labels', pair], 2: ['[points', { 1: ['value', 'double'], 2: ['timestamp', 'int'] }] }] };
const flame = { 1: ['[names', 'string'], 2: ['[levels', { 1: ['values', 'ints'] }], 3: ['total', 'int'], 4: ['maxSelf', 'int'],
  5: ['leftTicks', 'int'], 6: ['rightTicks', 'int'] };
const stacktraces = { 1: ['flamegraph', flame], 2: ['tree', 'bytes'], 5: ['pprof', { 1: ['profile', 'bytes'] }] };

function merge(type, selector, start, end, ...more) {
  return encode([[1, type], [2, selector], [3, start], [4, end], ...more]);
}

/* ---- calls ---- */

async function post(server, method, body, headers = {}) {
  return request(`${server.url}/querier.v1.QuerierService/${method}`, { method: 'POST', body,
    headers: { 'Content-Type': 'application/proto', 'Connect-Protocol-Version': '1', 'Accept-Encoding': 'gzip', 'User-Agent': 'connect-go/1.18.1',
      ...headers } });
}

async function call(server, method, body, schema) {
  const res = await post(server, method, body);
  assert.equal(res.status, 200, `${method}: ${res.body}`);
  assert.equal(res.headers['content-type'], 'application/proto');
  const raw = res.headers['content-encoding'] === 'gzip' ? gunzipSync(res.body) : res.body;
  return schema ? decode(raw, schema) : raw;
}

/* ---- flame graphs as stacks: path -> [total, self] of each side ---- */

function stacksOf(namesOf, levels, sides) {
  const width = sides * 3 + 1;
  const out = new Map();
  let above = [];
  levels.forEach((row, level) => {
    const boxes = [], end = Array(sides).fill(0);
    for (let i = 0; i < row.length; i += width) {
      const box = { x: [], total: [], self: [], name: namesOf[row[i + width - 1]] };
      for (let s = 0; s < sides; s++) {
        const [dx, total, self] = row.slice(i + 3 * s);
        box.x.push(end[s] + dx);
        box.total.push(total);
        box.self.push(self);
        end[s] += dx + total;
      }
      const parent = level && above.find((p) => box.x.every((x, s) => x >= p.x[s] && x + box.total[s] <= p.x[s] + p.total[s]));
      assert.ok(level === 0 || parent, `${box.name} stands below nothing`);
      box.path = level ? [...parent.path, box.name] : [];
      boxes.push(box);
      const key = box.path.join(';');
      assert.ok(!out.has(key), `${key} twice`);
      out.set(key, [box.total, box.self]);
    }
    above = boxes;
  });
  return out;
}

function ours(fb) {
  return stacksOf(fb.names, fb.levels, fb.format === 'double' ? 2 : 1);
}

function theirs(graph, sides = 1) {
  return stacksOf(graph.names, graph.levels.map((l) => l.values), sides);
}

/** Pyroscope's tree: name, self, children, a caller first. */
function treeOf(bytes) {
  const r = reader(bytes), out = new Map();
  const node = (path) => {
    const name = r.bytes(r.varint()).toString();
    const here = path ? [...path, name] : [];
    let total = r.varint();
    const self = total;
    for (let n = r.varint(); n > 0; n--) total += node(here);
    out.set(here.join(';'), [[total], [path ? self : 0]]);
    return total;
  };
  node(null);
  assert.ok(!r.more);
  return out;
}

function topRows(text) {
  const lines = text.split('\n');
  const head = lines.findIndex((l) => /^\s*flat\s+flat%/.test(l));
  assert.notEqual(head, -1, text);
  return lines.slice(head + 1).filter((l) => l.trim() !== '').map((l) => l.trim().split(/\s+/).join(' '));
}

test('Grafana asks, as it asks Pyroscope', async (t) => {
  const dir = scratch(t);
  const v1 = await startDemo(t, 'v1', 'none');
  const v2 = await startDemo(t, 'v2', 'scoreItems');
  const server = await startServer(t, { dir, config: `
global: {scrape_interval: 2s}
scrape_configs:
  - job_name: demo
    static_configs:
      - {targets: ["${v1.address}"], labels: {version: v1}}
      - {targets: ["${v2.address}"], labels: {version: v2}}
` });

  await t.test('health check: profile types of 1970', async () => {
    const res = await post(server, 'ProfileTypes', encode([[1, 1000], [2, 4000]]));
    assert.equal(res.status, 200);
    assert.equal(res.headers['content-type'], 'application/proto');
    assert.equal(res.body.length, 0);
  });

  const last = await until('six CPU profiles of each version within a minute', 60, async () => {
    const time = Math.floor(await settled(server)); // what is being committed is later
    for (const [name, n] of [['cpu', 6], ['goroutine', 1], ['memory', 1]]) {
      const { result } = await query(server, `merge by (version) (${name}{job="demo"}[1m])`, { time });
      if (result.length !== 2 || result.some((e) => e.profiles < n)) return null;
    }
    return time;
  });
  const end = last * 1000, start = end - 60000;
  const span = { start: start / 1000, end: end / 1000 };

  await t.test('profile types, labels and their values', async () => {
    const got = (await call(server, 'ProfileTypes', encode([[1, start], [2, end]]), types)).types;
    const want = (await api(server, 'profile_types', span)).map((x) => x.type.replace(/:delta$/, ''));
    assert.deepEqual(got.map((x) => x.id).sort(), [...new Set(want)].sort());
    assert.deepEqual(got.find((x) => x.id === CPU), { id: CPU, name: 'process_cpu', sampleType: 'cpu', sampleUnit: 'nanoseconds',
      periodType: 'cpu', periodUnit: 'nanoseconds' });
    const matcher = `{__profile_type__="${CPU}"}`;
    const labels = (await call(server, 'LabelNames', encode([[1, matcher], [2, start], [3, end]]), names)).names;
    assert.deepEqual(labels, [...await api(server, 'labels', { 'match[]': 'process_cpu', ...span }), 'service_name'].sort());
    const values = async (name, ...m) => (await call(server, 'LabelValues', encode([[1, name], ...m.map((x) => [2, x]), [3, start], [4, end]]), names)).names;
    assert.deepEqual(await values('service_name', matcher), ['demo']);
    assert.deepEqual(await values('version', `{__profile_type__="${CPU}",service_name="demo"}`), ['v1', 'v2']);
    assert.deepEqual(await values('version', `${CPU}{version="v1"}`), ['v1']);
    assert.deepEqual(await values('handler', '{}'), await api(server, 'label/handler/values', span));
    assert.deepEqual(await values('nowhere'), []);
  });

  await t.test('metrics: the sum of each step', async () => {
    for (const [type, name] of [[CPU, 'cpu'], [GOROUTINES, 'goroutine']]) {
      const body = merge(type, `{__profile_type__="${type}",service_name="demo"}`, start, end, [5, 'version'], [6, { double: 15 }]);
      const got = (await call(server, 'SelectSeries', body, series)).series;
      const want = (await api(server, 'query_range', { query: `total(merge by (version) (${name}{job="demo"}))`, step: 15, ...span })).result;
      assert.equal(got.length, 2, JSON.stringify(got));
      assert.deepEqual(got.map((s) => [s.labels, s.points.map((p) => [p.timestamp / 1000, p.value])]),
        want.map((e) => [[{ name: 'version', value: e.metric.version }], e.values.map(([at, v]) => [at, Number(v)])]));
    }
    const ask = (...more) => call(server, 'SelectSeries', merge(CPU, '{}', start, end, [5, 'version'], [6, { double: 15 }], ...more), series);
    const sum = (s) => s.points.reduce((n, p) => n + p.value, 0);
    const all = (await ask()).series.sort((a, b) => sum(b) - sum(a));
    const one = (await ask([9, 1])).series;
    assert.equal(all.length, 2);
    assert.deepEqual(one.map(sum), [sum(all[0])]); // whichever of the two it is: they may be equal
  });

  await t.test('profile: the flame graph is ours', async () => {
    for (const [type, text] of [[CPU, 'cpu{version="v2"}'], [GOROUTINES, 'goroutine{version="v2"}'],
      ['memory:inuse_space:bytes:space:bytes', 'memory:inuse_space{version="v2"}']]) {
      for (const max of [16384, 40]) {
        const got = await call(server, 'SelectMergeStacktraces', merge(type, '{version="v2"}', start, end, [5, max]), stacktraces);
        const want = (await query(server, `merge(${text})`, { ...span, max_nodes: max })).result[0];
        assert.ok(want.total > 0);
        assert.equal(got.flamegraph.total, want.flamebearer.numTicks);
        assert.equal(got.flamegraph.maxSelf, want.flamebearer.maxSelf);
        assert.deepEqual(theirs(got.flamegraph), ours(want.flamebearer));
        const tree = await call(server, 'SelectMergeStacktraces', merge(type, '{version="v2"}', start, end, [5, max], [6, 2]), stacktraces);
        assert.deepEqual(new Map([...treeOf(tree.tree)].sort()), new Map([...ours(want.flamebearer)].sort()));
      }
    }
  });

  await t.test('a call site leaves its stacks alone', async () => {
    const all = theirs((await call(server, 'SelectMergeStacktraces', merge(CPU, '{version="v2"}', start, end, [5, 100000]), stacktraces)).flamegraph);
    const [path] = [...all].filter(([k]) => k.split(';').length === 3).sort((a, b) => b[1][0][0] - a[1][0][0])[0];
    const site = path.split(';').map((name) => [1, encode([[1, name]])]);
    const got = theirs((await call(server, 'SelectMergeStacktraces', merge(CPU, '{version="v2"}', start, end, [5, 100000], [7, encode(site)]),
      stacktraces)).flamegraph);
    const below = (m) => [...m].filter(([k]) => k === path || k.startsWith(`${path};`)).sort();
    assert.deepEqual(below(got), below(all));
    assert.deepEqual(got.get(''), [all.get(path)[0], [0]]);
  });

  await t.test('pprof: go tool pprof shows the rows of format=text', async () => {
    const raw = await call(server, 'SelectMergeProfile', merge(CPU, '{version="v2"}', start, end));
    const wrapped = await call(server, 'SelectMergeStacktraces', merge(CPU, '{version="v2"}', start, end, [6, 4]), stacktraces);
    assert.deepEqual(wrapped.pprof.profile, raw);
    writeFileSync(join(dir, 'merged.pb'), raw);
    const run = await finish(t, 'go', ['tool', 'pprof', '-top', '-nodefraction=0', '-nodecount=100000', join(dir, 'merged.pb')]);
    assert.equal(run.code, 0, run.err);
    const text = await request(`${server.url}/api/v1/query?${new URLSearchParams({ query: 'merge(cpu{version="v2"})', format: 'text', ...span })}`);
    assert.deepEqual(topRows(run.out), topRows(text.body.toString()));
    assert.ok(run.out.includes('main.scoreItems'), run.out);
  });

  await t.test('diff: both sides are ours', async () => {
    const middle = start + 30000;
    for (const [left, right] of [[['{version="v1"}', start, end], ['{version="v2"}', start, end]],
      [['{}', start, middle], ['{}', middle, end]]]) {
      const body = encode([[1, merge(CPU, ...left, [5, 500])], [2, merge(CPU, ...right, [5, 500])]]);
      const got = (await call(server, 'Diff', body, { 1: ['flamegraph', flame] })).flamegraph;
      const side = ([s, from, to]) => `merge(cpu${s === '{}' ? '' : s}[${to - from}ms] @ ${to / 1000})`;
      const want = (await query(server, `diff(${side(right)}, ${side(left)})`, { max_nodes: 500 })).result[0].flamebearer;
      assert.equal(got.total, want.numTicks);
      assert.equal(got.leftTicks ?? 0, want.leftTicks);
      assert.equal(got.rightTicks, want.rightTicks);
      assert.deepEqual(theirs(got, 2), ours(want));
    }
  });

  await t.test('JSON says what protobuf says', async () => {
    const body = gzipSync(JSON.stringify({ profileTypeID: CPU, label_selector: '{version="v1"}', start: String(start), end, maxNodes: 100 }));
    const res = await post(server, 'SelectMergeStacktraces', body, { 'Content-Type': 'application/json', 'Content-Encoding': 'gzip', 'Accept-Encoding': 'identity' });
    assert.equal(res.status, 200, res.body.toString());
    assert.equal(res.headers['content-type'], 'application/json');
    const got = JSON.parse(res.body).flamegraph;
    const want = (await call(server, 'SelectMergeStacktraces', merge(CPU, '{version="v1"}', start, end, [5, 100]), stacktraces)).flamegraph;
    assert.deepEqual(got, { names: want.names, levels: want.levels.map((l) => ({ values: l.values.map(String) })), total: String(want.total),
      maxSelf: String(want.maxSelf) });
  });

  await t.test('errors are said as connect says them', async () => {
    const bad = await post(server, 'SelectMergeStacktraces', merge(CPU, '{version=}', start, end));
    assert.equal(bad.status, 400);
    assert.equal(bad.headers['content-type'], 'application/json');
    assert.deepEqual(JSON.parse(bad.body), { code: 'invalid_argument', message: 'selector "{version=}": 1:10: unexpected "}", expected string' });
    assert.equal((await post(server, 'SelectMergeStacktraces', merge(CPU, '{}', start, end, [6, 3]))).status, 501);
    assert.equal((await post(server, 'ProfileTypes', '', { 'Content-Type': 'text/plain' })).status, 415);
    assert.equal((await request(`${server.url}/querier.v1.QuerierService/ProfileTypes`)).status, 405);
    assert.equal((await post(server, 'SelectMergeSpanProfile', '')).status, 404);
  });
});
