// Native code: stored addresses get names, lines and inlined calls when debug data comes, in every answer about the same window.
import test from 'node:test';
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync } from 'node:fs';
import { api, epitool, execFileSync, finish, join, request, root, scratch, start, startServer, until, writeFileSync } from './lib.mjs';
import { message, recorded, varint } from './otlp_requests.mjs';

const testdata = join(root, 'tests/proto/otlp/testdata');
const expected = JSON.parse(readFileSync(join(testdata, 'expected.json')))['p2-standalone-99hz-steady.pb'];
const args = ['--web.enable-ingest', '--web.enable-admin-api'];

/** Of the whole hour around now. */
const window = () => ({ start: Date.now() / 1000 - 3600, end: Date.now() / 1000 + 60 });

async function costs(server, text) {
  const answer = await api(server, 'query', { query: text, ...window() });
  return Object.fromEntries(answer.result.map((r) => [r.metric.function, Number(r.value[1])]));
}

async function whole(server, text, format) {
  const res = await request(`${server.url}/api/v1/query?${new URLSearchParams({ query: text, format, ...window() })}`);
  assert.equal(res.status, 200, res.body.toString());
  return res;
}

async function infos(server, text) {
  const res = await request(`${server.url}/api/v1/query?${new URLSearchParams({ query: text, ...window() })}`);
  return JSON.parse(res.body).infos ?? [];
}

async function upload(t, server, files, options = []) {
  const run = await finish(t, epitool, ['debuginfo', 'upload', `--server=${server.url}`, ...options, ...files], 120);
  assert.equal(run.code, 0, run.out + run.err);
  return run.out;
}

/** Rows of `go tool pprof -top`: {function: [flat, cum]}. */
async function top(t, dir, body, extra = []) {
  const file = join(dir, 'answer.pb.gz');
  writeFileSync(file, body);
  const run = await finish(t, 'go', ['tool', 'pprof', '-top', '-nodefraction=0', '-nodecount=1000', '-symbolize=none', ...extra, file]);
  assert.equal(run.code, 0, run.err);
  return Object.fromEntries([...run.out.matchAll(/^ +(-?[\d.]+)\S* +[\d.]+% +[\d.]+% +(-?[\d.]+)\S* +[\d.]+% +(.+)$/gm)]
    .map((m) => [m[3].replace(/ \((?:partial-)?inline\)$/, ''), [Number(m[1]), Number(m[2])]]));
}

/** What was counted by name in the recorded request: names as they are shown. */
function counted(of) {
  return Object.fromEntries(Object.entries(of).map(([name, n]) => [name.replace(' (by nm)', ''), n]));
}

test('programs that an eBPF profiler saw get their names', async (t) => {
  const dir = scratch(t);
  const server = await startServer(t, { dir, args, config: 'scrape_configs: []\n' });
  const body = recorded('p2-standalone-99hz-steady').at(Date.now() - 2000);
  const sent = await request(`${server.url}/v1development/profiles`, { method: 'POST', headers: { 'content-type': 'application/x-protobuf' }, body });
  assert.equal(sent.status, 200, sent.body.toString());

  // Without debug data: the binary's name in tables, the place in it in flame graphs, and the answer says so.
  let flat = await costs(server, 'flat(merge(process_cpu:samples{job="c_fp"}))');
  assert.equal(flat['[c_fp]'], 8, JSON.stringify(flat));
  assert.match((await infos(server, 'flat(merge(process_cpu:samples{job="c_fp"}))')).join(),
    /% of the cost is in addresses without names:.* 53\.3% in c_fp \(build id 1e3e09b3d241424b0f8dbf22e2f791dcff582a6c\)/);
  assert.match((await whole(server, 'process_cpu:samples{job="c_fp"}', 'folded')).body.toString(), /\[c_fp\+0x12[0-9a-f]+\]/);
  assert.match(JSON.stringify((await api(server, 'query', { query: 'merge(process_cpu:samples{job="c_fp"})', ...window() })).result[0].flamebearer.names),
    /"\[c_fp\+0x12[0-9a-f]+\]"/);

  // Stripped: its code is c_nofp's, so c_nofp's symbols under its build id are its debug file.
  const bin = (name) => join(testdata, 'bin', name);
  const text = (file) => {
    execFileSync('objcopy', ['-O', 'binary', '--only-section=.text', file, join(dir, 'text')]);
    return readFileSync(join(dir, 'text'));
  };
  assert.deepEqual(text(bin('c_nofp')), text(bin('c_nofp_strip')));
  const ids = ['c_nofp', 'c_nofp_strip'].map((name) => Buffer.from(execFileSync('readelf', ['-n', bin(name)]).toString().match(/Build ID: ([0-9a-f]+)/)[1], 'hex'));
  const renamed = readFileSync(bin('c_nofp')), debug = join(dir, 'c_nofp_strip.debug');
  ids[1].copy(renamed, renamed.indexOf(ids[0]));
  writeFileSync(join(dir, 'renamed'), renamed);
  execFileSync('objcopy', ['--only-keep-debug', join(dir, 'renamed'), debug]);
  const out = await upload(t, server, [bin('c_fp'), bin('c_nofp'), debug]);
  t.diagnostic(out);

  for (const job of ['c_fp', 'c_nofp', 'c_nofp_strip']) {
    await t.test(`${job}: the counts of the recording, by name`, async () => {
      const self = await costs(server, `flat(merge(process_cpu:samples{job="${job}"}))`);
      const all = await costs(server, `cum(merge(process_cpu:samples{job="${job}"}))`);
      for (const [name, n] of Object.entries(counted(expected.self[job])))
        if (!name.startsWith('[')) assert.equal(self[name], n, `${name}: ${JSON.stringify(self)}`);
      for (const [name, n] of Object.entries(counted(expected.inclusive[job])))
        if (!name.startsWith('[')) assert.equal(all[name], n, `${name}: ${JSON.stringify(all)}`);
      assert.ok(Object.keys(counted(expected.inclusive[job])).includes('c_middle'));
      const rows = await top(t, dir, (await whole(server, `merge(process_cpu:samples{job="${job}"})`, 'pprof')).body);
      assert.deepEqual(rows.c_leaf_mul, [self.c_leaf_mul, all.c_leaf_mul]);
      assert.deepEqual(rows.c_middle, [0, all.c_middle]);
    });
  }
  await t.test('files and lines, filters by resolved names', async () => {
    const lines = await api(server, 'query', { query: 'flat by (function, filename, line, build_id) (process_cpu:samples{job="c_fp"}, {function="c_leaf_mul"})', ...window() });
    assert.equal(lines.result.reduce((n, r) => n + Number(r.value[1]), 0), 8);
    for (const r of lines.result) {
      assert.match(r.metric.filename, /cw\.c$/);
      assert.equal(r.metric.line, '7');
      assert.match(r.metric.build_id, /^1e3e09b3/);
    }
    const focused = await costs(server, 'flat(focus(merge(process_cpu:samples{job="c_fp"}), "c_leaf_mul"))');
    assert.deepEqual(focused, { c_leaf_mul: 8 });
  });
  await t.test('symbols outlive a restart, and are not asked for again', async () => {
    const again = await upload(t, server, [bin('c_fp'), bin('c_nofp'), debug]);
    assert.doesNotMatch(again, /sent /);
    await server.stop('SIGKILL');
    const next = await startServer(t, { dir, args, config: 'scrape_configs: []\n' });
    assert.equal((await costs(next, 'flat(merge(process_cpu:samples{job="c_fp"}))')).c_leaf_mul, 8);
    await next.stop();
  });
});

/** Samples of a profile without names, by the innermost function that addr2line says, of the functions in `shop`. */
async function byAddr2line(t, dir, body, binary) {
  const file = join(dir, 'bare.pb.gz'), sums = {};
  writeFileSync(file, body);
  const raw = await finish(t, 'go', ['tool', 'pprof', '-raw', '-symbolize=none', file]);
  assert.equal(raw.code, 0, raw.err);
  const mapping = raw.out.match(/^(\d+): 0x([0-9a-f]+)\/0x[0-9a-f]+\/0x([0-9a-f]+) \S*\/shop/m);
  const places = new Map([...raw.out.matchAll(/^ +(\d+): 0x([0-9a-f]+) M=(\d+)/gm)].filter((m) => m[3] === mapping[1])
    .map((m) => [m[1], (BigInt(`0x${m[2]}`) - BigInt(`0x${mapping[2]}`) + BigInt(`0x${mapping[3]}`)).toString(16)]));
  for (const m of raw.out.split('Locations')[0].matchAll(/^ +(\d+): (\d+)/gm)) {
    if (!places.has(m[2])) continue;
    // The segments of a program like this one are in memory as they are in the file.
    const name = execFileSync('addr2line', ['-i', '-f', '-C', '-e', binary, places.get(m[2])]).toString().split('\n')[0].replace(/\(.*$/, '');
    sums[name] = (sums[name] ?? 0) + Number(m[1]);
  }
  return sums;
}

test('a stripped program of C++ with gperftools: hex first, then names, lines and inlined calls of the same window', async (t) => {
  const dir = scratch(t), full = join(dir, 'full'), run = join(dir, 'run'), symbols = join(dir, 'symbols');
  for (const folder of [full, run, symbols]) mkdirSync(folder);
  const source = readFileSync(join(root, 'tests/e2e/cpp/service.cc'), 'utf8').replace('__attribute__((noinline))', 'inline __attribute__((always_inline))');
  writeFileSync(join(full, 'service.cc'), source);
  execFileSync('g++', ['-O2', '-g', '-o', join(full, 'shop'), join(full, 'service.cc'), '-ltcmalloc_and_profiler', '-ldl', '-pthread'], { stdio: 'pipe' });
  execFileSync('strip', ['-o', join(run, 'shop'), join(full, 'shop')]);
  const program = start(t, join(run, 'shop'), []);
  const address = await until('service listens', 10, () => program.out.match(/127\.0\.0\.1:\d+/)?.[0]);
  const off = ['memory', 'block', 'mutex', 'goroutine', 'goroutineleak'].map((name) => `${name}: {enabled: false}`).join(', ');
  const server = await startServer(t, { dir, args, config: `
global: {scrape_interval: 100y, scrape_timeout: 60s}
scrape_configs:
  - job_name: cpp
    profiling_config: {symbol_path: /nowhere, pprof_config: {process_cpu: {path: /pprof/profile, seconds: 2}, ${off}}}
    static_configs: [{targets: ["${address}"]}]
` });
  await until('the target', 20, async () => (await api(server, 'targets')).activeTargets.length === 1);
  const all = 'merge(process_cpu:samples{job="cpp"})';
  await until('a hundred samples', 60, async () => { // fewer a second on a busy machine
    const scraped = await request(`${server.url}/api/v1/targets/profile?${new URLSearchParams({ 'match[]': 'process_cpu{job="cpp"}', seconds: 2 })}`, { method: 'POST' });
    assert.equal(scraped.status, 200, scraped.body.toString());
    return (await costs(server, `flat(${all})`))['[shop]'] >= 100;
  });
  await program.stop();

  const before = await costs(server, `flat(${all})`), total = Object.values(before).reduce((a, b) => a + b);
  const bare = (await whole(server, all, 'pprof')).body;
  assert.match((await infos(server, `flat(${all})`)).join(), /% in \S*\/run\/shop(,|$)/);

  // A file adds names and takes none away: first a table of symbols, then the debug data alone.
  execFileSync('strip', ['--strip-debug', '-o', join(symbols, 'shop'), join(full, 'shop')]);
  execFileSync('objcopy', ['--only-keep-debug', join(full, 'shop'), join(dir, 'only.debug')]);
  await upload(t, server, [join(symbols, 'shop')]);
  const bySymbols = await costs(server, `flat(${all})`);
  assert.ok(bySymbols['shop::serve_requests'] > 0 && !bySymbols['[shop]'], JSON.stringify(bySymbols));
  await upload(t, server, [join(dir, 'only.debug')]);
  const after = await costs(server, `flat(${all})`);
  const shops = (await api(server, 'symbols')).binaries.filter((b) => b.path.endsWith('/shop') || b.path.endsWith('only.debug'));
  assert.deepEqual(shops.map((b) => [b.state, b.quality, b.content, b.jobs]), [['named', 'dwarf', 'full', ['cpp']]]);
  assert.ok(shops[0].addresses > 0);
  assert.equal(after['[shop]'], undefined, JSON.stringify(after));
  assert.equal(Object.values(after).reduce((a, b) => a + b), total);
  assert.ok(after['shop::rank_items'] > 0 && after['shop::parse_orders'] > 0, JSON.stringify(after));
  assert.ok((await infos(server, `flat(${all})`)).includes(
    `names of ${join(run, 'shop')} are from the only file with this name: the profiles have no build id`));
  const lines = await api(server, 'query', { query: `flat by (function, filename, line) (${all}, {function="shop::rank_items"})`, ...window() });
  assert.ok(lines.result.length > 0);
  for (const r of lines.result) assert.match(`${r.metric.filename}:${r.metric.line}`, /service\.cc:\d+$/);
  // Both are inlined: they are called, by nobody else.
  const cum = await costs(server, `cum(callees(${all}, "^shop::serve_requests$"))`);
  for (const f of ['shop::rank_items', 'shop::parse_orders']) assert.equal(cum[f], after[f], JSON.stringify(cum));
  // The oracle: addr2line, asked for the addresses that were stored.
  assert.deepEqual(Object.fromEntries(Object.entries(after).filter(([name]) => name.startsWith('shop::'))), await byAddr2line(t, dir, bare, join(full, 'shop')));
  const rows = await top(t, dir, (await whole(server, all, 'pprof')).body);
  for (const [name, n] of Object.entries(after)) assert.equal(rows[name]?.[0], n, name);

  // Elsewhere the debug data come alone: their name and the size of their code say whose they are.
  const other = scratch(t), alone = await startServer(t, { dir: other, args, config: 'scrape_configs: []\n' });
  writeFileSync(join(other, 'bare.pb.gz'), bare);
  execFileSync('objcopy', ['--only-keep-debug', join(full, 'shop'), join(other, 'shop.debug')]);
  const push = await finish(t, epitool, ['push', `--server=${alone.url}`, '--name=process_cpu', '-l', 'job=cpp', join(other, 'bare.pb.gz')]);
  assert.equal(push.code, 0, push.err);
  await upload(t, alone, [join(other, 'shop.debug')]);
  const named = await costs(alone, `flat(${all})`);
  for (const [name, n] of Object.entries(after)) if (name.startsWith('shop::')) assert.equal(named[name], n, JSON.stringify(named));
});

const buildIdOf = (file) => execFileSync('readelf', ['-n', file]).toString().match(/Build ID: ([0-9a-f]+)/)[1];

/** Segments of code. */
const loadsOf = (file) => [...execFileSync('readelf', ['-lW', file]).toString().matchAll(/^ +LOAD +0x(\w+) 0x(\w+) 0x\w+ 0x(\w+) .* R E /gm)]
  .map((m) => ({ offset: parseInt(m[1], 16), address: parseInt(m[2], 16), bytes: parseInt(m[3], 16) }));

/** {symbol: address} of functions. */
const symbolsOf = (file) => Object.fromEntries([...execFileSync('nm', [file]).toString().matchAll(/^(\w+) [tTwW] (.+)$/gm)]
  .map((m) => [m[2], parseInt(m[1], 16)]));

/** A CPU profile of a process that has mapped a file at `base`: {address: samples}, without names. Address 0: it is not known. */
function bareProfile(base, loads, path, id, samples) {
  const number = (n, v) => Buffer.concat([varint(n * 8), varint(v)]);
  const strings = ['', 'samples', 'count', path, id], at = Object.keys(samples).map(Number);
  return Buffer.concat([
    message(1, number(1, 1), number(2, 2)),
    ...at.map((address, i) => message(2, message(1, varint(i + 1)), message(2, varint(samples[address])))),
    ...loads.map((l, i) => message(3, number(1, i + 1), number(2, base + l.address), number(3, base + l.address + l.bytes), number(4, l.offset), number(5, 3), number(6, 4))),
    ...at.map((address, i) => message(4, number(1, i + 1), number(3, address && base + address),
      number(2, Math.max(0, loads.findIndex((l) => address >= l.address && address < l.address + l.bytes)) + 1))),
    ...strings.map((s) => message(6, Buffer.from(s))),
  ]);
}

test('a program of C++ that BOLT has laid out anew: its headers are far behind, its functions elsewhere', async (t) => {
  const dir = scratch(t), oracle = join(root, 'tests/tsdb/debuginfo/oracle');
  writeFileSync(join(dir, 'pad.c'), 'const char pad[5 << 20] = { 1 };\n');
  const sources = [join(oracle, 'samples/shapes.cc'), join(oracle, 'samples/main.cc')];
  execFileSync('gcc', ['-c', join(dir, 'pad.c')], { cwd: dir });
  execFileSync('clang++', ['-std=c++17', '-O2', '-g', '-c', ...sources], { cwd: dir });
  const server = await startServer(t, { dir, args, config: 'scrape_configs: []\n' });
  // With lines, and as BOLT makes it by default: with symbols alone.
  for (const [name, options, quality] of [['lines', ['-update-debug-sections'], 'dwarf'], ['names', [], 'symbols']]) {
    const file = join(dir, name), linked = `${file}.linked`;
    execFileSync('clang++', [`-Wl,-q,--build-id=0x${Buffer.from(name.padEnd(8)).toString('hex')}`, '-o', linked, 'shapes.o', 'main.o', 'pad.o'], { cwd: dir });
    execFileSync(join(oracle, 'bolt.sh'), [linked, file, ...options], { stdio: 'pipe' });
    const headers = execFileSync('readelf', ['-hW', file]).toString(), id = buildIdOf(file);
    assert.ok(Number(headers.match(/Start of program headers: +(\d+)/)[1]) > 1 << 22);
    const loads = loadsOf(file), symbols = symbolsOf(file);
    const place = { main: symbols.main + 1, 'shapes::make': symbols._ZN6shapes4makeEi + 1 };
    const cold = symbols['_ZN6shapes4makeEi.cold.0'];
    assert.ok(loads.length === 2 && place.main > loads[1].address && cold > loads[1].address);
    const body = bareProfile(0x555555000000, loads, `/opt/${name}`, id, { [place.main]: 5, [place['shapes::make']]: 7, [cold]: 20 });
    const pushed = await request(`${server.url}/api/v1/ingest?name=process_cpu&job=${name}`, { method: 'POST', body });
    assert.equal(pushed.status, 200, pushed.body.toString());
    assert.equal((await costs(server, `cum(merge(process_cpu:samples{job="${name}"}))`))[`[${name}]`], 32);

    const info = await finish(t, epitool, ['debuginfo', 'info', file]);
    assert.match(info.out, new RegExp(`gnu build id +${id}\\n`), info.err);
    // By the protocol, and by curl without the id: symbols of the same file again are not wanted.
    assert.match(await upload(t, server, [file]), new RegExp(`: gnu ${id}: named by ${quality}, `));
    const again = await request(`${server.url}/api/v1/symbols/upload`, { method: 'POST', body: readFileSync(file) });
    assert.equal(again.status, quality === 'dwarf' ? 409 : 200, again.body.toString());
    const cum = await costs(server, `cum(merge(process_cpu:samples{job="${name}"}))`);
    assert.deepEqual([cum.main, cum['shapes::make'], cum[`[${name}]`]], [5, 27, undefined], JSON.stringify(cum));
  }
});

test('the first byte of a mapping has a name, and what has no address has none', async (t) => {
  const dir = scratch(t), file = join(dir, 'first'), base = 0x555555000000;
  writeFileSync(join(dir, 'first.c'), 'int main(void) { return 0; }\n');
  execFileSync('gcc', ['-g', '-Wl,--build-id=sha1', '-o', file, join(dir, 'first.c')]);
  const [load] = loadsOf(file);
  assert.equal(symbolsOf(file)._init, load.address);
  const server = await startServer(t, { dir, args, config: 'scrape_configs: []\n' });
  const body = bareProfile(base, [load], '/opt/first', buildIdOf(file), { [load.address]: 3, 0: 5 });
  const pushed = await request(`${server.url}/api/v1/ingest?name=process_cpu&job=first`, { method: 'POST', body });
  assert.equal(pushed.status, 200, pushed.body.toString());
  const all = 'merge(process_cpu:samples{job="first"})';
  const folded = async () => (await whole(server, all, 'folded')).body.toString().trim().split('\n').sort();
  assert.deepEqual(await folded(), ['[first+0x1000] 3', '[first] 5']);
  assert.match((await infos(server, `flat(${all})`)).join(), /^37\.5% of the cost is in addresses without names/);
  await upload(t, server, [file]);
  assert.deepEqual(await folded(), ['[first] 5', '_init 3']);
  assert.deepEqual(await infos(server, `flat(${all})`), []);
  writeFileSync(join(dir, 'answer.pb.gz'), (await whole(server, all, 'pprof')).body);
  const raw = await finish(t, 'go', ['tool', 'pprof', '-raw', '-symbolize=none', join(dir, 'answer.pb.gz')]);
  assert.deepEqual([...raw.out.matchAll(/^ +\d+: (0x[0-9a-f]+) M=1/gm)].map((m) => m[1]).sort(), ['0x0', `0x${(base + load.address).toString(16)}`], raw.out);
});
