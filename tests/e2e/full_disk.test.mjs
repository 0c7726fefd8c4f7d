// A disk that is full to the last byte, kill -9, and a start: the server serves what it has, says why it takes no more, and goes on by
// itself once retention, or a person, has made room. Needs root: the disk is a small tmpfs.
import test from 'node:test';
import assert from 'node:assert/strict';
import { closeSync, mkdirSync, openSync, rmSync, writeSync } from 'node:fs';
import { execFileSync, join, query, request, scratch, startDemo, startServer, until } from './lib.mjs';

const NOTHING = 'scrape_configs: []\n';
const ARGS = ['--web.enable-ingest', '--storage.tsdb.window=10s', '--storage.tsdb.out-of-order-time-window=20s',
  '--storage.tsdb.free-reserve=4MiB'];
const DISK_MIB = 64;

/** Whatever is left is taken. */
function fill(path) {
  const fd = openSync(path, 'w');
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

test('a full disk: it starts after kill -9, answers, refuses, and recovers', async (t) => {
  let data;
  t.after(() => data && execFileSync('umount', ['-l', data])); // before the directory is removed
  const dir = scratch(t);
  data = join(dir, 'data');
  mkdirSync(data);
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${DISK_MIB}m`, 'tmpfs', data]);
  const demo = await startDemo(t, 'v1', 'none', 60);
  const body = (await request(`http://${demo.address}/debug/pprof/profile?seconds=1`)).body;
  const push = (server, time) =>
    request(`${server.url}/api/v1/ingest?name=process_cpu&job=shop&time=${time}`, { method: 'POST', body });
  const count = async (server) => (await query(server, 'merge(cpu{job="shop"}[10m])', { time: end + 5 })).result[0]?.profiles ?? 0;
  const now = Math.floor(Date.now() / 1000), end = now - now % 10;

  let server = await startServer(t, { dir, config: NOTHING, args: ARGS });
  for (let i = 59; i >= 0; i--)
    assert.equal((await push(server, end - i)).status, 200);
  fill(join(data, 'others'));
  for (let start = 0; start < 3; start++) {
    await server.stop('SIGKILL');
    server = await startServer(t, { dir, config: NOTHING, args: ARGS });
    assert.equal((await request(`${server.url}/-/healthy`)).status, 200);
    assert.equal((await request(`${server.url}/-/ready`)).status, 200);
    assert.equal(await count(server), 60, `start ${start}`);
    const refused = await push(server, end + 1);
    assert.equal(refused.status, 503);
    assert.match(JSON.parse(refused.body).error, /^disk is full: \d+ bytes free in .*\/data, reserve 4194304$/);
    assert.match((await request(`${server.url}/metrics`)).body.toString(), /^epimetheus_tsdb_state 1$/m);
  }
  // Retention by size: nothing is written for it, and what it takes is gone for good.
  await server.stop('SIGKILL');
  const small = [...ARGS, '--storage.tsdb.retention.size=100KB'];
  server = await startServer(t, { dir, config: NOTHING, args: small });
  await until('retention took something', 30, async () => (await count(server)) < 60);
  const kept = await until('it stands still', 30, async () => {
    const n = await count(server);
    await new Promise((done) => setTimeout(done, 1500));
    return n === await count(server) && n;
  });
  assert.ok(kept > 0 && kept < 60, `${kept} profiles`);
  // A person makes room: no restart is needed.
  rmSync(join(data, 'others'));
  await until('profiles are taken', 30, async () => (await push(server, end + 2)).status === 200);
  assert.equal(await count(server), kept + 1);
  await server.stop('SIGKILL');
  server = await startServer(t, { dir, config: NOTHING, args: ARGS });
  assert.equal(await count(server), kept + 1);
  const res = await request(`${server.url}/api/v1/query?${new URLSearchParams({ query: 'total(cpu[10m])', time: end + 5 })}`);
  assert.equal(JSON.parse(res.body).warnings, undefined, res.body.toString());
});
