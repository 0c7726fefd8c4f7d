// A disk that is full to the last byte, kill -9, and a start: the server serves what it has, says why it takes no more, and goes on by
// itself once retention, or a person, has made room. Needs root: the disk is a small tmpfs.
import test from 'node:test';
import assert from 'node:assert/strict';
import { closeSync, mkdirSync, openSync, rmSync, writeSync } from 'node:fs';
import { cpuProfile } from '../browser/pprof.mjs';
import { api, execFileSync, join, query, request, scratch, startServer, until } from './lib.mjs';

const NOTHING = 'scrape_configs: []\n';
const ARGS = ['--web.enable-ingest', '--storage.tsdb.window=10s', '--storage.tsdb.out-of-order-time-window=20s',
  '--storage.tsdb.free-reserve=4MiB'];
const DISK_MIB = 64, FUNCTIONS = 1000;

/** The same size at every time: what a program happens to do would decide how much retention has to take. */
function profile(time) {
  const functions = Array.from({ length: FUNCTIONS }, (_, i) => ({ name: `work${i}` }));
  let v = 1 + time % 1e9;
  const samples = functions.map((_, i) => ({ stack: [i], value: v = v * 48271 % (2 ** 31 - 1) })); // never 0: the modulus is prime
  return cpuProfile({ functions, samples });
}

/** Whatever is left is taken. */
function fill(path) {
  const fd = openSync(path, 'a');
  for (let bytes = 1 << 20; bytes >= 1; bytes >>= 1)
    for (;;)
      try {
        if (writeSync(fd, Buffer.alloc(bytes)) < bytes) break;
      } catch (e) {
        assert.equal(e.code, 'ENOSPC');
        break;
      }
  closeSync(fd);
}

/** A small disk at `dir`/data, which goes with the test. */
function smallDisk(t, options) {
  let data;
  t.after(() => data && execFileSync('umount', ['-l', data])); // before the directory is removed
  const dir = scratch(t);
  data = join(dir, 'data');
  mkdirSync(data);
  execFileSync('mount', ['-t', 'tmpfs', '-o', options, 'tmpfs', data]);
  return { dir, data };
}

/** What senders get in each form: the status, whether it says when to come again, and the error. */
async function pushes(server, time) {
  const body = profile(time);
  const v1 = { series: [{ labels: [{ name: '__name__', value: 'process_cpu' }, { name: 'service_name', value: 'shop' }],
    samples: [{ rawProfile: body.toString('base64'), ID: 'a' }] }] };
  const all = [];
  for (const [path, type, content] of [[`/api/v1/ingest?name=process_cpu&job=shop&time=${time}`, 'application/octet-stream', body],
    [`/ingest?name=shop&format=pprof&from=${time - 10}&until=${time}`, 'application/octet-stream', body],
    ['/push.v1.PusherService/Push', 'application/json', JSON.stringify(v1)]]) {
    const res = await request(server.url + path, { method: 'POST', headers: { 'Content-Type': type }, body: content });
    all.push([res.status, res.headers['retry-after'] !== undefined, res.body.toString()]);
  }
  return all;
}

async function allRefused(server, time, error) {
  for (const [status, retry, text] of await pushes(server, time)) {
    assert.deepEqual([status, retry], [503, true], text);
    assert.match(text, error);
  }
}

test('the first push on a full disk is refused as all others, whatever the reserve', async (t) => {
  const { dir, data } = smallDisk(t, 'size=24m');
  const now = Math.floor(Date.now() / 1000);
  fill(join(data, 'others'));
  const free = '[\\d.]+[KMGT]?i?B( and \\d+ inodes)? free in .*/data';
  let server = await startServer(t, { dir, config: NOTHING, args: ['--web.enable-ingest'] });
  await allRefused(server, now, /disk is full: [\d.]+[KMGT]?i?B free in .*\/data, reserve 256MiB \(--storage\.tsdb\.free-reserve\)/);
  const told = (await api(server, 'notifications')).map((n) => n.text);
  assert.equal(told.length, 1);
  assert.match(told[0], /^Profiles are refused: disk is full: [\d.]+[KMGT]?i?B free in .*\/data, reserve 256MiB \(--storage\.tsdb\.free-reserve\)\.$/);
  await server.stop();
  const args = ['--web.enable-ingest', '--storage.tsdb.free-reserve=0B'];
  server = await startServer(t, { dir, config: NOTHING, args });
  await allRefused(server, now, new RegExp(`disk is full: ${free}: `));
  rmSync(join(data, 'others'));
  await until('profiles are taken', 30, async () => (await pushes(server, now + 1))[0][0] === 200);
  // With a store on it the next start needs more than nothing, and says how much.
  fill(join(data, 'others'));
  await server.stop('SIGKILL');
  fill(join(data, 'others'));
  server = await startServer(t, { dir, config: NOTHING, args });
  assert.equal((await query(server, 'count(total(cpu[10m]))', { time: now + 5 })).result[0].value[1], '2');
  await allRefused(server, now + 2, /disk is full: [\d.]+[KMGT]?i?B free in .*\/data, 16MiB needed to open stores for writing again/);
});

test('a file system without inodes: the error names them, and what is stored is read', async (t) => {
  const { dir, data } = smallDisk(t, 'size=1g,nr_inodes=120');
  const now = Math.floor(Date.now() / 1000);
  const take = (name) => { // all inodes that are left
    mkdirSync(join(data, name));
    for (let i = 0; ; i++)
      try {
        closeSync(openSync(join(data, name, `${i}`), 'w'));
      } catch (e) {
        assert.equal(e.code, 'ENOSPC');
        return;
      }
  };
  take('others');
  let server = await startServer(t, { dir, config: NOTHING, args: ['--web.enable-ingest'], ready: false });
  await until('it ends', 30, () => server.code !== undefined);
  assert.equal(server.code, 1);
  assert.match(server.err, /open database .*\/data: disk is full: [\d.]+[KMGT]?i?B and 0 inodes free in .*\/data: create directory .*No space left/);
  rmSync(join(data, 'others'), { recursive: true });
  server = await startServer(t, { dir, config: NOTHING, args: ['--web.enable-ingest'] });
  assert.deepEqual((await pushes(server, now)).map(([status]) => status), [200, 200, 200]);
  await server.stop('SIGKILL');
  mkdirSync(join(data, 'more'));
  take('more/others');
  server = await startServer(t, { dir, config: NOTHING, args: ['--web.enable-ingest'] });
  await allRefused(server, now + 1, /disk is full: \d+ inodes free in .*\/data, 64 needed/);
  assert.equal((await query(server, 'count(total(cpu[10m]))', { time: now + 5 })).result[0].value[1], '2');
  assert.match((await api(server, 'status/tsdb')).reason, /inodes free/);
  rmSync(join(data, 'more'), { recursive: true });
  await until('profiles are taken', 30, async () => (await pushes(server, now + 2))[0][0] === 200);
});

test('a full disk: it starts after kill -9, answers, refuses, and recovers', async (t) => {
  const { dir, data } = smallDisk(t, `size=${DISK_MIB}m`);
  const push = (server, time) =>
    request(`${server.url}/api/v1/ingest?name=process_cpu&job=shop&time=${time}`, { method: 'POST', body: profile(time) });
  const stored = async (server) => (await api(server, 'status/tsdb')).blocks; // windows are those without a ULID
  const count = async (server) => (await query(server, 'merge(cpu{job="shop"}[10m])', { time: end + 5 })).result[0]?.profiles ?? 0;
  const now = Math.floor(Date.now() / 1000), end = now - now % 10;

  let server = await startServer(t, { dir, config: NOTHING, args: ARGS });
  for (let i = 59; i >= 0; i--)
    assert.equal((await push(server, end - i)).status, 200);
  await until('windows that take no more rows are blocks', 30, async () => (await stored(server)).filter((b) => !b.ulid).length === 3);
  fill(join(data, 'others'));
  for (let start = 0; start < 3; start++) {
    await server.stop('SIGKILL');
    fill(join(data, 'others')); // what it gave back since
    server = await startServer(t, { dir, config: NOTHING, args: ARGS });
    assert.equal((await request(`${server.url}/-/healthy`)).status, 200);
    assert.equal((await request(`${server.url}/-/ready`)).status, 200);
    assert.equal(await count(server), 60, `start ${start}`);
    const refused = await push(server, end + 1);
    assert.equal(refused.status, 503);
    assert.match(JSON.parse(refused.body).error, /^disk is full: [\d.]+[KMGT]?i?B free in .*\/data, reserve 4MiB \(--storage\.tsdb\.free-reserve\)$/);
    assert.ok(refused.headers['retry-after']);
    assert.match((await request(`${server.url}/metrics`)).body.toString(), /^epimetheus_tsdb_state 1$/m);
  }
  // Retention by size: nothing is written for it, and what it takes is gone for good. Blocks have to go, and windows; the
  // newest stays, also beside the one that is made later for one profile.
  const [older, newest] = (await stored(server)).slice(-2);
  assert.deepEqual([older, newest].map((w) => [w.ulid, w.numRows]), [['', 10], ['', 10]]);
  const limit = newest.bytes + Math.floor(older.bytes * 3 / 4);
  await server.stop('SIGKILL');
  const small = [...ARGS, `--storage.tsdb.retention.size=${limit}B`];
  server = await startServer(t, { dir, config: NOTHING, args: small });
  await until('retention took what is too much', 30, async () => (await count(server)) <= 10);
  assert.equal(await count(server), 10);
  // A person makes room: no restart is needed.
  rmSync(join(data, 'others'));
  await until('profiles are taken', 30, async () => (await push(server, end + 2)).status === 200);
  assert.equal(await count(server), 11);
  assert.ok((await stored(server)).reduce((sum, b) => sum + b.bytes, 0) <= limit); // nothing has to go again
  await server.stop('SIGKILL');
  server = await startServer(t, { dir, config: NOTHING, args: ARGS });
  assert.equal(await count(server), 11);
  const res = await request(`${server.url}/api/v1/query?${new URLSearchParams({ query: 'total(cpu[10m])', time: end + 5 })}`);
  assert.equal(JSON.parse(res.body).warnings, undefined, res.body.toString());
});
