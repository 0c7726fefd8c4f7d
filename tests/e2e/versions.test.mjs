// Data directories that older programs wrote (versions/): this one reads each in place, and answers what they answered, at once,
// after it cut and joined what they left, with a window of theirs that was set aside, and out of a backup. Their configurations
// are read, and their flags are known.
import test from 'node:test';
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { answersOf } from './versions/ask.mjs';
import { readTree } from './bucket_cases.mjs';
import { api, epimetheus, epitool, finish, helpFlags, join, request, root, scratch, startServer, until } from './lib.mjs';

const DIR = join(root, 'tests/e2e/versions');
const CONFIG = 'scrape_configs: []\n';
const ARGS = ['--web.enable-ingest', '--storage.tsdb.retention.time=100y', '--storage.tsdb.window=10s',
  '--storage.tsdb.out-of-order-time-window=0s', '--storage.tsdb.max-block-duration=1h'];
const archives = readdirSync(DIR).filter((n) => n.endsWith('.tar.gz')).sort();

function unpack(t, archive) {
  const dir = scratch(t);
  execFileSync('tar', ['-xzf', join(DIR, archive), '-C', dir]);
  return { dir, ...JSON.parse(readFileSync(join(dir, 'answers.json'))) };
}

async function verify(t, dir) {
  const run = await finish(t, epitool, ['tsdb', 'verify', join(dir, 'data')]);
  assert.match(run.out, /^\d+ blocks? verified, 0 findings$/m, run.out + run.err);
  assert.equal(run.code, 0, run.err);
}

const open = (t, dir, ...more) => startServer(t, { dir, config: CONFIG, args: [...ARGS, ...more] });
const windows = (dir) => readdirSync(join(dir, 'data/head')).filter((n) => /^\d+$/.test(n));

/** One sample of one function, in pprof. */
const PROFILE = Buffer.from('0a040801100212060a010112010122060801220208012a04080110033200320773616d706c657332'
  + '05636f756e743204776f726b5a04080110026001', 'hex');

test('there is a directory of each version', () => {
  assert.ok(archives.length >= 6, archives.join());
});

for (const archive of archives) {
  test(`${archive}: read in place, cut and joined`, async (t) => {
    const { dir, times, answers } = unpack(t, archive);
    assert.ok(Object.keys(answers).length >= 10);
    await verify(t, dir);
    let server = await open(t, dir);
    assert.deepEqual(await answersOf(server.url, times), answers);
    // A later row: the window that they left is cut, and blocks are joined.
    const res = await request(`${server.url}/api/v1/ingest?name=later&job=later&time=${times.last + 60}`,
      { method: 'POST', body: PROFILE });
    assert.equal(res.status, 200, res.body.toString());
    const left = async () => (await api(server, 'status/tsdb')).blocks.filter((b) => !b.ulid).length;
    await until('their window is a block', 60, async () => (await left()) === 1);
    assert.deepEqual(await answersOf(server.url, times), answers);
    await server.stop();
    await verify(t, dir);
    server = await open(t, dir);
    assert.deepEqual(await answersOf(server.url, times), answers);
  });

  test(`${archive}: answers out of a backup, which changes nothing in it`, async (t) => {
    const { dir, times, answers } = unpack(t, archive);
    const data = join(dir, 'data'), tree = readTree(data);
    for (const args of [['backup', data, join(dir, 'to')], ['restore', join(dir, 'to'), join(dir, 'back/data')]]) {
      const run = await finish(t, epitool, ['tsdb', ...args]);
      assert.equal(run.code, 0, run.out + run.err);
    }
    const { lock, ...after } = readTree(data);
    assert.ok(lock);
    assert.deepEqual(after, tree);
    const server = await open(t, join(dir, 'back'));
    assert.deepEqual(await answersOf(server.url, times), answers);
  });

  test(`${archive}: a window that was set aside is found again`, async (t) => {
    const { dir, times, answers } = unpack(t, archive);
    const [start] = windows(dir);
    const head = join(dir, 'data/head');
    renameSync(join(head, start), join(head, `${start}.1795891000123456789.damaged`));
    for (const beside of ['.acked', '.names']) rmSync(join(head, start + beside), { force: true });
    await verify(t, dir);
    assert.ok(!existsSync(join(head, start)));
    const server = await open(t, dir);
    assert.deepEqual(await answersOf(server.url, times), answers);
    assert.deepEqual(windows(dir), [start]);
    assert.match(server.err, /msg="window that was set aside is served again"/);
  });
}

for (const archive of archives) {
  test(`${archive}: the configurations of that program are read, and its flags are known`, async (t) => {
    const dir = scratch(t);
    execFileSync('tar', ['-xzf', join(DIR, 'config', archive), '-C', dir]);
    const examples = join(dir, 'examples');
    for (const user of ['ci', 'probe']) writeFileSync(join(examples, `${user}.token`), `a-token-of-${user}-in-a-test\n`); // web.yml's
    const files = readdirSync(examples, { recursive: true }).filter((name) => /\.ya?ml$/.test(name)).sort();
    const kinds = { config: [], rules: [], 'web-config': [] };
    for (const name of files)
      kinds[/^rules\/|rules\.yml$/.test(name) ? 'rules' : name === 'web.yml' ? 'web-config' : 'config'].push(join(examples, name));
    assert.ok(kinds.config.length >= 2 && kinds.rules.length >= 9);
    for (const [kind, names] of Object.entries(kinds)) {
      if (!names.length) continue;
      const flags = kind === 'config' ? ['--syntax-only'] : [];
      const run = await finish(t, epitool, ['check', kind, ...flags, ...names]);
      assert.equal(run.code, 0, run.out + run.err);
    }
    const known = new Set(helpFlags((await finish(t, epimetheus, ['--help'])).out).map((f) => f.replace('[no-]', '')));
    const flags = readFileSync(join(dir, 'flags'), 'utf8').split('\n').filter(Boolean);
    assert.ok(flags.length >= 40);
    assert.deepEqual(flags.filter((f) => !known.has(f)), []);
  });
}

test('a table of another block of version 1 is not believed', async (t) => {
  const { dir, times, answers } = unpack(t, 'a7ae581b.tar.gz');
  const blocks = join(dir, 'data/blocks');
  const [a, b] = readdirSync(blocks).sort().map((n) => join(blocks, n, 'rows.ldb'));
  renameSync(a, `${a}.kept`);
  renameSync(b, a);
  renameSync(`${a}.kept`, b);
  const run = await finish(t, epitool, ['tsdb', 'verify', join(dir, 'data')]);
  assert.match(run.out, /rows\.ldb is not the table that spare knows/);
  assert.equal(run.code, 1);
  const server = await open(t, dir);
  const got = await answersOf(server.url, times);
  // Sums are in other tables; who asks for a part of an hour is told.
  for (const [question, answer] of Object.entries(got))
    if (!answer.warnings) assert.deepEqual(answer, answers[question], question);
  assert.ok(got['a part of an hour'].warnings, JSON.stringify(got['a part of an hour']));
});

test('raw rows of blocks of version 1 are removed', async (t) => {
  const { dir, times, answers } = unpack(t, 'a7ae581b.tar.gz');
  const blocks = join(dir, 'data/blocks');
  const raw = () => readdirSync(blocks).filter((n) => existsSync(join(blocks, n, 'rows.ldb'))).length;
  const before = raw();
  let server = await open(t, dir, '--storage.tsdb.retention.raw-time=30m');
  await until('raw rows are removed', 60, async () => raw() < before);
  await server.stop();
  await verify(t, dir);
  server = await open(t, dir);
  const got = await answersOf(server.url, times);
  for (const question of ['the whole of a job', 'a level'])
    assert.deepEqual(got[question], answers[question], question);
});
