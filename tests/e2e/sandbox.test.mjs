// The rights that a running server has given up, as the kernel tells of them and as they are felt.
import test from 'node:test';
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, readdirSync, symlinkSync } from 'node:fs';
import { build, join, request, scratch, start, startServer, until } from './lib.mjs';

/** What /proc says of each thread, each different answer once. */
function rights(pid) {
  const all = readdirSync(`/proc/${pid}/task`).map((tid) => readFileSync(`/proc/${pid}/task/${tid}/status`, 'utf8'));
  return [...new Set(all.map((s) => `${s.match(/NoNewPrivs:\t\d/)[0]} ${s.match(/Seccomp:\t\d/)[0]}`.replaceAll('\t', ' ')))];
}

async function inForce(server) {
  const text = (await request(`${server.url}/metrics`)).body.toString();
  return Object.fromEntries([...text.matchAll(/^epimetheus_sandbox_in_force\{part="(\w+)"\} (\d)/gm)].map((m) => [m[1], m[2]]));
}

const config = 'scrape_configs: []\n';

test('every thread is limited when the server is ready', async (t) => {
  const server = await startServer(t, { dir: scratch(t), config });
  assert.deepEqual(rights(server.child.pid), ['NoNewPrivs: 1 Seccomp: 2']);
  assert.deepEqual(await inForce(server), { capabilities: '1', files: '1', system_calls: '1' });
});

test('a flag switches it off', async (t) => {
  const server = await startServer(t, { dir: scratch(t), config, args: ['--no-security.sandbox'] });
  assert.deepEqual(rights(server.child.pid), rights(process.pid));
  assert.deepEqual(await inForce(server), { capabilities: '0', files: '0', system_calls: '0' });
});

test('what lies outside the data directory is not written', async (t) => {
  const dir = scratch(t);
  mkdirSync(join(dir, 'data'));
  mkdirSync(join(dir, 'elsewhere'));
  symlinkSync('../elsewhere', join(dir, 'data/snapshots'));
  const server = await startServer(t, { dir, config, args: ['--web.enable-admin-api'] });
  const answer = await request(`${server.url}/api/v1/admin/tsdb/snapshot`, { method: 'POST' });
  assert.match(answer.body.toString(), /Permission denied/);
  assert.deepEqual(readdirSync(join(dir, 'elsewhere')), []);
  assert.equal((await request(`${server.url}/-/healthy`)).status, 200);
});

test('a container that refuses is told of in the log, and the server goes on', async (t) => {
  const dir = scratch(t);
  const run = start(t, join(build, 'tests/e2e/refuse_limits'), [join(build, 'epimetheus'),
    '--web.listen-address=127.0.0.1:0', '--storage.tsdb.path=data'], { cwd: dir });
  const port = await until('ready', 20, () => run.err.match(/msg=ready\b.*\bport=(\d+)/)?.[1]);
  if (process.getuid() === 0)
    assert.match(run.err, /level=warn component=sandbox msg="capabilities are not dropped" err="capset: Operation not permitted"/);
  assert.match(run.err, /level=warn component=sandbox msg="files are not limited" err="landlock: version: Operation not permitted"/);
  assert.match(run.err, /level=warn component=sandbox msg="system calls are not limited" err="seccomp: Operation not permitted"/);
  assert.deepEqual(await inForce({ url: `http://127.0.0.1:${port}` }), { capabilities: process.getuid() === 0 ? '0' : '1', files: '0', system_calls: '0' });
  assert.equal((await run.stop()).code, 0);
});
