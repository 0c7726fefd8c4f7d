// The store that the end-to-end tests use is real: Ceph does what the tests of buckets rely on, survives its own deaths, and
// goes away with its test.
import test from 'node:test';
import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { bucketCases } from './bucket_cases.mjs';
import { S3, startCeph } from './ceph.mjs';
import { execFileSync, existsSync, join, programEnds, root, scratch, start, until } from './lib.mjs';
import { storeCases } from './s3_cases.mjs';

/** Writes numbered objects until stop() gives those that were acknowledged. */
function writer(s3, prefix) {
  const acknowledged = new Map();
  let stopped = false;
  const loop = (async () => {
    for (let i = 0; !stopped; i++) {
      const key = `${prefix}/${i}`;
      const body = `${key} `.repeat(500);
      const answer = await s3.call('PUT', key, { body }).catch(() => ({}));
      if (answer.status === 200) acknowledged.set(key, body);
    }
  })();
  return {
    acknowledged,
    async stop() {
      stopped = true;
      await loop;
    },
  };
}

/** Waits until each has 20 more acknowledged objects. */
function progress(writers) {
  const before = writers.map((w) => w.acknowledged.size);
  return until('objects are acknowledged', 60, () => writers.every((w, i) => w.acknowledged.size >= before[i] + 20));
}

async function osdDies(ceph, s3) {
  const writers = [0, 1, 2].map((i) => writer(s3, `written/${i}`));
  await progress(writers);
  await ceph.kill('osd.1');
  await progress(writers);
  await ceph.start('osd.1');
  await progress(writers);
  await ceph.kill('osd.2'); // what osd.1 missed must be there without it
  await progress(writers);
  await Promise.all(writers.map((w) => w.stop()));
  const all = new Map(writers.flatMap((w) => [...w.acknowledged]));
  const keys = new Set(await s3.keys({ prefix: 'written/' }));
  for (const [key, body] of all) {
    assert.ok(keys.has(key), key);
    assert.equal((await s3.get(key)).toString(), body);
  }
  await ceph.start('osd.2');
}

async function gatewayDies(ceph, s3) {
  await s3.put('kept', 'bytes');
  await ceph.kill('rgw');
  await assert.rejects(s3.get('kept'), { code: 'ECONNREFUSED' });
  await ceph.start('rgw');
  assert.equal((await s3.get('kept')).toString(), 'bytes');
  await ceph.pause('rgw');
  await assert.rejects(s3.with({ timeout: 500 }).get('kept'), /no answer within 500 ms/);
  await ceph.resume('rgw');
  assert.equal((await s3.get('kept')).toString(), 'bytes');
}

test('Ceph is an S3 store', async (t) => {
  const ceph = await startCeph(t, { osds: 3 });
  const s3 = new S3(ceph);
  await storeCases(t, s3);
  await bucketCases(t, ceph, s3);
  await t.test('OSDs are killed and nothing acknowledged is lost', () => osdDies(ceph, s3));
  await t.test('the gateway is killed, comes back, and stalls', () => gatewayDies(ceph, s3));
});

const script = join(root, 'tests/ceph.mjs');

/** The processes that name this directory. */
function processes(dir) {
  return readdirSync('/proc').filter((pid) => /^\d+$/.test(pid)).filter((pid) => {
    try {
      return readFileSync(`/proc/${pid}/cmdline`).includes(dir);
    } catch {
      return false; // it has ended
    }
  });
}

test('The command starts a cluster, kills and starts parts of it, and stops it', async (t) => {
  const dir = join(scratch(t), 'cluster');
  const run = start(t, 'node', [script, 'run', dir]);
  const store = JSON.parse(await until('the store', 60, () => {
    assert.equal(run.code, undefined, run.err);
    return run.out.includes('\n') && run.out;
  }));
  const s3 = new S3(store);
  await s3.put('kept', 'bytes');
  execFileSync('node', [script, 'kill', dir, 'osd.0']);
  await assert.rejects(s3.with({ timeout: 500 }).get('kept'), /no answer/); // it is the only one
  assert.throws(() => execFileSync('node', [script, 'kill', dir, 'osd.0'], { stdio: 'pipe' }), /osd.0 does not run/);
  assert.throws(() => execFileSync('node', [script, 'start', dir, 'osd.1'], { stdio: 'pipe' }), /osd.1 is none of mon, osd.0, rgw/);
  execFileSync('node', [script, 'start', dir, 'osd.0']);
  assert.equal((await s3.get('kept')).toString(), 'bytes');
  // One that somebody else kills stays dead until it is started.
  const [pid] = processes(dir).filter((one) => readFileSync(`/proc/${one}/cmdline`).includes('radosgw'));
  process.kill(Number(pid), 'SIGKILL');
  await until('the gateway is dead', 20, () => s3.get('kept').then(() => false, (e) => e.code === 'ECONNREFUSED'));
  execFileSync('node', [script, 'start', dir, 'rgw']);
  assert.equal((await s3.get('kept')).toString(), 'bytes');
  execFileSync('node', [script, 'stop', dir]);
  assert.equal((await programEnds(run)).code, 0);
  assert.deepEqual(processes(dir), []);
  assert.equal(existsSync(dir), false);
});

test('Nothing stays behind a kill -9', async (t) => {
  const dir = join(scratch(t), 'cluster');
  const run = start(t, 'node', [script, 'run', dir, '--osds=2']);
  await until('OSDs run', 60, () => {
    assert.equal(run.code, undefined, run.err);
    return ['mon', 'osd.0', 'osd.1'].every((name) => existsSync(join(dir, `log/${name}.out`)));
  });
  assert.ok(processes(dir).length >= 4);
  await run.stop('SIGKILL');
  await until('its processes end', 20, () => processes(dir).length === 0);
  await until('its directory goes', 20, () => !existsSync(dir));
});

test('Ctrl-C in a terminal reaches the command, which ends its daemons', async (t) => {
  const dir = join(scratch(t), 'cluster');
  const run = start(t, 'node', [script, 'run', dir], { detached: true });
  await until('the monitor runs', 60, () => existsSync(join(dir, 'log/mon.out')));
  const group = (pid) => {
    if (!existsSync(`/proc/${pid}/stat`)) return 0; // it has ended
    return Number(readFileSync(`/proc/${pid}/stat`, 'utf8').replace(/.*\) /, '').split(' ')[2]);
  };
  // The file is there before the program is, and one that was just forked is in its parent's group for a moment.
  await until('daemons are in groups of their own', 20, () => {
    const daemons = processes(dir).filter((pid) => Number(pid) !== run.child.pid);
    return daemons.length >= 2 && daemons.every((pid) => group(pid) !== run.child.pid);
  });
  process.kill(-run.child.pid, 'SIGINT');
  await programEnds(run);
  assert.deepEqual(processes(dir), []);
  assert.equal(existsSync(dir), false);
});

test('A command whose input ends stops its cluster', async (t) => {
  const dir = join(scratch(t), 'cluster');
  const run = start(t, 'node', [script, 'run', dir, '--while-stdin'], { stdio: ['pipe', 'pipe', 'pipe'] });
  await until('the monitor runs', 60, () => existsSync(join(dir, 'log/mon.out')));
  run.child.stdin.end();
  await programEnds(run);
  assert.deepEqual(processes(dir), []);
  assert.equal(existsSync(dir), false);
});
