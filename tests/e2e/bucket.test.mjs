// `epitool bucket` on the fake store: what Ceph's tests do (bucket_cases.mjs), faults, interrupted copies, wrong arguments.
import test from 'node:test';
import assert from 'node:assert/strict';
import { existsSync, readdirSync } from 'node:fs';
import { api, epitool, finish, join, request, scratch, start, startServer, until, writeFileSync } from './lib.mjs';
import { S3 } from '../s3_client.mjs';
import { S3Fake } from '../s3_fake.mjs';
import { bucketCases, bucketFile, hashes, readTree, shard, tool, writeTree } from './bucket_cases.mjs';

async function startFake(t) {
  const fake = await new S3Fake().listen();
  t.after(() => fake.close());
  const tell = async (method, path, value) => JSON.parse((await request(fake.control + path, { method, body: JSON.stringify(value) })).body);
  return { fake, s3: new S3(fake), tell };
}

test('Objects come and go', async (t) => {
  const { fake, s3 } = await startFake(t);
  await bucketCases(t, fake, s3);
});

test('An interrupted copy leaves nothing half, and goes on', async (t) => {
  const { fake, s3, tell } = await startFake(t);
  const dir = scratch(t);
  const file = bucketFile(dir, fake);
  for (const [key, bytes] of Object.entries(shard)) await s3.put(key, bytes);
  await tell('POST', '/fault', { method: 'GET', key: 'shards/a/blocks/01ARZ3NDEKTSV4RRFFQ69G5FAV/rows', delay: -1, count: -1 });
  const copy = join(dir, 'copy');
  const run = start(t, epitool, ['bucket', 'copy', `--config.file=${file}`, 'bucket:', copy]);
  await until('the others are there', 20, () => existsSync(copy) && Object.keys(readTree(copy)).length >= 4);
  await run.stop('SIGINT');
  assert.equal(run.code, 130, run.err);
  const half = readTree(copy);
  assert.ok(!half['shards/a/manifest'] && !half['shards/a/blocks/01ARZ3NDEKTSV4RRFFQ69G5FAV/meta.json']);
  for (const [name, hash] of Object.entries(half)) assert.equal(hash, hashes(shard)[name], name);
  await tell('DELETE', '/faults');
  await tool(t, file, 'copy', 'bucket:', copy);
  assert.deepEqual(readTree(copy), hashes(shard));
});

test('Manifests are read first and written last', async (t) => {
  const { fake, s3, tell } = await startFake(t);
  const dir = scratch(t);
  const file = bucketFile(dir, fake);
  for (const [key, bytes] of Object.entries(shard)) await s3.put(key, bytes);
  const source = bucketFile(dir, fake, { prefix: 'to', name: 'to.yml' });
  await tell('DELETE', '/requests');
  await tool(t, file, 'copy', `--to.config.file=${source}`, 'bucket:shards', 'bucket:shards');
  const requests = await tell('GET', '/requests');
  const puts = requests.filter((r) => r.method === 'PUT').map((r) => r.key.split('/').at(-1));
  assert.equal(puts.length, Object.keys(shard).length);
  assert.deepEqual(puts.slice(-2), ['meta.json', 'manifest']);
  const gets = requests.filter((r) => r.method === 'GET' && r.key).map((r) => r.key.split('/').at(-1));
  assert.equal(gets[0], 'manifest');
  assert.equal(gets.filter((k) => k === 'manifest').length, 1); // the one that was read before all else
});

test('Objects that are deleted meanwhile are counted, and no manifest that may name them is written', async (t) => {
  const { fake, s3, tell } = await startFake(t);
  const dir = scratch(t);
  const file = bucketFile(dir, fake);
  for (const [key, bytes] of Object.entries(shard)) await s3.put(key, bytes);
  await tell('POST', '/fault', { method: 'HEAD', key: 'shards/a/files/ids', status: 404, code: 'NoSuchKey' });
  const copy = join(dir, 'copy');
  const run = await finish(t, epitool, ['bucket', 'copy', `--config.file=${file}`, 'bucket:', copy]);
  assert.equal(run.code, 1);
  assert.match(run.err, /1 objects were deleted meanwhile: copy again/);
  assert.ok(!existsSync(join(copy, 'shards/a/manifest')));
  await tool(t, file, 'copy', 'bucket:', copy);
  assert.deepEqual(readTree(copy), hashes(shard));
});

test('A store cannot write elsewhere, and damage is named', async (t) => {
  const { fake, s3, tell } = await startFake(t);
  const dir = scratch(t);
  const file = bucketFile(dir, fake);
  for (const key of ['a', '../../escaped', 'b/../../escaped', 'folder/']) await s3.put(key, 'x');
  const copy = join(dir, 'deep/copy');
  const run = await finish(t, epitool, ['bucket', 'copy', `--config.file=${file}`, 'bucket:', copy]);
  assert.equal(run.code, 0, run.err);
  assert.match(run.err, /3 left out: no regular file, or no key/);
  assert.deepEqual(Object.keys(readTree(copy)), ['a']);
  assert.ok(!existsSync(join(dir, 'escaped')) && !existsSync(join(dir, 'deep/escaped')));
  // damage of an object with a hash
  writeFileSync(join(dir, 'f'), 'some bytes');
  await tool(t, file, 'put', join(dir, 'f'), 'f');
  await tell('POST', '/fault', { method: 'GET', key: 'f', flip: 3, count: -1 });
  const damaged = await finish(t, epitool, ['bucket', 'get', `--config.file=${file}`, 'f', join(dir, 'got')]);
  assert.equal(damaged.code, 1);
  assert.match(damaged.err, /its SHA-256 is not that of what was put/);
  assert.deepEqual(readdirSync(dir).filter((name) => name.startsWith('got')), []);
});

/** Blocks of a server, below a directory. */
async function blocksOf(t, dir) {
  const server = await startServer(t, { dir, config: 'scrape_configs: []\n', args: ['--web.enable-ingest', '--storage.tsdb.window=10s',
    '--storage.tsdb.out-of-order-time-window=20s', '--storage.tsdb.max-block-duration=10s'] });
  const profile = (await request(`${server.url}/debug/pprof/profile?seconds=1`)).body;
  const now = Math.floor(Date.now() / 1000), end = now - now % 10;
  for (let i = 50; i > 0; i -= 2) {
    const params = new URLSearchParams({ name: 'process_cpu', job: 'shop', time: end - i });
    assert.equal((await request(`${server.url}/api/v1/ingest?${params}`, { method: 'POST', body: profile })).status, 200);
  }
  await until('blocks are cut', 30, async () => (await api(server, 'status/tsdb')).blocks.filter((b) => b.ulid).length >= 2);
  await server.stop('SIGTERM');
  return join(dir, 'data/blocks');
}

test('A lost manifest is made anew out of blocks, and what it names is verified', async (t) => {
  const { fake, s3 } = await startFake(t);
  const dir = scratch(t);
  const file = bucketFile(dir, fake);
  const blocks = await blocksOf(t, dir), names = readdirSync(blocks).sort();
  const run = (...args) => finish(t, epitool, ['bucket', args[0], `--config.file=${file}`, ...args.slice(1)]);
  await tool(t, file, 'copy', blocks, 'bucket:shards/a/blocks');
  await s3.put('shards/a/files/odd', 'x');
  const lost = await run('verify');
  assert.equal(lost.code, 1);
  assert.match(lost.out, /shards\/a\/manifest/);
  assert.match(lost.out, /1 shard verified, 0 objects, 0 bytes, 1 finding; 0 without a name\n$/);
  const repaired = await run('repair', '--force', 'a');
  assert.equal(repaired.code, 0, repaired.err);
  assert.match(repaired.out, /^shards\/a\/files\/odd: not taken: not a key of a shard's object\n/);
  assert.match(repaired.out, new RegExp(`manifest of shard a written: ${names.length} blocks, ${4 * names.length} objects\n$`));
  for (const flags of [[], ['--deep'], ['--deep', 'a']]) {
    const whole = await run('verify', ...flags);
    assert.equal(whole.code, 0, whole.out + whole.err);
    assert.match(whole.out, new RegExp('^shards/a/files/odd: no manifest names it \\(1 bytes\\)\n' +
      `1 shard verified, ${4 * names.length} objects, \\d+ bytes, 0 findings; 1 without a name\n$`));
  }
  const again = await run('repair', '--force', 'a');
  assert.equal(again.code, 1);
  assert.match(again.err, /shards\/a\/manifest is there and can be read/);
  // behind our back
  const rows = `shards/a/blocks/${names[0]}/rows.ldb`;
  const bytes = Buffer.from(await s3.get(rows));
  bytes[100] ^= 1;
  await s3.put(rows, bytes);
  await s3.call('DELETE', `shards/a/blocks/${names[1]}/meta.json`);
  const harmed = await run('verify', 'a');
  assert.equal(harmed.code, 1);
  assert.match(harmed.out, new RegExp(`^${rows}: its hash is another one\n`, 'm'));
  assert.match(harmed.out, new RegExp(`^shards/a/blocks/${names[1]}/meta.json: not there\n`, 'm'));
  assert.match(harmed.out, /, 2 findings; 1 without a name\n$/);
  // a manifest that cannot be read, and blocks that cannot be taken
  await s3.put('shards/a/manifest', '{}');
  const half = await run('repair', '--force', 'a');
  assert.equal(half.code, 0, half.err);
  assert.match(half.out, new RegExp(`^shards/a/blocks/${names[1]}: not taken: it has no meta.json\n`, 'm'));
  assert.match(half.out, new RegExp(`written: ${names.length - 1} blocks`));
});

test('Wrong arguments and unreachable stores are named', async (t) => {
  const dir = scratch(t);
  const none = join(dir, 'none.yml');
  writeFileSync(none, 'scrape_configs: []\n');
  const file = bucketFile(dir, { endpoint: 'http://127.0.0.1:1', bucket: 'b', accessKey: 'A', secretKey: 'S3CRET' });
  for (const [code, args, message] of [
    [1, ['ls', `--config.file=${none}`], /none\.yml: it has no `bucket`/],
    [1, ['ls', `--config.file=${join(dir, 'gone.yml')}`], /gone\.yml: No such file/],
    [2, ['copy', `--config.file=${file}`, dir, dir], /neither FROM nor TO begins with bucket:/],
    [2, ['copy', `--config.file=${file}`, 'bucket:a', 'bucket:a'], /FROM and TO are the same/],
    [2, ['copy', `--config.file=${file}`, `--to.config.file=${file}`, 'bucket:a', dir], /--to\.config\.file is for copies between two buckets/],
    [2, ['copy', `--config.file=${file}`, '--workers=0', 'bucket:a', dir], /--workers may be 1 to 64/],
    [2, ['repair', `--config.file=${file}`], /usage: epitool bucket repair/],
    [1, ['repair', `--config.file=${file}`, '--force', '../a'], /a shard's name has letters, digits/],
    [1, ['verify', `--config.file=${none}`], /none\.yml: it has no `bucket`/],
    [2, ['get', `--config.file=${file}`], /usage: epitool bucket get/],
    [1, ['put', `--config.file=${file}`, join(dir, 'gone'), 'k'], /gone: No such file/],
    [1, ['get', `--config.file=${file}`, 'a//b'], /key "a\/\/b" has an empty part/],
    [1, ['copy', `--config.file=${file}`, join(dir, 'gone'), 'bucket:'], /gone: No such file/],
  ]) {
    const run = await finish(t, epitool, ['bucket', ...args], 30);
    assert.equal(run.code, code, `${args.join(' ')}\n${run.err}`);
    assert.match(run.err, message);
    assert.ok(!run.err.includes('S3CRET'));
  }
  const run = await finish(t, epitool, ['bucket', '--help']);
  assert.equal(run.code, 0);
  assert.match(run.out, /^usage: epitool bucket COMMAND /);
});
