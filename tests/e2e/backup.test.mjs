// `epitool tsdb backup` of a real server under load, of a stopped one, into a directory and into a bucket: what is restored answers
// as what was backed up, and a backup that was killed or damaged is never taken for a whole one.
import test from 'node:test';
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, readdirSync, renameSync, statSync, unlinkSync, writeFileSync } from 'node:fs';
import { api, epitool, finish, join, query, recordedCpu, request, scratch, start, startServer, until } from './lib.mjs';
import { S3Fake } from '../s3_fake.mjs';
import { bucketFile } from './bucket_cases.mjs';

const NOTHING = 'scrape_configs: []\n';
const FAST = ['--web.enable-ingest', '--web.enable-admin-api', '--storage.tsdb.window=10s', '--storage.tsdb.out-of-order-time-window=10s',
  '--storage.tsdb.max-block-duration=1h'];
const SCRAPES = 40;
const BODY = recordedCpu();

const open = (t, dir) => startServer(t, { dir, config: NOTHING, args: FAST });

async function push(server, job, pod, time) {
  const res = await request(`${server.url}/api/v1/ingest?name=process_cpu&job=${job}&pod=${pod}&time=${time}`, { method: 'POST', body: BODY });
  assert.equal(res.status, 200, res.body.toString());
}

/** Profiles of two pods, 2 s apart; gives the time behind the last one. */
async function fill(server) {
  const first = Math.floor(Date.now() / 1000) - 2 * SCRAPES;
  for (let i = 0; i < SCRAPES; i++) for (const pod of ['a', 'b']) await push(server, 'shop', pod, first + 2 * i);
  return first + 2 * SCRAPES;
}

const blocks = async (server) => (await api(server, 'status/tsdb')).blocks.filter((b) => b.ulid);

/** What the server says of the time up to `end`: stacks, costs, labels, series, types, a profile as a file. */
async function answers(server, end) {
  const params = (more) => new URLSearchParams({ time: end, ...more });
  const span = { start: end - 2 * SCRAPES - 1, end }, shop = { 'match[]': '{job="shop"}' };
  const questions = {
    stacks: `query?${params({ query: 'merge(cpu:samples{job="shop"}[5m])', format: 'folded' })}`,
    'stacks of a pod': `query?${params({ query: 'merge(cpu{job="shop",pod="a"}[1m])', format: 'folded' })}`,
    costs: `query?${params({ query: 'total(merge by (pod) (cpu{job="shop"}[5m]))' })}`,
    top: `query?${params({ query: 'top(20, merge(cpu{job="shop"}[5m]))' })}`,
    range: `query_range?${params({ query: 'total(cpu{job="shop"})', ...span, step: 2 })}`,
    file: `query?${params({ query: 'merge(cpu{job="shop",pod="b"}[5m])', format: 'pprof' })}`,
    labels: `labels?${params({ ...span, ...shop })}`,
    pods: `label/pod/values?${params({ ...span, ...shop })}`,
    series: `series?${params({ ...span, ...shop })}`,
    types: `profile_types?${params({ ...span, ...shop })}`,
  };
  const out = {};
  for (const [name, path] of Object.entries(questions)) {
    const res = await request(`${server.url}/api/v1/${path}`);
    assert.equal(res.status, 200, `${name}: ${res.body}`);
    assert.equal(res.headers.warning, undefined, name);
    const json = name === 'file' || path.includes('folded') ? null : JSON.parse(res.body);
    assert.equal(json?.warnings, undefined, name);
    out[name] = json ? json.data : createHash('sha256').update(res.body).digest('hex');
    assert.ok(res.body.length > 0 && !/"(data|result)":\[\]/.test(res.body), name);
  }
  assert.deepEqual(out.pods, ['a', 'b']);
  return out;
}

const run = (t, command, ...args) => finish(t, epitool, ['tsdb', command, ...args], 120);
async function tool(t, command, ...args) {
  const done = await run(t, command, ...args);
  assert.equal(done.code, 0, `${command} ${args}: ${done.out}${done.err}`);
  return done.out;
}
const list = async (t, ...place) => JSON.parse(await tool(t, 'backups', '--json', ...place));
const copied = (out) => Number(out.match(/^backup \S+: \d+ files, .*; copied (\d+), /m)[1]);
const nameOf = (out) => out.match(/^backup (\S+): /m)[1];

/** A directory `back` below dir, restored, served and asked. */
async function answersOfRestored(t, dir, back, end, ...args) {
  const out = await tool(t, 'restore', ...args, join(dir, back, 'data'));
  assert.match(out, /^\d+ blocks? verified, 0 findings\nrestored backup \S+: \d+ files, /m);
  const server = await open(t, join(dir, back));
  const got = await answers(server, end);
  await server.stop();
  return got;
}

test('A restored server answers as the one that was backed up under load, to a directory', async (t) => {
  const dir = scratch(t), data = join(dir, 'data'), to = join(dir, 'to');
  const server = await open(t, dir);
  const end = await fill(server);
  await until('blocks are cut', 30, async () => (await blocks(server)).length >= 2);
  // Profiles come, series are deleted, blocks are cut and joined while backups are made.
  let loaded = 0, loading = true;
  const load = (async () => {
    for (let i = 0; loading; i++) {
      const pod = i % 20 === 19 ? `gone${i}` : `p${i % 7}`;
      await push(server, 'load', pod, Math.max(end + 1, Math.floor(Date.now() / 1000)));
      loaded++;
      if (!pod.startsWith('gone')) continue;
      const gone = `${server.url}/api/v1/admin/tsdb/delete_series?${new URLSearchParams({ 'match[]': `{job="load",pod="${pod}"}` })}`;
      assert.equal((await request(gone, { method: 'POST' })).status, 204);
    }
  })();
  const before = await answers(server, end);
  const began = loaded;
  const backup = () => tool(t, 'backup', `--server=${server.url}`, data, to);
  const first = await backup();
  const ulids = (await blocks(server)).map((b) => b.ulid);
  await until('blocks come and go', 120, async () => {
    const now = new Set((await blocks(server)).map((b) => b.ulid));
    return ulids.some((u) => !now.has(u)) || now.size > ulids.length;
  });
  const [second, third] = await Promise.all([backup(), backup()]); // two at once
  assert.ok(loaded > began);
  loading = false;
  await load;
  assert.deepEqual(await answers(server, end), before);
  assert.equal((await list(t, to)).length, 3);
  assert.deepEqual((await list(t, to)).map((b) => b.findings), [0, 0, 0]);
  assert.deepEqual(readdirSync(join(data, 'snapshots')), []);
  assert.deepEqual(readdirSync(join(to, 'running')), []);
  await server.stop();
  // Of a stopped server: nothing but what came since.
  const stopped = await tool(t, 'backup', data, to);
  assert.ok(copied(stopped) > 0);
  assert.equal(copied(await tool(t, 'backup', data, to)), 0);
  for (const [i, out] of [first, second, third, stopped].entries())
    assert.deepEqual(await answersOfRestored(t, dir, `back${i}`, end, `--backup=${nameOf(out)}`, to), before, `backup ${i}`);
  // The newest one, after the others were removed.
  const kept = await tool(t, 'backup', '--keep=1', data, to);
  assert.match(kept, /^removed 5 backups, \d+ objects, /m);
  assert.deepEqual((await list(t, to)).map((b) => b.name), [nameOf(kept)]);
  assert.deepEqual(await answersOfRestored(t, dir, 'last', end, to), before);
});

test('A server without profiles is backed up and restored', async (t) => {
  const dir = scratch(t), data = join(dir, 'data'), to = join(dir, 'to');
  const server = await open(t, dir);
  await tool(t, 'backup', `--server=${server.url}`, data, to);
  await server.stop();
  await tool(t, 'backup', data, to);
  for (const { name } of await list(t, to)) {
    const out = await tool(t, 'restore', `--backup=${name}`, to, join(dir, name, 'data'));
    assert.match(out, /^0 blocks verified, 0 findings\nrestored backup /);
    const restored = await open(t, join(dir, name));
    await push(restored, 'shop', 'a', Math.floor(Date.now() / 1000));
    await restored.stop();
  }
});

test('A backup that is killed is none; the next one uses what it has copied', async (t) => {
  const dir = scratch(t), data = join(dir, 'data');
  const fake = await new S3Fake().listen();
  t.after(() => fake.close());
  const tell = async (method, path, value) => JSON.parse((await request(fake.control + path, { method, body: JSON.stringify(value) })).body);
  const config = `--config.file=${bucketFile(dir, fake)}`;
  const server = await open(t, dir);
  const end = await fill(server);
  await until('blocks are cut', 30, async () => (await blocks(server)).length >= 2);
  const before = await answers(server, end);
  const args = [config, `--server=${server.url}`, '--workers=2', data, 'bucket:here'];
  // The manifest is refused again and again: all objects are there, and there is no backup.
  await tell('POST', '/fault', { method: 'PUT', key: 'here/backups/', status: 503, code: 'SlowDown', count: -1 });
  const killed = start(t, epitool, ['tsdb', 'backup', ...args]);
  await until('the manifest is put', 60, async () => killed.code !== undefined ||
    (await tell('GET', '/requests')).some((r) => r.method === 'PUT' && r.key?.startsWith('here/backups/')));
  assert.equal(killed.code, undefined, killed.err);
  assert.deepEqual(await list(t, config, 'bucket:here'), []);
  await killed.stop('SIGKILL');
  assert.equal(readdirSync(join(data, 'snapshots')).filter((n) => n.endsWith('.backup')).length, 1);
  const none = await run(t, 'restore', config, 'bucket:here', join(dir, 'none'));
  assert.equal(none.code, 1);
  assert.match(none.err, /there is no backup/);
  assert.ok(!existsSync(join(dir, 'none/blocks')));
  await tell('DELETE', '/faults');
  // Ctrl-C takes the mark away.
  await tell('POST', '/fault', { method: 'PUT', key: 'here/objects/', delay: -1, count: -1 });
  await tell('DELETE', '/requests');
  await push(server, 'later', 'a', end + 1);
  const stopped = start(t, epitool, ['tsdb', 'backup', ...args]);
  await until('an object is put', 60, async () => stopped.code !== undefined ||
    (await tell('GET', '/requests')).some((r) => r.method === 'PUT' && r.key?.startsWith('here/objects/')));
  await stopped.stop('SIGINT');
  assert.equal(stopped.code, 130, stopped.err);
  await tell('DELETE', '/faults');
  const whole = await tool(t, 'backup', ...args);
  const files = Number(whole.match(/: (\d+) files/)[1]);
  assert.ok(copied(whole) < files, whole);
  assert.deepEqual(readdirSync(join(data, 'snapshots')), []); // the killed one's, too
  assert.deepEqual((await list(t, config, 'bucket:here')).map((b) => b.name), [nameOf(whole)]);
  await server.stop();
  assert.deepEqual(await answersOfRestored(t, dir, 'back', end, config, 'bucket:here'), before);
});

test('What is damaged is named, and refused or restored with its losses', async (t) => {
  const dir = scratch(t), data = join(dir, 'data'), to = join(dir, 'to');
  const server = await open(t, dir);
  const end = await fill(server);
  await until('blocks are cut', 30, async () => (await blocks(server)).length >= 2);
  await server.stop();
  const made = await tool(t, 'backup', data, to);
  const manifest = readFileSync(join(to, 'backups', nameOf(made)), 'latin1');
  const [, hash, path] = manifest.match(/^file (\S+) \d+ \d+ \d+ (blocks\/\S+\/rows\.ldb)$/m);
  const object = join(to, 'objects', hash);
  const bytes = readFileSync(object);
  bytes[bytes.length >> 1] ^= 1;
  writeFileSync(object, bytes);
  const refused = await run(t, 'restore', to, join(dir, 'back/data'));
  assert.equal(refused.code, 1);
  assert.ok(refused.err.includes(`epitool: damaged: ${path}: object ${hash}: its bytes are not those that were backed up\n`), refused.err);
  assert.match(refused.err, /: 1 of \d+ files are damaged, and nothing was restored; --partial restores the others\n/);
  assert.deepEqual(readdirSync(join(dir, 'back/data')), ['lock']);
  const partial = await run(t, 'restore', '--partial', to, join(dir, 'back/data'));
  assert.equal(partial.code, 1);
  assert.match(partial.err, /restored with 1 files missing and [1-9]\d* findings/);
  const block = path.split('/')[1];
  assert.ok(partial.out.includes(block), partial.out);
  const restored = await open(t, join(dir, 'back'));
  const res = await request(`${restored.url}/api/v1/query?${new URLSearchParams({ query: 'merge(cpu{job="shop"}[5m])', time: end })}`);
  assert.ok(JSON.parse(res.body).warnings.length, 'an answer that lacks profiles says so');
  await restored.stop();
  // A manifest of other bytes, and one under another name.
  const backups = join(to, 'backups'), name = nameOf(made), other = `20200101T000000Z-00000000`;
  renameSync(join(backups, name), join(backups, other));
  const renamed = await run(t, 'restore', to, join(dir, 'renamed'));
  assert.equal(renamed.code, 1);
  assert.match(renamed.err, new RegExp(`the manifest of backup ${other}: it is that of backup "${name}"`));
  writeFileSync(join(backups, other), manifest.replace('findings 0', 'findings 1'));
  const changed = await run(t, 'backups', to);
  assert.equal(changed.code, 1);
  assert.match(changed.err, /its bytes are not those that were written/);
  unlinkSync(join(backups, other));
  // A source with damage is backed up, and says so; it takes no whole backup's place.
  writeFileSync(join(backups, name), manifest);
  const file = join(data, path), rows = readFileSync(file);
  rows[rows.length >> 1] ^= 1;
  writeFileSync(file, rows);
  const damaged = await run(t, 'backup', '--keep=1', data, to);
  assert.equal(damaged.code, 1, damaged.err);
  assert.match(damaged.err, /the backup is made, with \d+ findings/);
  assert.deepEqual((await list(t, to)).map((b) => b.findings > 0), [false, true]);
  assert.ok(statSync(join(backups, name)).isFile());
});

test('What is no source or no place is refused', async (t) => {
  const dir = scratch(t), data = join(dir, 'data');
  const server = await startServer(t, { dir, config: NOTHING });
  const denied = await run(t, 'backup', `--server=${server.url}`, data, join(dir, 'to'));
  assert.equal(denied.code, 1);
  assert.match(denied.err, /the directory is in use: ask http:\S+ for a snapshot: .*--web\.enable-admin-api/);
  assert.equal((await query(server, 'vector(1)')).result.length, 1);
  await server.stop();
  for (const [args, want] of [
    [[data, join(data, 'backups')], /data\/backups is inside of .*data\n/],
    [[join(dir, 'nothing'), join(dir, 'to')], /nothing is no data directory: it has no blocks\/\n/],
  ]) {
    const refused = await run(t, 'backup', ...args);
    assert.equal(refused.code, 1);
    assert.match(refused.err, want);
  }
  assert.equal((await run(t, 'backup', '--workers=0', data, join(dir, 'to'))).code, 2);
  await tool(t, 'backup', data, join(dir, 'to'));
  const full = await run(t, 'restore', join(dir, 'to'), data);
  assert.equal(full.code, 1);
  assert.match(full.err, /data is not empty: it has blocks\n/);
  const none = await run(t, 'backups', join(dir, 'nothing'));
  assert.equal(none.code, 1);
  assert.match(none.err, /nothing: no such directory/);
  const unknown = await run(t, 'restore', '--backup=20200101T000000Z-00000000', join(dir, 'to'), join(dir, 'back'));
  assert.equal(unknown.code, 1);
  assert.match(unknown.err, /20200101T000000Z-00000000/);
});
