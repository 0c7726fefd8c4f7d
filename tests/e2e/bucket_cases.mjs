// `epitool bucket` on any store: what it puts, lists, gets and copies is what is there.
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { mkdirSync, readFileSync, readdirSync, statSync, utimesSync } from 'node:fs';
import { dirname } from 'node:path';
import { epitool, finish, join, scratch, writeFileSync } from './lib.mjs';

/** A configuration file with the store's bucket. */
export function bucketFile(dir, store, { prefix = '', name = 'bucket.yml' } = {}) {
  const file = join(dir, name);
  writeFileSync(join(dir, `${name}.secret`), `${store.secretKey}\n`);
  writeFileSync(file, `bucket:
  endpoint: ${store.endpoint}
  bucket: ${store.bucket}
  prefix: '${prefix}'
  access_key: ${store.accessKey}
  secret_key_file: ${name}.secret
`);
  return file;
}

/** Runs `epitool bucket`; gives its standard output. */
export async function tool(t, file, command, ...args) {
  const run = await finish(t, epitool, ['bucket', command, `--config.file=${file}`, ...args]);
  assert.equal(run.code, 0, run.err);
  return run.out;
}

export function writeTree(dir, tree) {
  for (const [name, bytes] of Object.entries(tree)) {
    mkdirSync(dirname(join(dir, name)), { recursive: true });
    writeFileSync(join(dir, name), bytes);
  }
}

/** Files below a directory, with a hash of each. */
export function readTree(dir) {
  return Object.fromEntries(readdirSync(dir, { recursive: true }).filter((name) => statSync(join(dir, name)).isFile()).sort()
    .map((name) => [name, hash(readFileSync(join(dir, name)))]));
}

const hash = (bytes) => createHash('sha256').update(bytes).digest('hex');
export const hashes = (tree) => Object.fromEntries(Object.entries(tree).sort(([a], [b]) => (a < b ? -1 : 1)).map(([k, v]) => [k, hash(v)]));

const ulid = '01ARZ3NDEKTSV4RRFFQ69G5FAV';
export const shard = {
  'shards/a/manifest': '{"shard": "a"}',
  [`shards/a/blocks/${ulid}/meta.json`]: '{"version": 1}',
  [`shards/a/blocks/${ulid}/rows.ldb`]: randomBytes(300000),
  [`shards/a/blocks/${ulid}/rollups.ldb`]: randomBytes(20000),
  [`shards/a/blocks/${ulid}/spare`]: '',
  'shards/a/head/1700000000-0011223344556677/00000000000000000001': randomBytes(1000),
  'shards/a/files/ids-0123456789abcdef': 'ids',
};

export async function bucketCases(t, store, s3) {
  const dir = scratch(t);
  const file = bucketFile(dir, store, { prefix: 'tool/x' });

  await t.test('a tree is put, listed and got', async () => {
    const source = join(dir, 'source');
    writeTree(source, shard);
    const n = Object.keys(shard).length;
    assert.match(await tool(t, file, 'copy', source, 'bucket:'), new RegExp(`^copied ${n} objects, .*; 0 were there\n$`));
    const listed = JSON.parse(await tool(t, file, 'ls', '--all', '--json'));
    assert.deepEqual(listed.map((o) => [o.key, o.bytes]), Object.entries(shard).map(([k, v]) => [k, v.length]).sort());
    assert.ok(listed.every((o) => Math.abs(Date.parse(o.modified) - Date.now()) < 3600e3 && o.etag));
    assert.deepEqual(await s3.keys({ prefix: 'tool/x/' }), Object.keys(shard).sort().map((k) => `tool/x/${k}`));
    assert.deepEqual(JSON.parse(await tool(t, file, 'ls', '--json', 'shards/a/')).map((o) => o.prefix ?? o.key),
      ['shards/a/blocks/', 'shards/a/files/', 'shards/a/head/', 'shards/a/manifest']);
    const text = await tool(t, file, 'ls', 'shards/a/m');
    assert.match(text, /^ *bytes +modified +key\n *14 +20\S+Z +shards\/a\/manifest\n$/);
    assert.equal(await tool(t, file, 'ls', 'none/'), await tool(t, file, 'ls', 'nothing/'));
    // and back
    const copy = join(dir, 'copy');
    assert.match(await tool(t, file, 'copy', 'bucket:shards/', copy), new RegExp(`^copied ${n} objects`));
    assert.deepEqual(readTree(copy), Object.fromEntries(Object.entries(hashes(shard)).map(([k, v]) => [k.slice(7), v])));
    assert.deepEqual((await tool(t, file, 'get', 'shards/a/manifest')), shard['shards/a/manifest']);
    const rows = `shards/a/blocks/${ulid}/rows.ldb`;
    await tool(t, file, 'get', rows, join(dir, 'new/rows'));
    assert.equal(hash(readFileSync(join(dir, 'new/rows'))), hash(shard[rows]));
    await tool(t, file, 'put', join(dir, 'new/rows'), 'other/rows');
    assert.equal(hash(await s3.get('tool/x/other/rows')), hash(shard[rows]));
  });

  await t.test('a copy goes on where it ended', async () => {
    const source = join(dir, 'source');
    const n = Object.keys(shard).length;
    assert.match(await tool(t, file, 'copy', source, 'bucket:'), new RegExp(`^copied 0 objects, .*; ${n} were there\n$`));
    // the same size and other bytes, a missing one, another time
    await s3.put('tool/x/shards/a/files/ids-0123456789abcdef', 'idS');
    await s3.call('DELETE', 'tool/x/shards/a/manifest');
    utimesSync(join(source, `shards/a/blocks/${ulid}/spare`), 1, 1);
    assert.match(await tool(t, file, 'copy', source, 'bucket:'), new RegExp(`^copied 2 objects, .*; ${n - 2} were there\n$`));
    assert.equal((await s3.get('tool/x/shards/a/files/ids-0123456789abcdef')).toString(), 'ids');
    const copy = join(dir, 'copy');
    writeFileSync(join(copy, 'a/manifest'), shard['shards/a/manifest'].toUpperCase());
    assert.match(await tool(t, file, 'copy', 'bucket:shards', copy), new RegExp(`^copied 1 objects, .*; ${n - 1} were there\n$`));
    assert.equal(readFileSync(join(copy, 'a/manifest'), 'utf8'), shard['shards/a/manifest']);
  });

  await t.test('one bucket is copied into another', async () => {
    const other = bucketFile(dir, store, { prefix: 'elsewhere', name: 'other.yml' });
    const n = Object.keys(shard).length;
    const run = await tool(t, file, 'copy', `--to.config.file=${other}`, 'bucket:shards', 'bucket:copies/of');
    assert.match(run, new RegExp(`^copied ${n} objects`));
    for (const [key, bytes] of Object.entries(shard))
      assert.equal(hash(await s3.get(`elsewhere/copies/of/${key.slice(7)}`)), hash(bytes), key);
    assert.match(await tool(t, file, 'copy', `--to.config.file=${other}`, 'bucket:shards', 'bucket:copies/of'), /^copied 0 objects/);
  });

  await t.test('a file larger than a part', async () => {
    const big = join(dir, 'big');
    const bytes = Buffer.alloc(70 << 20, randomBytes(1 << 20));
    writeFileSync(big, bytes);
    await tool(t, file, 'put', big, 'big');
    await tool(t, file, 'get', 'big', join(dir, 'big.copy'));
    assert.ok(readFileSync(join(dir, 'big.copy')).equals(bytes));
    writeTree(join(dir, 'bigs'), { big: bytes });
    assert.match(await tool(t, file, 'copy', join(dir, 'bigs'), 'bucket:'), /^copied 0 objects, .*; 1 were there/);
  });
}
