// The server as root, and as a user with some of root's rights: which capabilities stay, and who may read its files.
import test from 'node:test';
import assert from 'node:assert/strict';
import { createServer } from 'node:net';
import { chmodSync, chownSync, copyFileSync, lstatSync, mkdirSync, readFileSync, readdirSync, readlinkSync, writeFileSync } from 'node:fs';
import { api, build, epimetheus, epitool, finish, join, query, request, root, scratch, start, until } from './lib.mjs';

const IS_ROOT = process.getuid() === 0;
const asRoot = { skip: IS_ROOT ? false : 'this test starts the server as root' };
const OTHER = 1000;
const DAC_OVERRIDE = 1 << 1, DAC_READ_SEARCH = 1 << 2;
const SETS = ['CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb'];
const ARGS = ['--web.enable-ingest', '--web.enable-admin-api', '--web.enable-lifecycle', '--storage.tsdb.window=10s',
  '--storage.tsdb.out-of-order-time-window=10s'];
const body = readFileSync(join(root, 'tests/proto/testdata/go_heap.pb.gz'));

/** Sets of capabilities of all threads of a process, each different one once. */
function capabilities(pid) {
  const all = readdirSync(`/proc/${pid}/task`).map((tid) => {
    const text = readFileSync(`/proc/${pid}/task/${tid}/status`, 'utf8');
    return SETS.map((name) => `${name} ${text.match(new RegExp(`^${name}:\t0*([0-9a-f]+)$`, 'm'))[1]}`).join(', ');
  });
  return [...new Set(all)];
}

const only = (set, bounding = '0') => [`CapInh 0, CapPrm ${set.toString(16)}, CapEff ${set.toString(16)}, CapBnd ${bounding}, CapAmb 0`];

const bounding = (pid) => readFileSync(`/proc/${pid}/status`, 'utf8').match(/^CapBnd:\t0*([0-9a-f]+)$/m)[1];

/** The other processes of a server's program, which read debug data; `place` gives each server a program of its own. */
function children(server) {
  return readdirSync('/proc').filter((name) => /^\d+$/.test(name) && name !== String(server.pid)).filter((name) => {
    try {
      return readlinkSync(`/proc/${name}/exe`) === server.program;
    } catch { return false; } // it has ended
  });
}

/** A directory that everybody may enter, with the server's program in it. */
function place(t) {
  const dir = scratch(t);
  chmodSync(dir, 0o755);
  copyFileSync(epimetheus, join(dir, 'epimetheus'));
  chmodSync(join(dir, 'epimetheus'), 0o755);
  return dir;
}

/** Starts the server in `cwd`; `by`: a program with arguments that starts it. */
async function serve(t, { cwd, by = [], port = 0, args = [], program, ...options }) {
  if (!program) program = join(cwd, 'epimetheus');
  const [first, ...rest] = [...by, program, `--web.listen-address=127.0.0.1:${port}`, ...args];
  const run = start(t, first, rest, { cwd, ...options });
  run.port = await until('ready', 20, () => {
    if (run.code !== undefined) throw new Error(`server ended with ${run.code}: ${run.err}`);
    return run.err.match(/msg=ready\b.*\bport=(\d+)/)?.[1];
  });
  run.url = `http://127.0.0.1:${run.port}`;
  run.pid = run.child.pid;
  run.program = program;
  return run;
}

async function push(server, ...times) {
  for (const time of times) {
    const res = await request(`${server.url}/api/v1/ingest?name=memory&job=a&time=${time}`, { method: 'POST', body });
    assert.equal(res.status, 200, res.body.toString());
  }
}

const stored = async (server) => (await query(server, 'merge(memory[10d])', { time: Date.now() / 1000 + 86400 })).result[0]?.profiles ?? 0;
const post = (server, path) => request(server.url + path, { method: 'POST' });
const cut = (server) => until('a block is cut', 30, async () => (await api(server, 'status/tsdb')).numBlocks >= 1);
const now = () => Math.floor(Date.now() / 1000);

/** A port below 1024 that nobody has. */
async function lowPort() {
  for (let port = 700; port < 1024; port++) {
    const free = await new Promise((done) => {
      const s = createServer().once('error', () => done(false));
      s.listen(port, '127.0.0.1', () => s.close(() => done(true)));
    });
    if (free) return port;
  }
  throw new Error('all ports below 1024 are in use');
}

/** Paths below a directory, and it, whose mode is another than `file` and `dir` say; and how many there are. */
function unlike(top, want) {
  const found = [];
  let n = 0;
  const look = (path) => {
    const st = lstatSync(path), mode = (st.mode & 0o7777).toString(8);
    n++;
    if (mode !== (st.isDirectory() ? want.dir : want.file)) found.push(`${path} ${mode}`);
    if (st.isDirectory()) for (const name of readdirSync(path)) look(join(path, name));
  };
  look(top);
  return { found, n };
}

test('root keeps the right to read, in no thread and no child any other', asRoot, async (t) => {
  const cwd = place(t), port = await lowPort();
  writeFileSync(join(cwd, 'epimetheus.yml'), 'scrape_configs: []\n', { mode: 0o600 });
  const server = await serve(t, { cwd, port, args: ARGS });
  assert.equal(Number(server.port), port);
  assert.deepEqual(capabilities(server.pid), only(DAC_READ_SEARCH));
  assert.match(server.err, /level=info component=sandbox msg="capabilities dropped" kept=dac_read_search\n/);
  assert.match((await request(`${server.url}/metrics`)).body.toString(), /^epimetheus_sandbox_in_force\{part="capabilities"\} 1$/m);
  const own = children(server);
  assert.ok(own.length >= 2, 'it has children that read debug data');
  for (const pid of own) assert.deepEqual(capabilities(pid), only(0));
  // A file that another user alone may read.
  chownSync(join(cwd, 'epimetheus.yml'), OTHER, OTHER);
  assert.equal((await post(server, '/-/reload')).status, 200);
  assert.equal((await server.stop()).code, 0);
});

test('others may not read what the server writes', asRoot, async (t) => {
  const cwd = place(t);
  writeFileSync(join(cwd, 'epimetheus.yml'), 'scrape_configs: []\n');
  const args = [...ARGS, '--web.enable-files'];
  const server = await serve(t, { cwd, args });
  await push(server, now() - 40, now() - 30, now() - 1);
  await cut(server);
  await push(server, now());
  assert.equal((await post(server, '/api/v1/admin/tsdb/snapshot')).status, 200);
  assert.equal((await request(`${server.url}/api/v1/files?name=x.folded`, { method: 'POST', body: 'main;f 30\n' })).status, 200);
  const sent = await finish(t, epitool, ['debuginfo', 'upload', `--server=${server.url}`, join(build, 'tests/e2e/refuse_limits')]);
  assert.equal(sent.code, 0, sent.err);
  await until('its symbols are extracted', 60, async () =>
    /^epimetheus_symbols_indexes 1$/m.test((await request(`${server.url}/metrics`)).body.toString()));
  const { found, n } = unlike(join(cwd, 'data'), { file: '640', dir: '750' });
  assert.deepEqual(found, []);
  assert.ok(n > 20, `${n} files and directories`);
  await server.stop('SIGKILL');
  const again = await serve(t, { cwd, args });
  assert.equal(await stored(again), 4);
  assert.equal((await again.stop()).code, 0);
  const repaired = await finish(t, epitool, ['tsdb', 'repair', join(cwd, 'data')]);
  assert.equal(repaired.code, 0, repaired.err);
  assert.deepEqual(unlike(join(cwd, 'data'), { file: '640', dir: '750' }).found, []);
});

test('a stricter umask stays', asRoot, async (t) => {
  const cwd = place(t);
  const server = await serve(t, { cwd, by: ['sh', '-c', 'umask 077; exec "$0" "$@"'], args: ARGS });
  await push(server, now());
  assert.deepEqual(unlike(join(cwd, 'data'), { file: '600', dir: '700' }).found, []);
});

test('root in a checkout of another user', asRoot, async (t) => {
  const top = place(t), cwd = join(top, 'checkout'), program = join(top, 'epimetheus');
  mkdirSync(cwd, { mode: 0o700 });
  writeFileSync(join(cwd, 'epimetheus.yml'), 'scrape_configs: []\n', { mode: 0o600 });
  chownSync(cwd, OTHER, OTHER);
  chownSync(join(cwd, 'epimetheus.yml'), OTHER, OTHER);
  const data = `--storage.tsdb.path=${join(cwd, 'data')}`;
  const args = [...ARGS, data];

  // Root's own data in it.
  let server = await serve(t, { cwd, program, args: [...ARGS, `--storage.tsdb.path=${join(cwd, 'roots')}`] });
  await push(server, now());
  assert.deepEqual(capabilities(server.pid), only(DAC_READ_SEARCH));
  assert.equal((await server.stop()).code, 0);

  // Data of that user: a right more, to go on with them.
  server = await serve(t, { cwd, program, args, uid: OTHER, gid: OTHER });
  await push(server, now() - 40, now() - 30, now() - 1);
  await cut(server);
  await push(server, now());
  assert.deepEqual(capabilities(server.pid), only(0, bounding(server.pid)));
  assert.equal((await server.stop()).code, 0);
  server = await serve(t, { cwd, program, args });
  assert.deepEqual(capabilities(server.pid), only(DAC_OVERRIDE));
  assert.match(server.err, /msg="capabilities dropped" kept=dac_override\n/);
  await push(server, now() + 1);
  assert.equal((await post(server, '/api/v1/admin/tsdb/snapshot')).status, 200);
  assert.equal((await post(server, '/-/reload')).status, 200);
  const gone = await post(server, '/api/v1/admin/tsdb/delete_series?match[]=memory');
  assert.ok(gone.status < 300, gone.body.toString());
  await push(server, now() + 2);
  assert.equal(await stored(server), 1);
  assert.equal((await server.stop()).code, 0);
  assert.doesNotMatch(server.err, /denied|not permitted/);
});

test('a user with the right to a port below 1024 gives it up', asRoot, async (t) => {
  const cwd = place(t), port = await lowPort();
  mkdirSync(join(cwd, 'data'));
  chownSync(join(cwd, 'data'), OTHER, OTHER);
  const by = ['setpriv', `--reuid=${OTHER}`, `--regid=${OTHER}`, '--clear-groups', '--inh-caps=+net_bind_service',
    '--ambient-caps=+net_bind_service'];
  const server = await serve(t, { cwd, by, port, args: ARGS });
  assert.equal(Number(server.port), port);
  await push(server, now());
  assert.deepEqual(capabilities(server.pid), only(0, bounding(server.pid)));
  assert.match(server.err, /msg="capabilities dropped" kept=none\n/);
  for (const pid of children(server)) assert.deepEqual(capabilities(pid), only(0, bounding(server.pid)));
});

test('a user without rights drops none', asRoot, async (t) => {
  const cwd = place(t);
  mkdirSync(join(cwd, 'data'));
  chownSync(join(cwd, 'data'), OTHER, OTHER);
  const server = await serve(t, { cwd, args: ARGS, uid: OTHER, gid: OTHER });
  await push(server, now());
  assert.deepEqual(capabilities(server.pid), only(0, bounding(server.pid)));
  assert.doesNotMatch(server.err, /capabilities/);
});

test('root of a container, which has few capabilities', asRoot, async (t) => {
  const cwd = place(t);
  writeFileSync(join(cwd, 'epimetheus.yml'), 'scrape_configs: []\n', { mode: 0o600 });
  chownSync(join(cwd, 'epimetheus.yml'), OTHER, OTHER);
  // As Docker: without the right to read alone, the one to write stays for it.
  const by = ['setpriv', '--bounding-set=-all,+chown,+dac_override,+net_bind_service,+setpcap'];
  const server = await serve(t, { cwd, by, args: ARGS });
  await push(server, now());
  assert.equal((await post(server, '/-/reload')).status, 200);
  assert.deepEqual(capabilities(server.pid), only(DAC_OVERRIDE));

  const none = place(t);
  const bare = await serve(t, { cwd: none, by: ['setpriv', '--bounding-set=-all'], args: ARGS });
  await push(bare, now());
  assert.deepEqual(capabilities(bare.pid), only(0));
  assert.doesNotMatch(bare.err, /capabilities/);
});
