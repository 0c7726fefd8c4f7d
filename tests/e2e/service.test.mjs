// Flags, files, locks, exit codes and the static programs, as an operator meets them.
import test from 'node:test';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import assert from 'node:assert/strict';
import { chmodSync, copyFileSync, mkdirSync, readFileSync, readdirSync, statSync } from 'node:fs';
import {
  api, build, epimetheus, epitool, execFileSync, finish, join, programEnds, query, request, root, scratch, start,
  startServer, targets, until, writeFileSync,
} from './lib.mjs';
import { PROGRAM_MB } from '../bench/targets.mjs';

test('the programs are static and small', () => {
  for (const p of [epimetheus, epitool]) {
    assert.match(execFileSync('file', ['-L', p]).toString(), /static(ally|-pie) linked/);
    assert.ok(statSync(p).size <= PROGRAM_MB * 1e6, `${p}: ${statSync(p).size} bytes`);
  }
});

test('the programs are hardened as the README says', () => {
  for (const p of [epimetheus, epitool]) {
    const read = (...args) => execFileSync('readelf', ['-W', ...args, p], { maxBuffer: 1 << 26 }).toString();
    const headers = read('-hl'), dynamic = read('-d');
    assert.match(headers, /Type: +DYN \(Position-Independent Executable file\)/);
    assert.doesNotMatch(headers, /INTERP/);
    assert.match(headers, /GNU_RELRO/);
    assert.match(dynamic, /\(FLAGS\) +BIND_NOW/);
    assert.match(headers, /GNU_STACK.* RW /);
    assert.doesNotMatch(headers, /^ +LOAD.* RWE /m);
    const names = read('-s');
    assert.match(names, /FUNC.* __stack_chk_fail$/m);
    assert.match(names, /FUNC.* __memcpy_chk$/m);
  }
});

test('wrong flags and files are said, with exit code 2', async (t) => {
  const dir = scratch(t);
  const file = join(dir, 'bad.yml');
  const rows = [
    [['--no-such-flag'], /unknown long flag '--no-such-flag'/],
    [['--query.timeout=abc'], /--query\.timeout/],
    [['--log.level=loud'], /loud/],
    [['stray'], /unexpected argument 'stray'/],
    [[`--config.file=${join(dir, 'missing.yml')}`], /missing\.yml: No such file or directory/],
    [[`--config.file=${dir}`], /Is a directory/],
    [[`--config.file=${file}`], /bad\.yml:3:5: field job_nme not found in type/, 'global: {}\nscrape_configs:\n  - job_nme: x\n'],
    [[`--config.file=${file}`], /bad\.yml:2:1: did not find expected node content/, 'a: [\n'],
    [[`--config.file=${file}`], /1:9: global scrape timeout greater than scrape interval \(and 1 more error; `epitool check config` lists them\)/,
      'global: {scrape_interval: 1s, scrape_timeout: 2s}\nscrape_configs: [~]\n'],
  ];
  const data = `--storage.tsdb.path=${join(dir, 'd')}`;
  rows.push([[`--config.file=${file}`, '--web.max-connections=4294967296'], /--web\.max-connections is 4294967296; it may be 1 to 1048576/,
    'scrape_configs: []\n']);
  rows.push([[`--config.file=${file}`, '--storage.tsdb.path='], /--storage\.tsdb\.path is empty/, 'scrape_configs: []\n']);
  for (const [args, want, text] of rows) {
    if (text) writeFileSync(file, text);
    const own = args.some((a) => a.startsWith('--storage.')) ? args : [...args, data];
    const run = await finish(t, epimetheus, [...own, '--web.listen-address=127.0.0.1:0'], 20);
    assert.equal(run.code, 2, `${args}: ${run.err}`);
    assert.match(run.err, want);
  }
});

test('what the system refuses ends with exit code 1', async (t) => {
  const dir = scratch(t);
  const server = await startServer(t, { dir, config: 'scrape_configs: []\n' });
  const same = ['--config.file', join(dir, 'epimetheus.yml')];
  const port = await finish(t, epimetheus, [...same, `--web.listen-address=127.0.0.1:${server.port}`,
    `--storage.tsdb.path=${join(dir, 'other')}`], 20);
  assert.equal(port.code, 1);
  assert.match(port.err, /Address already in use/);
  const lock = await finish(t, epimetheus, [...same, '--web.listen-address=127.0.0.1:0', `--storage.tsdb.path=${join(dir, 'data')}`], 20);
  assert.equal(lock.code, 1);
  assert.match(lock.err, /locked by another process/);
  assert.equal((await request(`${server.url}/-/ready`)).status, 200);
});

test('make run tells of a busy address before it touches the fleet that is there', async (t) => {
  const dir = scratch(t);
  const server = await startServer(t, { dir, config: 'scrape_configs: []\n' });
  const env = { ...process.env, EPI_LISTEN: `127.0.0.1:${server.port}`, EPI_DATA: join(dir, 'other') };
  const run = await finish(t, join(root, 'examples/run.sh'), [build], 20, { env });
  assert.equal(run.code, 1);
  assert.equal(run.err, `127.0.0.1:${server.port} is in use already: EPI_LISTEN=host:port chooses another address.\n`);
  assert.equal(run.out, '');
});

test('what takes long and says nothing prints how long it has taken', async (t) => {
  const env = { ...process.env, EPI_PROGRESS_S: '0.1' };
  const go = join(scratch(t), 'go');
  // It ends when two lines are there, however slow the machine is.
  const wait = 'echo hidden; for _ in $(seq 600); do [ -e "$0" ] && break; sleep 0.1; done; echo seen >&2; exit 3';
  const run = spawn(join(root, 'examples/progress.sh'), ['  APT   gcc', 'bash', '-c', wait, go], { env });
  const said = { out: '', err: '' };
  run.stdout.on('data', (d) => {
    said.out += d;
    if (said.out.split('\n').length > 3) writeFileSync(go, '');
  });
  run.stderr.on('data', (d) => (said.err += d));
  const [code] = await once(run, 'close');
  assert.equal(code, 3, 'its exit status');
  assert.equal(said.err, 'seen\n', 'its errors');
  assert.match(said.out, /^  APT   gcc\n( +\d+ s\n){2,}$/);
});

test('help, version, licences', async (t) => {
  const help = await finish(t, epimetheus, ['--help']);
  assert.equal(help.code, 0);
  for (const flag of ['--config.file', '--web.listen-address', '--storage.tsdb.retention.time', '--web.enable-lifecycle'])
    assert.ok(help.out.replaceAll('--[no-]', '--').includes(flag), flag);
  assert.match((await finish(t, epimetheus, ['--version'])).out, /^epimetheus, version \d+\.\d+\.\d+/);
  assert.match((await finish(t, epimetheus, ['--licenses'])).out, /LevelDB +BSD-3-Clause/);
});

test('without a configuration it scrapes itself, and says so', async (t) => {
  const dir = scratch(t);
  const server = await startServer(t, { dir });
  assert.match(server.err, /no configuration file: the built-in one scrapes this server itself/);
  const found = await until('a profile of itself', 60, async () => {
    await query(server, '1');
    const r = await query(server, 'merge(cpu[5m])');
    return r.result[0]?.profiles > 0 && r;
  });
  assert.equal(found.result[0].type, 'process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta');
  assert.ok((await targets(server)).every((x) => x.health === 'up'));
  assert.match((await api(server, 'status/config')).yaml, /scrape_configs/);
});

test('what may change the server is off unless a flag allows it', async (t) => {
  const dir = scratch(t);
  const server = await startServer(t, { dir, config: 'scrape_configs: []\n' });
  for (const [path, status] of [['/-/reload', 403], ['/-/quit', 403], ['/api/v1/ingest?name=x', 404]])
    assert.equal((await request(server.url + path, { method: 'POST' })).status, status, path);
  assert.equal((await request(`${server.url}/-/reload`)).status, 405);
  assert.equal((await request(`${server.url}/api/v1/nothing`)).status, 404);
  assert.equal((await request(`${server.url}/api/v1/query?query=1`, { method: 'DELETE' })).status, 405);
  const bad = await request(`${server.url}/api/v1/query?query=${encodeURIComponent('1 +')}`);
  assert.equal(bad.status, 400);
  assert.deepEqual(JSON.parse(bad.body), { status: 'error', errorType: 'bad_data', error: '1:4: unexpected end of query' });
});

test('quit over HTTP, and a prefix', async (t) => {
  const dir = scratch(t);
  const server = await startServer(t, { dir, config: 'scrape_configs: []\n', args: ['--web.enable-lifecycle', '--web.route-prefix=/epi/'] });
  assert.equal((await request(`${server.url}/-/healthy`)).status, 404);
  assert.equal((await request(`${server.url}/epi/-/healthy`)).status, 200);
  const root = await request(`${server.url}/`);
  assert.equal(root.status, 302);
  assert.equal(root.headers.location, '/epi/');
  assert.equal((await request(`${server.url}/epi`)).headers.location, '/epi/');
  assert.match((await request(`${server.url}/epi/`)).body.toString(), /<base href="\/epi\/">/);
  assert.equal((await request(`${server.url}/epi/-/quit`, { method: 'POST' })).status, 200);
  assert.equal((await programEnds(server)).code, 0);
});

test('it runs in an empty directory tree', async (t) => {
  const dir = scratch(t);
  copyFileSync(epimetheus, join(dir, 'epimetheus'));
  chmodSync(join(dir, 'epimetheus'), 0o755);
  mkdirSync(join(dir, 'data'), { mode: 0o777 });
  chmodSync(join(dir, 'data'), 0o777);
  chmodSync(dir, 0o755);
  assert.equal(process.getuid(), 0, 'this test needs root for chroot');
  const run = start(t, 'chroot', ['--userspec=65534:65534', dir, '/epimetheus', '--web.listen-address=127.0.0.1:0', '--storage.tsdb.path=/data']);
  const port = await until('ready', 20, () => {
    if (run.code !== undefined) throw new Error(run.err);
    return run.err.match(/msg=ready\b.*\bport=(\d+)/)?.[1];
  });
  const server = { url: `http://127.0.0.1:${port}` };
  const found = await until('a named profile of itself', 45, async () => {
    // Work to be seen in: an idle server has no CPU time to show.
    for (let i = 0; i < 200; i++) await request(`${server.url}/metrics`);
    const r = await query(server, 'merge(cpu[5m])');
    return r.result[0]?.flamebearer.names.some((n) => /query_run|router_handle|on_request|pool_worker/.test(n)) && r;
  });
  assert.ok(found.result[0].total > 0);
  assert.deepEqual(readdirSync(dir).sort(), ['data', 'epimetheus']);
  assert.equal((await run.stop()).code, 0);
});

test('epitool checks configurations as promtool does', async (t) => {
  const dir = scratch(t);
  const good = join(dir, 'good.yml'), bad = join(dir, 'bad.yml');
  writeFileSync(good, 'scrape_configs: [{job_name: a, static_configs: [{targets: ["x:1"]}]}]\n');
  writeFileSync(bad, 'scrape_configs: [{job_name: a}, {job_name: a}]\n');
  const ok = await finish(t, epitool, ['check', 'config', good]);
  assert.equal(ok.code, 0, ok.err);
  assert.match(ok.err, /^Checking .*good\.yml\n SUCCESS: /);
  const no = await finish(t, epitool, ['check', 'config', good, bad]);
  assert.equal(no.code, 1);
  assert.match(no.err, /FAILED: .*found multiple scrape configs with job name "a"/);
  assert.equal((await finish(t, epitool, ['check', 'nothing'])).code, 2);
  assert.equal((await finish(t, epitool, [])).code, 2);
});

test('epitool queries a server', async (t) => {
  const dir = scratch(t);
  const server = await startServer(t, { dir, config: 'scrape_configs: []\n' });
  const ask = (...args) => finish(t, epitool, ['query', `--server=${server.url}`, ...args]);
  const one = await ask('1 + 1');
  assert.equal(one.code, 0, one.err);
  assert.equal(one.out.trim(), '2');
  const bad = await ask('flat(1)');
  assert.equal(bad.code, 1);
  assert.match(bad.err, /1:6: flat\(\) needs profiles, got a scalar/);
  const file = join(dir, 'answer');
  assert.equal((await ask('-o', file, '1 + 2')).code, 0);
  assert.equal(readFileSync(file, 'utf8').trim(), '3');
  // What is no file is written to, not replaced.
  execFileSync('mkfifo', [join(dir, 'pipe')]);
  const reader = finish(t, 'cat', [join(dir, 'pipe')]);
  assert.equal((await ask('--output', join(dir, 'pipe'), '2 + 2')).code, 0);
  assert.equal((await reader).out.trim(), '4');
  assert.ok(statSync(join(dir, 'pipe')).isFIFO());
  const none = await ask('cpu');
  assert.equal(none.code, 0);
  assert.match(none.err, /nothing found/);
  assert.equal((await finish(t, epitool, ['query', '--server=http://127.0.0.1:1', '1'])).code, 1);
});
