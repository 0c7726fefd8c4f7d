// Debug data comes to the server: from Debian's debuginfod, from local directories that a reload adds, from servers that
// misbehave. Profiles with addresses alone make a build id wanted.
import test from 'node:test';
import assert from 'node:assert/strict';
import http from 'node:http';
import { mkdirSync, readFileSync, readdirSync, statSync } from 'node:fs';
import { api, debian, epitool, execFileSync, existsSync, finish, join, request, scratch, start, startServer, until, writeFileSync } from './lib.mjs';
import { varint } from './otlp_requests.mjs';
import * as programs from './split_programs.mjs';

const source = (n) => `
__attribute__((noinline)) int work_${n}(int a) { volatile int x = a; for (int i = 0; i < a; i++) x += i * ${n}; return x; }
int main(int argc, char **argv) { return work_${n}(argc) & 1; }
`;

/** A program with debug data, and its build id. */
function buildProgram(dir, name) {
  mkdirSync(dir, { recursive: true });
  const file = join(dir, name);
  writeFileSync(`${file}.c`, source(name.length));
  execFileSync('gcc', ['-O2', '-g', '-Wl,--build-id=sha1', '-o', file, `${file}.c`], { stdio: 'pipe' });
  const id = execFileSync('readelf', ['-n', file]).toString().match(/Build ID: ([0-9a-f]+)/)[1];
  return { file, id };
}

/** A CPU profile of one sample whose one address has no name. */
function profile(path, id) {
  const field = (n, bytes) => [...varint(n * 8 + 2), ...varint(bytes.length), ...bytes];
  const number = (n, v) => [...varint(n * 8), ...varint(v)];
  const strings = ['', 'cpu', 'nanoseconds', path, id];
  return Buffer.from([
    ...field(1, [...number(1, 1), ...number(2, 2)]),
    ...field(2, [...field(1, varint(1)), ...field(2, varint(10000000))]),
    ...field(3, [...number(1, 1), ...number(2, 0x400000), ...number(3, 0x500000), ...number(5, 3), ...number(6, 4)]),
    ...field(4, [...number(1, 1), ...number(2, 1), ...number(3, 0x401136)]),
    ...strings.flatMap((s) => field(6, [...Buffer.from(s)])),
    ...field(11, [...number(1, 1), ...number(2, 2)]),
    ...number(12, 10000000),
  ]);
}

async function push(server, path, id) {
  const res = await request(`${server.url}/api/v1/ingest?name=process_cpu&job=native`, { method: 'POST', body: profile(path, id) });
  assert.equal(res.status, 200, res.body.toString());
}

const hasIndex = (dir, id) => existsSync(join(dir, `data/debuginfo/gnu-${id}.idx`));
const leftovers = (dir) => readdirSync(join(dir, 'data/debuginfo')).filter((name) => /\.(tmp|queued)$/.test(name));

async function metric(server, name) {
  const text = (await request(`${server.url}/metrics`)).body.toString();
  return Number(text.split('\n').find((line) => line.startsWith(`${name} `))?.split(' ')[1] ?? 0);
}

const lines = (server, what) => server.err.split('\n').filter((line) => line.includes(`msg="${what}"`));

/** Debian's debuginfod serves a directory, once it has found the file with this build id there. */
async function startDebuginfod(t, dir, files, id) {
  const bin = debian('debuginfod', 'libraries');
  const lib = execFileSync('sh', ['-c', 'echo "$1"/../lib/*-linux-gnu', 'sh', bin]).toString().trim();
  for (let attempt = 0; attempt < 5; attempt++) {
    const port = 20000 + Math.floor(Math.random() * 12000);
    const run = start(t, join(bin, 'debuginfod'), ['-F', '-p', `${port}`, '-d', join(dir, 'debuginfod.sqlite'), '-t', '0', '-g', '0', files],
      { cwd: dir, env: { ...process.env, LD_LIBRARY_PATH: lib, DEBUGINFOD_URLS: '', DEBUGINFOD_CACHE_PATH: join(dir, 'cache') } });
    run.url = `http://127.0.0.1:${port}`;
    const ready = await until('debuginfod is ready', 30, async () => {
      if (run.code !== undefined) return 'ended';
      return (await request(`${run.url}/buildid/${id}/debuginfo`)).status === 200 && 'ready';
    });
    if (ready === 'ready') return run;
    if (!/in use/.test(run.err)) throw new Error(run.err);
  }
  throw new Error('no free port');
}

async function debianServes(t) {
  const dir = scratch(t);
  const { file, id } = buildProgram(join(dir, 'files'), 'served');
  const debuginfod = await startDebuginfod(t, dir, join(dir, 'files'), id);
  const server = await startServer(t, { dir, args: ['--web.enable-ingest'],
    config: `debuginfod: [{url: "${debuginfod.url}/", source: true, http_headers: {X-Team: {secrets: [geheim]}}}]\n` });
  await push(server, '/opt/unknown', '00000000000000000000000000000000000000ff');
  await push(server, '/opt/served', id);
  await until('an index', 60, () => hasIndex(dir, id));
  await until('the other is missing', 60, async () => (await metric(server, 'epimetheus_debuginfod_requests_total{result="not_there"}')) === 2);
  await until('it is counted', 10, async () => (await metric(server, 'epimetheus_debuginfod_requests_total{result="got"}')) === 1);
  assert.ok((await metric(server, 'epimetheus_debuginfod_bytes_total')) > 5000);
  await until('the log', 10, () => lines(server, 'symbols extracted').length === 1); // behind the index
  assert.match(lines(server, 'symbols extracted')[0], /from=debuginfod quality=dwarf/);
  assert.doesNotMatch(server.err, /level=(warn|error)/);
  const config = (await api(server, 'status/config')).yaml;
  assert.match(config, /debuginfod:/);
  assert.doesNotMatch(config, /geheim/);
  // The code of the same build.
  const asked = new URLSearchParams({ build_id: id, path: `${file}.c`, binary: '/opt/served' });
  const code = await api(server, `source?${asked}`);
  assert.equal(code.text, readFileSync(`${file}.c`).toString());
  assert.match(code.server, /^http:\/\/127\.0\.0\.1:/);
  asked.set('path', '/gone.c');
  const gone = await request(`${server.url}/api/v1/source?${asked}`);
  assert.equal(gone.status, 404);
  assert.equal(JSON.parse(gone.body).error, 'no debuginfod server has the file');
}

/** dwz took inlined calls out of the program, to a file that the server is asked for too. */
async function commonFile(t) {
  const dir = scratch(t), files = join(dir, 'files'), id = 'aabb00000000000a';
  programs.compile(files, 'gcc -gdwarf-4');
  const file = programs.link(files, 'first', id);
  programs.link(files, 'second', 'aabb00000000000b');
  const frames = programs.framesOfWhole(join(dir, 'whole'), 'gcc -gdwarf-4', file);
  programs.run(files, 'rm *.o; printf x >>second; dwz -m common.debug first second');
  const common = programs.run(files, 'readelf -n common.debug').match(/Build ID: ([0-9a-f]+)/)[1];
  const debuginfod = await startDebuginfod(t, dir, files, id);
  await until('the common file', 30, async () => (await request(`${debuginfod.url}/buildid/${common}/debuginfo`)).status === 200);
  const server = await startServer(t, { dir, args: ['--web.enable-ingest'], config: `debuginfod: [{url: "${debuginfod.url}"}]\n` });
  await programs.push(server, 'first', '/opt/first', id, frames);
  await until('an index', 60, () => hasIndex(dir, id));
  assert.equal(await metric(server, 'epimetheus_debuginfod_common_files_total{result="got"}'), 1);
  assert.equal(await metric(server, 'epimetheus_debuginfod_bytes_total'), statSync(file).size + statSync(join(files, 'common.debug')).size);
  assert.doesNotMatch(server.err, /level=(warn|error)/);
  assert.deepEqual(await programs.stacksOf(server, 'first'), programs.counted(frames));
}

async function tooLarge(t) {
  const dir = scratch(t);
  const { id } = buildProgram(join(dir, 'files'), 'large');
  const debuginfod = await startDebuginfod(t, dir, join(dir, 'files'), id);
  const server = await startServer(t, { dir, args: ['--web.enable-ingest'], config: `debuginfod: [{url: "${debuginfod.url}", max_size: 1KB}]\n` });
  await push(server, '/opt/large', id);
  await until('the limit', 60, () => /the file is more than 1024 bytes \(max_size\)/.test(server.err));
  assert.equal(await metric(server, 'epimetheus_debuginfod_bytes_total'), 0); // it is told the limit
  assert.deepEqual(leftovers(dir), []);
}

async function directories(t) {
  const dir = scratch(t);
  const { file, id } = buildProgram(join(dir, 'files'), 'local');
  const image = buildProgram(join(dir, 'files'), 'image');
  const debug = join(dir, 'debug/.build-id', id.slice(0, 2));
  mkdirSync(debug, { recursive: true });
  execFileSync('objcopy', ['--only-keep-debug', file, join(debug, `${id.slice(2)}.debug`)]);
  mkdirSync(join(dir, 'debug/opt/bin'), { recursive: true });
  execFileSync('cp', [image.file, join(dir, 'debug/opt/bin/image')]);
  const server = await startServer(t, { dir, args: ['--web.enable-ingest'], config: 'debug_directories: [nowhere]\n' });
  assert.equal(lines(server, 'debug directory cannot be read').length, 1);
  writeFileSync(join(dir, 'epimetheus.yml'), 'debug_directories: [nowhere, debug]\n');
  const checked = await finish(t, epitool, ['check', 'config', join(dir, 'epimetheus.yml')]);
  assert.equal(checked.code, 1);
  assert.match(checked.out + checked.err, /debug directory .*nowhere: No such file or directory/);
  writeFileSync(join(dir, 'epimetheus.yml'), 'debug_directories: [debug]\n');
  assert.equal((await finish(t, epitool, ['check', 'config', join(dir, 'epimetheus.yml')])).code, 0);
  server.child.kill('SIGHUP');
  await until('reloaded', 20, () => lines(server, 'configuration in force').length === 2);
  await push(server, '/opt/local', id);
  await push(server, '/opt/bin/image', image.id);
  await until('indexes', 60, () => hasIndex(dir, id) && hasIndex(dir, image.id));
  await until('the log', 10, () => lines(server, 'symbols extracted').length === 2);
  for (const line of lines(server, 'symbols extracted')) assert.match(line, /from=directory quality=dwarf/);
}

/** A server that gives these answers, then 404. */
async function startFake(t, answers) {
  const asked = [];
  const fake = http.createServer((req, res) => {
    asked.push(req.url);
    const answer = answers.shift();
    if (answer) answer(res);
    else res.writeHead(404).end();
  });
  await new Promise((done) => fake.listen(0, '127.0.0.1', done));
  t.after(() => { fake.closeAllConnections(); fake.close(); });
  return { url: `http://127.0.0.1:${fake.address().port}`, asked };
}

async function busy(t) {
  const dir = scratch(t);
  const { file, id } = buildProgram(join(dir, 'files'), 'moved');
  const fake = await startFake(t, [
    (res) => res.writeHead(503, { 'Retry-After': '1' }).end('busy'),
    (res) => res.writeHead(302, { Location: '/moved' }).end(),
    (res) => res.writeHead(200).end(readFileSync(file)),
  ]);
  const server = await startServer(t, { dir, args: ['--web.enable-ingest'], config: `debuginfod: [{url: "${fake.url}/path"}]\n` });
  await push(server, '/opt/moved', id);
  await until('an index', 60, () => hasIndex(dir, id));
  const path = `/path/buildid/${id}/debuginfo`;
  assert.deepEqual(fake.asked, [path, path, '/moved', `/path/buildid/${id}/section/.gnu_debugaltlink`]);
  await until('it works again', 10, () => lines(server, 'server works again').length === 1);
  assert.equal(lines(server, 'server fails, it is asked again later').length, 1);
  await until('it is counted', 10, async () => (await metric(server, 'epimetheus_debuginfod_servers_failing')) === 0);
}

async function page(t) {
  const dir = scratch(t);
  const fake = await startFake(t, [(res) => res.writeHead(200, { 'Content-Type': 'text/html' }).end('<!DOCTYPE html><p>Sign in')]);
  const server = await startServer(t, { dir, args: ['--web.enable-ingest'], config: `debuginfod: [{url: "${fake.url}"}]\n` });
  await push(server, '/opt/page', 'aa00000000000000000000000000000000000001');
  await until('refused', 60, () => lines(server, 'no symbols extracted').length === 1);
  assert.match(lines(server, 'no symbols extracted')[0], /not an ELF file/);
  assert.deepEqual(fake.asked, ['/buildid/aa00000000000000000000000000000000000001/debuginfo']);
}

async function stall(t) {
  const dir = scratch(t);
  const { file, id } = buildProgram(join(dir, 'files'), 'stalled');
  const fake = await startFake(t, [(res) => { res.writeHead(200, { 'Content-Length': '1000000' }); res.write(readFileSync(file)); }]);
  const server = await startServer(t, { dir, args: ['--web.enable-ingest'], config: `debuginfod: [{url: "${fake.url}", timeout: 1h}]\n` });
  await push(server, '/opt/stalled', id);
  await until('a download', 60, () => leftovers(dir).length === 1);
  const ended = await server.stop();
  assert.equal(ended.code, 0, server.err);
  assert.deepEqual(leftovers(dir), []);
}

// What profiles name is looked at twice a minute, so all wait together.
test('debug data comes', { concurrency: 8 }, async (t) => {
  await Promise.all([
    t.test("from Debian's debuginfod", debianServes),
    t.test("from Debian's debuginfod, with the common file of dwz", commonFile),
    t.test('not where a file is too large', tooLarge),
    t.test('from directories that a reload adds, under the sandbox', directories),
    t.test('from a server that was busy, by its redirect', busy),
    t.test('not from a page that says 200: its extraction refuses it', page),
    t.test('no more when the server ends in the middle of a download', stall),
  ]);
});
