// Symbols of native code: the processes that read debug data, and uploads that outlive the server.
import test from 'node:test';
import assert from 'node:assert/strict';
import { copyFileSync, mkdirSync, readFileSync, readdirSync, readlinkSync } from 'node:fs';
import { epimetheus, epitool, execFileSync, existsSync, finish, join, request, scratch, sleep, startServer, until, writeFileSync } from './lib.mjs';

const config = 'scrape_configs: []\n';

function read(file) {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return ''; // the process has ended
  }
}

/** The processes that extract for the server with this data directory: [{pid, status}]. */
function extractors(dir) {
  return readdirSync('/proc').filter((pid) => /^\d+$/.test(pid) && read(`/proc/${pid}/comm`) === 'epi-extract\n')
    .filter((pid) => read(`/proc/${pid}/cmdline`).includes(join(dir, 'data')))
    .map((pid) => ({ pid, status: read(`/proc/${pid}/status`) })).filter((p) => p.status);
}

async function metrics(server) {
  const text = (await request(`${server.url}/metrics`)).body.toString();
  return Object.fromEntries([...text.matchAll(/^epimetheus_symbols_(\S+) (\S+)/gm)].map((m) => [m[1], Number(m[2])]));
}

function buildId(file) {
  return execFileSync('readelf', ['-n', file]).toString().match(/Build ID: ([0-9a-f]+)/)[1];
}

/** With debug data, where the build keeps it in a file of its own. */
const program = existsSync(`${epimetheus}.debug`) ? `${epimetheus}.debug` : epimetheus;

function queue(dir, file, id = buildId(file)) {
  mkdirSync(join(dir, 'data/debuginfo'), { recursive: true });
  copyFileSync(file, join(dir, `data/debuginfo/gnu-${id}.full.upload.queued`));
  return id;
}

const files = (dir) => readdirSync(join(dir, 'data/debuginfo')).filter((name) => name !== 'stamps');

test('the processes that read debug data have few rights, and end with the server', async (t) => {
  for (const [signal, code] of [['SIGTERM', 0], ['SIGKILL', null]]) {
    const dir = scratch(t);
    const server = await startServer(t, { dir, config });
    const all = await until('a keeper and a slot', 5, () => {
      const found = extractors(dir);
      return found.length === 2 && found;
    });
    for (const { pid, status } of all) {
      for (const what of ['CapInh', 'CapPrm', 'CapEff', 'CapAmb']) assert.match(status, new RegExp(`^${what}:\\t0{16}$`, 'm'));
      assert.match(status, /^NoNewPrivs:\t1$/m);
      assert.match(status, /^Threads:\t1$/m);
      const fds = readdirSync(`/proc/${pid}/fd`).map((fd) => `${fd} ${readlinkSync(`/proc/${pid}/fd/${fd}`)}`);
      assert.equal(fds.length, 2, fds.join()); // no lock of the directory, no listening socket
      assert.match(fds[0], /^2 /);
      assert.match(fds[1], / socket:/);
      const own = [...read(`/proc/${pid}/smaps_rollup`).matchAll(/^Private_\w+: +(\d+) kB$/gm)].reduce((sum, m) => sum + Number(m[1]), 0);
      t.diagnostic(`${pid}: ${status.match(/VmRSS:\s+(\d+)/)[1]} kB resident, ${own} kB of its own`);
    }
    assert.equal((await server.stop(signal)).code, code);
    await until('all have ended', 5, () => all.every(({ pid }) => /^(State:\tZ.*)?$/m.test(read(`/proc/${pid}/status`).match(/^State:.*$/m)?.[0] ?? '')));
    if (signal === 'SIGKILL') assert.doesNotMatch(server.err, /level=(warn|error)/);
  }
});

test('a queued upload outlives kill -9 and becomes symbols', async (t) => {
  const dir = scratch(t);
  const id = queue(dir, program);
  for (const wait of [0, 20, 100]) { // before it is over, or after it
    const server = await startServer(t, { dir, config, ready: false });
    await new Promise((done) => server.child.stderr.on('data', () => /database open/.test(server.err) && done()));
    if (wait) await sleep(wait);
    await server.stop('SIGKILL');
    const left = files(dir).filter((name) => /^gnu-/.test(name));
    assert.ok(left.includes(`gnu-${id}.full.upload.queued`) || left.includes(`gnu-${id}.idx`), left.join());
    t.diagnostic(`killed after ${wait} ms: ${left}`);
  }
  const server = await startServer(t, { dir, config });
  await until('its symbols', 60, async () => {
    const m = await metrics(server);
    return m.indexes === 1 && m.uploads_bytes === 0;
  });
  assert.deepEqual(files(dir), [`gnu-${id}.idx`]);
  const { bytes, wanted } = await metrics(server);
  assert.ok(bytes > 1000);
  assert.equal(wanted, 0);
  assert.doesNotMatch(server.err, /level=(warn|error)/);

  // It is no part of the database.
  assert.equal((await server.stop()).code, 0);
  for (const command of ['list', 'analyze', 'verify']) {
    const run = await finish(t, epitool, ['tsdb', command, join(dir, 'data')]);
    assert.equal(run.code, 0, run.err);
    assert.equal(run.err, '');
  }
});

test('what is no binary, or another one, is refused with its reason', async (t) => {
  const dir = scratch(t);
  writeFileSync(join(dir, 'page.html'), '<!DOCTYPE html><title>Not found</title>');
  queue(dir, join(dir, 'page.html'), 'aa01');
  queue(dir, epimetheus, 'aa02');
  const server = await startServer(t, { dir, config, args: ['--web.enable-admin-api'] });
  await until('both are refused', 30, () => server.err.match(/msg="no symbols extracted"/g)?.length === 2);
  assert.match(server.err, /msg="no symbols extracted" id=aa01 .* err=".*HTML/);
  assert.match(server.err, new RegExp(`msg="no symbols extracted" id=aa02 .* err="the file has build id ${buildId(epimetheus)}, not aa02"`));
  await until('nothing is left', 5, () => files(dir).length === 0);
  const m = await metrics(server);
  assert.equal(m['extractions_total{result="failed"}'], 2);
  assert.equal(m.indexes, 0);
  const name = JSON.parse((await request(`${server.url}/api/v1/admin/tsdb/snapshot`, { method: 'POST' })).body).data.name;
  assert.ok(!readdirSync(join(dir, 'data/snapshots', name)).includes('debuginfo'));
});

test('limits of symbols are flags', async (t) => {
  const dir = scratch(t);
  queue(dir, epimetheus);
  const server = await startServer(t, { dir, config, args: ['--storage.symbols.max-file-size=1MB', '--storage.symbols.max-size=100KB'] });
  await until('it is refused', 30, () => server.err.match(/err="input is no file of 1 to 1048576 bytes"/));
  await server.stop();
  queue(dir, epimetheus);
  const second = await startServer(t, { dir, config, args: ['--storage.symbols.max-size=100KB'] });
  await until('its index is refused', 30, () => second.err.match(/err="publish: index is \d+ bytes, limit of all 102400"/));
  const run = await finish(t, epimetheus, ['--storage.symbols.max-file-size=0', `--storage.tsdb.path=${join(dir, 'other')}`], 20);
  assert.equal(run.code, 2);
  assert.match(run.err, /--storage\.symbols\.max-file-size is 0/);
});
