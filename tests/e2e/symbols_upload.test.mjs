// Uploads of debug data: epitool, the protocol as Alloy speaks it, curl; what is refused, and what kill -9 leaves.
import test from 'node:test';
import assert from 'node:assert/strict';
import { closeSync, copyFileSync, openSync, readFileSync, readdirSync, writeSync, ftruncateSync } from 'node:fs';
import net from 'node:net';
import { certificates } from './certificates.mjs';
import { api, epitool, execFileSync, finish, join, request, scratch, startServer, until, writeFileSync } from './lib.mjs';

const config = 'scrape_configs: []\n';
const secretHash = '$2b$04$dmpZqExj/u8TGBoVsL10Z.nT5488xB4GECFwppKfqrg0hArqnCz/K'; // of "secret"
const source = `#include <cstdio>
#include <string>
#include <vector>
struct Shop {
  std::vector<std::string> names;
  void fill(int n) { for (int i = 0; i < n; i++) names.push_back(std::to_string(i)); }
};
int main() { Shop shop; shop.fill(1000); std::printf("%zu\\n", shop.names.size()); }
`;

/** A C++ program: whole, its debug data alone, and without. */
function compile(dir) {
  const path = (name) => join(dir, name);
  writeFileSync(path('shop.cc'), source);
  execFileSync('g++', ['-g', '-O2', '-Wl,--build-id=sha1', '-o', path('shop'), path('shop.cc')]);
  execFileSync('objcopy', ['--only-keep-debug', path('shop'), path('shop.debug')]);
  execFileSync('strip', ['-o', path('shop.stripped'), path('shop')]);
  const id = execFileSync('readelf', ['-n', path('shop')]).toString().match(/Build ID: ([0-9a-f]+)/)[1];
  return { id, shop: path('shop'), debug: path('shop.debug'), stripped: path('shop.stripped') };
}

/** A copy of an ELF file of this size and with another build id; the file has holes, not zeros. */
function enlarge(file, id, to, bytes, otherId) {
  copyFileSync(file, to);
  const content = readFileSync(file);
  const fd = openSync(to, 'r+');
  writeSync(fd, Buffer.from(otherId, 'hex'), 0, otherId.length / 2, content.indexOf(Buffer.from(id, 'hex')));
  ftruncateSync(fd, bytes);
  closeSync(fd);
}

const start = (t, dir, rest = {}) => startServer(t, { dir, config, args: ['--web.enable-ingest'], ...rest });
const upload = (t, server, ...args) => finish(t, epitool, ['debuginfo', 'upload', `--server=${server.url}`, ...args]);
const stored = (dir) => readdirSync(join(dir, 'data/debuginfo')).filter((name) => name !== 'stamps');

async function binary(server, id) {
  return (await api(server, 'symbols')).binaries.find((b) => b.id === id);
}

test('epitool sends what is missing, once, and waits for its names', async (t) => {
  const dir = scratch(t);
  const { id, shop, debug, stripped } = compile(dir);
  const server = await start(t, dir);

  const info = await finish(t, epitool, ['debuginfo', 'info', debug]);
  assert.equal(info.code, 0, info.err);
  assert.match(info.out, new RegExp(`gnu build id +${id}\n`));
  assert.match(info.out, /content +debug data without code\n/);
  assert.match(info.out, /\.debug_info: \d+ bytes\n/);

  let run = await upload(t, server, debug);
  assert.equal(run.code, 0, run.err);
  assert.match(run.out, new RegExp(`^${debug}: gnu ${id}: named by dwarf, [\\d.]+ KiB\n$`));
  const b = await binary(server, id);
  assert.deepEqual([b.kind, b.path, b.state, b.quality, b.content, b.origin, b.addresses],
    ['gnu', debug, 'named', 'dwarf', 'no_text', 'upload', 0]);
  assert.ok(b.indexBytes > 0 && b.sourceBytes > b.indexBytes);

  // Debug data alone do not say where the code lies. The binary does, and it keeps its name.
  run = await upload(t, server, shop);
  assert.match(run.out, new RegExp(`^${shop}: gnu ${id}: named by dwarf, [\\d.]+ KiB\n$`), run.err);
  assert.deepEqual([(await binary(server, id)).content, (await binary(server, id)).path], ['full', shop]);

  run = await upload(t, server, '--recursive', dir);
  assert.equal(run.code, 0, run.err);
  for (const file of [shop, debug, stripped]) {
    assert.ok(run.out.includes(`${file}: gnu ${id}: not sent: equally good symbols are stored (dwarf)\n`), run.out);
  }
  assert.match(run.out, /\n0 uploaded, 3 not sent, 0 failed, \d+ passed over\n$/);
  assert.deepEqual(stored(dir), [`gnu-${id}.idx`]);
});

test('better symbols replace worse ones, and a stripped file blocks nothing', async (t) => {
  const dir = scratch(t);
  const { id, shop } = compile(dir);
  const symbols = join(dir, 'symbols');
  execFileSync('strip', ['--strip-debug', '-o', symbols, shop]);
  const server = await start(t, dir);
  let run = await upload(t, server, symbols);
  assert.match(run.out, /: named by symbols, /, run.err);
  run = await upload(t, server, shop);
  assert.match(run.out, /: named by dwarf, /, run.err);
  assert.equal((await binary(server, id)).content, 'full');
});

test('files of one build that are sent together are all taken', async (t) => {
  const dir = scratch(t);
  const { id, debug, stripped } = compile(dir);
  const server = await start(t, dir);
  const run = await upload(t, server, debug, stripped);
  assert.equal(run.code, 0, run.err);
  assert.match(run.out, /\n2 uploaded, 0 not sent, 0 failed, 0 passed over\n$/);
  const { quality, content, path } = await binary(server, id);
  assert.deepEqual([quality, content, path], ['dwarf', 'full', stripped]);
});

test('what is as good is taken by force, and what is worse takes nothing away', async (t) => {
  const dir = scratch(t);
  const { id, shop, debug } = compile(dir);
  const symbols = join(dir, 'symbols');
  execFileSync('strip', ['--strip-debug', '-o', symbols, shop]);
  const server = await start(t, dir);
  let run = await upload(t, server, shop);
  const was = await binary(server, id);
  for (const file of [debug, symbols]) {
    run = await upload(t, server, file);
    assert.match(run.out, /: not sent: equally good symbols are stored \(dwarf\); --force sends it\n/, run.err);
    run = await upload(t, server, '--force', file);
    assert.equal(run.code, 0, run.err);
    assert.match(run.out, /: named by dwarf, /);
  }
  const now = await binary(server, id);
  assert.deepEqual([now.content, now.path, now.indexBytes], ['full', was.path, was.indexBytes]);
  const res = await request(`${server.url}/api/v1/symbols/upload?force=perhaps`, { method: 'POST', body: readFileSync(shop) });
  assert.equal(res.status, 400);
  assert.equal(JSON.parse(res.body).error, 'invalid parameter "force": must be "true" or "false"');
});

test('what cannot be taken is refused by name', async (t) => {
  const dir = scratch(t);
  const { id, shop, stripped } = compile(dir);
  const page = join(dir, 'page.html');
  writeFileSync(page, '<!DOCTYPE html><title>Not found</title>');
  const server = await start(t, dir);

  let run = await upload(t, server, page);
  assert.equal(run.code, 1);
  assert.equal(run.err, `epitool: error: ${page}: not an ELF file: it is an HTML page\n`);
  run = await upload(t, server, join(dir, 'nothing'), dir, shop);
  assert.equal(run.code, 1);
  assert.match(run.err, /nothing: No such file or directory\n.*: is a directory: use --recursive\n$/);
  assert.match(run.out, /: named by dwarf, .*\n1 uploaded, 0 not sent, 2 failed, 0 passed over\n$/);
  run = await upload(t, server, '--no-wait', stripped);
  assert.equal(run.code, 0, run.err);

  const put = (params, body) => request(`${server.url}/api/v1/symbols/upload?${new URLSearchParams(params)}`, { method: 'POST', body });
  let res = await put({ id: 'aa01' }, readFileSync(shop));
  assert.equal(res.status, 400);
  assert.equal(JSON.parse(res.body).error, `the file's build id is ${id}, not aa01`);
  res = await put({ name: 'page.html' }, readFileSync(page));
  assert.equal(res.status, 400);
  assert.equal(JSON.parse(res.body).error, 'not an ELF file: it is an HTML page');
  res = await put({}, readFileSync(shop));
  assert.equal(res.status, 409);
  assert.equal(JSON.parse(res.body).error, 'equally good symbols are stored');
  assert.deepEqual(stored(dir), [`gnu-${id}.idx`]);

  const closed = await startServer(t, { dir: scratch(t), config });
  run = await upload(t, closed, shop, stripped);
  assert.equal(run.code, 1);
  assert.match(run.err, /^epitool: error: .*shop: ingest is disabled: start with --web\.enable-ingest\n$/);
  assert.equal((await api(closed, 'symbols')).uploadEnabled, false);
});

/** A field of protobuf with bytes, or a number. */
const field = (n, v) => (typeof v === 'number' ? Buffer.from([n << 3, v]) :
  Buffer.concat([Buffer.from([(n << 3) | 2, v.length]), Buffer.from(v)]));

test("Alloy's three requests, in protobuf", async (t) => {
  const dir = scratch(t);
  const { id, shop } = compile(dir);
  const server = await start(t, dir);
  const post = (path, body, type = 'application/proto') => request(`${server.url}/debuginfo.v1alpha1.DebuginfoService/${path}`,
    { method: 'POST', headers: { 'content-type': type, 'connect-protocol-version': '1' }, body });
  const meta = Buffer.concat([field(1, id), field(3, 'e566a58732200f733e83cc8e65b1a871'), field(4, '/opt/shop'), field(5, 1)]);

  let res = await post(`Upload/${id}`, readFileSync(shop), 'application/octet-stream');
  assert.equal(res.status, 412);
  res = await post('ShouldInitiateUpload', field(1, meta));
  assert.equal(res.status, 200);
  assert.equal(res.headers['content-type'], 'application/proto');
  assert.deepEqual(res.body, Buffer.concat([field(1, 1), field(2, 'nothing is there')]));
  res = await post(`Upload/${id}`, readFileSync(shop), 'application/octet-stream');
  assert.equal(res.status, 200, res.body.toString());
  res = await post('UploadFinished', field(1, id));
  assert.equal(res.status, 200);
  assert.equal(res.body.length, 0);
  await until('its names', 30, async () => (await binary(server, id)).state === 'named');
  assert.equal((await binary(server, id)).path, '/opt/shop');
  res = await post('ShouldInitiateUpload', field(1, meta));
  assert.deepEqual(res.body, field(2, 'equally good symbols are stored'));
});

test('a big file is not held in memory', async (t) => {
  const dir = scratch(t);
  const { id, debug } = compile(dir);
  const big = join(dir, 'big');
  enlarge(debug, id, big, 300 << 20, 'aabbccdd');
  const server = await start(t, dir);
  const peak = (pid) => Number(readFileSync(`/proc/${pid}/status`, 'utf8').match(/VmHWM:\s+(\d+)/)[1]) / 1024;
  const run = await upload(t, server, big);
  assert.equal(run.code, 0, run.err);
  assert.match(run.out, /: named by dwarf, /);
  assert.equal((await binary(server, `aabbccdd${id.slice(8)}`)).sourceBytes, 300 << 20);
  t.diagnostic(`the server had ${peak(server.child.pid)} MiB`);
  assert.ok(peak(server.child.pid) < 120);
  const out = execFileSync('curl', ['-sS', '-T', big, '-X', 'POST', `${server.url}/api/v1/symbols/upload?id=0badcafe`]);
  assert.match(out.toString(), /the file's build id is aabbccdd/);
});

test('half an upload leaves nothing, whether its sender ends or the server', async (t) => {
  const dir = scratch(t);
  const { id, debug } = compile(dir);
  const big = join(dir, 'big');
  enlarge(debug, id, big, 64 << 20, 'aabbccdd');
  const bytes = readFileSync(big);
  for (const who of ['sender', 'server']) {
    const server = await start(t, dir);
    const socket = net.connect(server.port, '127.0.0.1');
    socket.on('error', () => {});
    socket.write(`POST /api/v1/symbols/upload?name=big HTTP/1.1\r\nHost: x\r\nContent-Length: ${bytes.length}\r\n\r\n`);
    socket.write(bytes.subarray(0, bytes.length - 100000));
    await until('most of it has come', 30, async () => (await binary(server, `aabbccdd${id.slice(8)}`))?.sourceBytes > 60 << 20);
    assert.equal((await binary(server, `aabbccdd${id.slice(8)}`)).state, 'uploading');
    assert.equal(stored(dir).filter((name) => name.endsWith('.tmp')).length, 1);
    if (who === 'server') await server.stop('SIGKILL');
    socket.destroy();
    const after = who === 'server' ? await start(t, dir) : server;
    await until('nothing is left', 10, () => stored(dir).length === 0);
    assert.deepEqual((await api(after, 'symbols')).binaries, []);
    const run = await upload(t, after, big); // the next attempt is a whole one
    assert.match(run.out, /: named by dwarf, /, run.err);
    await after.stop();
    execFileSync('rm', ['-r', join(dir, 'data/debuginfo')]);
  }
});

test('over TLS, with a password, and more at once than one address may', async (t) => {
  const dir = scratch(t);
  certificates(dir);
  const { id, debug } = compile(dir);
  writeFileSync(join(dir, 'web.yml'), `tls_server_config: {cert_file: server.pem, key_file: server.key}\nbasic_auth_users: {alice: "${secretHash}"}\n`);
  writeFileSync(join(dir, 'http.yml'), 'basic_auth: {username: alice, password: secret}\ntls_config: {ca_file: ca.pem}\n');
  const server = await startServer(t, { dir, config, scheme: 'https', args: ['--web.enable-ingest', '--web.config.file', join(dir, 'web.yml')] });
  const files = [...Array(6).keys()].map((i) => join(dir, `big${i}`));
  files.forEach((file, i) => enlarge(debug, id, file, 40 << 20, `aabbcc0${i}`));
  const runs = await Promise.all(files.map((file) => upload(t, server, '--http.config.file', join(dir, 'http.yml'), file)));
  for (const run of runs) assert.match(run.out, /: named by dwarf, /, run.err);
  assert.equal(stored(dir).length, 6);

  const run = await finish(t, 'curl', ['-sS', '--cacert', join(dir, 'ca.pem'), '-u', 'alice:wrong', '-T', files[0], '-X', 'POST',
    `${server.url}/api/v1/symbols/upload`]);
  assert.match(run.out, /Unauthorized/);
});
