// Each format that profiles come in, pushed and scraped, and words for what is none.
import test from 'node:test';
import assert from 'node:assert/strict';
import http from 'node:http';
import { gunzipSync } from 'node:zlib';
import { readFileSync } from 'node:fs';
import { epitool, finish, join, request, scratch, startServer, targets, until, writeFileSync } from './lib.mjs';

const run = (t, ...args) => finish(t, epitool, args);

test('epitool push reads what files have', async (t) => {
  const dir = scratch(t);
  const server = await startServer(t, { dir, args: ['--web.enable-ingest'], config: 'scrape_configs: []\n' });
  const at = `--server=${server.url}`;
  const folded = join(dir, 'a.folded'), trace = join(dir, 'trace');
  writeFileSync(folded, 'main;work 3\nmain 1\n');
  const stacks = await run(t, 'push', at, '-l', 'job=a', '-l', 'run=folded', '--name', 'cpu', folded);
  assert.equal(stacks.code, 0, stacks.err);
  assert.match(stacks.out, /a\.folded: stored as process_cpu at 20.*Z, 2 samples\n$/);
  const java = await run(t, 'push', at, '-l', 'job=a', '-l', 'run=java', '--time=now', 'tests/proto/jfr/recordings/async.jfr.gz');
  assert.equal(java.code, 0, java.err);
  assert.deepEqual([...java.out.matchAll(/async\.jfr\.gz: stored as (\w+) at /g)].map((m) => m[1]),
    ['process_cpu', 'wall', 'memory', 'mutex']);
  const one = await run(t, 'push', at, '-l', 'job=a', '-l', 'run=one', '--name', 'wall', '--time=now', 'tests/proto/jfr/recordings/async.jfr.gz');
  assert.match(one.out, /^\S+: stored as wall at .*\n$/);
  assert.match(one.err, /warning: .*process_cpu, memory, mutex of the recording: not stored, since name chooses another\n$/);
  // What it is, of what is no profile: the same of each command.
  writeFileSync(trace, Buffer.concat([Buffer.from('go 1.22 trace'), Buffer.alloc(3)]));
  for (const args of [['push', at, '-l', 'job=a', '-l', 'run=1', trace], ['top', at, trace], ['diff', at, trace, trace]]) {
    const r = await run(t, ...args);
    assert.equal(r.code, args[0] === 'diff' ? 4 : 1);
    assert.match(r.err, /trace: this is a Go execution trace: use go tool trace; a CPU profile is at \/debug\/pprof\/profile\n$/);
  }
});

test('zstd and lz4 are scraped and pushed; other bytes are named', async (t) => {
  const dir = scratch(t), seed = (name) => readFileSync(`tests/fuzz/pprof/block.pb.${name}`);
  const bodies = { zstd: seed('zst'), lz4: seed('lz4'), trace: Buffer.from('go 1.22 trace\0\0\0'), perf: Buffer.from('PERFILE2\0\0\0\0') };
  const target = http.createServer((req, res) => res.end(bodies[req.url.split('?')[0].slice(1)]));
  await new Promise((done) => { target.listen(0, '127.0.0.1', done); });
  t.after(() => target.close());
  const off = ['process_cpu', 'memory', 'block', 'mutex', 'goroutine'].map((x) => `${x}: {enabled: false}`);
  const own = Object.keys(bodies).map((x) => `${x}: {path: /${x}}`);
  const server = await startServer(t, { dir, args: ['--web.enable-ingest'], config: `
scrape_configs:
  - job_name: j
    scrape_interval: 1s
    profiling_config: {pprof_config: {${[...off, ...own].join(', ')}}}
    static_configs: [{targets: ["127.0.0.1:${target.address().port}"]}]
` });
  const errors = { zstd: /^$/, lz4: /^$/, trace: /^target answers a Go execution trace \(Content-Type ""\), not a profile: use go tool trace; /,
    perf: /^target answers perf\.data of Linux perf \(Content-Type ""\), not a profile: / };
  await until('each is scraped', 60, async () => {
    const all = (await targets(server)).filter((x) => x.health !== 'unknown');
    for (const x of all) assert.match(x.lastError, errors[Object.keys(errors).find((k) => x.scrapeUrl.includes(`/${k}`))]);
    return all.length === 4;
  });
  const now = Math.floor(Date.now() / 1000);
  for (const name of ['zstd', 'lz4']) {
    const res = await request(`${server.url}/api/v1/ingest?name=block&job=${name}&time=${now}`, { method: 'POST', body: bodies[name] });
    assert.equal(res.status, 200, res.body.toString());
    const pyroscope = await request(`${server.url}/ingest?name=${name}&format=pprof&until=${now}`, { method: 'POST', body: bodies[name] });
    assert.equal(pyroscope.status, 200, pyroscope.body.toString());
  }
  for (const [path, status] of [['/api/v1/ingest?name=cpu', 400], ['/ingest?name=a&format=pprof', 422], ['/api/0/profiles?service=a&type=cpu', 400]]) {
    const res = await request(`${server.url}${path}`, { method: 'POST', body: bodies.trace });
    assert.equal(res.status, status, path);
    assert.match(res.body.toString(), /this is a Go execution trace: use go tool trace; /);
  }
});

test('a recording that is cut short gives its whole chunks, and says so', async (t) => {
  const dir = scratch(t), file = join(dir, 'cut.jfr');
  const whole = gunzipSync(readFileSync('tests/proto/jfr/recordings/async.jfr.gz'));
  const body = Buffer.concat([whole, whole.subarray(0, 1000)]);
  const note = 'the recording is cut short: the last 1000 bytes, not a whole chunk, are dropped';
  writeFileSync(file, body);
  const server = await startServer(t, { dir, args: ['--web.enable-ingest'], config: 'scrape_configs: []\n' });
  const at = `--server=${server.url}`;
  const pushed = await run(t, 'push', at, '-l', 'job=a', '-l', 'run=1', '--time=now', file);
  assert.equal(pushed.code, 0, pushed.err);
  assert.equal(pushed.err, `epitool: warning: ${file}: ${note}\n`);
  const top = await run(t, 'top', file);
  assert.equal(top.code, 0, top.err);
  assert.equal(top.err, `epitool: warning: ${file}: ${note}\n`);
  const post = async (path) => JSON.parse((await request(`${server.url}${path}`, { method: 'POST', body })).body);
  assert.deepEqual((await post('/api/v1/files?name=cut.jfr')).warnings, [note]);
  const form = new FormData();
  form.set('query', 'top(1, file("cut.jfr"))');
  form.set('f', new Blob([body]), 'cut.jfr');
  assert.deepEqual((await (await fetch(`${server.url}/api/v1/query`, { method: 'POST', body: form })).json()).infos, [`file "cut.jfr": ${note}`]);
  const now = Math.floor(Date.now() / 1000);
  assert.equal((await request(`${server.url}/ingest?name=java&format=jfr&until=${now}`, { method: 'POST', body })).status, 200);
  assert.match((await request(`${server.url}/metrics`)).body.toString(), /^epimetheus_ingested_recording_lost_total\{what="bytes_cut"\} 1000$/m);
});

test('deep stacks lose their root, and it is said', async (t) => {
  const dir = scratch(t), file = join(dir, 'deep.folded');
  const body = `root;${'a;'.repeat(5000)}leaf 3\nmain 1\n`;
  const note = '1 samples have more than 4096 frames: those at the root are left out';
  writeFileSync(file, body);
  const addresses = Array.from({ length: 5000 }, (_, i) => `0x${(i + 16).toString(16)}`).join(' ');
  const target = http.createServer((req, res) => res.end(`deep profile: total 1\n1 @ ${addresses}\n`));
  await new Promise((done) => { target.listen(0, '127.0.0.1', done); });
  t.after(() => target.close());
  const off = ['process_cpu', 'memory', 'block', 'mutex', 'goroutine'].map((x) => `${x}: {enabled: false}`);
  const server = await startServer(t, { dir, args: ['--web.enable-ingest'], config: `
scrape_configs:
  - job_name: j
    scrape_interval: 1s
    profiling_config: {pprof_config: {${off.join(', ')}, deep: {path: /deep}}}
    static_configs: [{targets: ["127.0.0.1:${target.address().port}"]}]
` });
  const at = `--server=${server.url}`;
  const cut = async () => Number(/^epimetheus_tsdb_stacks_cut_total (\d+)$/m.exec((await request(`${server.url}/metrics`)).body.toString())[1]);
  await until('the target is scraped', 60, async () => {
    const [one] = (await targets(server)).filter((x) => x.health !== 'unknown');
    if (one) assert.equal(one.lastError, '');
    return one?.warning === 'samples have more than 4096 frames: those at the root are left out';
  });
  const before = await cut();
  assert.ok(before >= 1);
  const pushed = await run(t, 'push', at, '-l', 'job=a', '-l', 'run=1', '--name=cpu', file);
  assert.equal(pushed.err, `epitool: warning: ${file}: ${note}\n`);
  assert.ok(await cut() > before);
  const top = await run(t, 'top', file);
  assert.equal(top.err, `epitool: warning: ${file}: ${note}\n`);
  assert.match(top.out, /\bleaf\b/);
  assert.doesNotMatch(top.out, /\broot\b/);
});
