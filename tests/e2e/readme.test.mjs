// The README's examples work: its queries are answered, its configurations accepted, its files are there.
import test from 'node:test';
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { epitool, existsSync, finish, join, query, root, scratch, startServer, writeFileSync } from './lib.mjs';

const readme = readFileSync(join(root, 'README.md'), 'utf8');

test('every query of the README is answered', async (t) => {
  const server = await startServer(t, { dir: scratch(t), config: 'scrape_configs: []\n' });
  const section = readme.slice(readme.indexOf('## The language, by example'), readme.indexOf('## The API, by example'));
  const queries = [...section.matchAll(/^\| `([^`]+)` \|/gm)].map((m) => m[1]);
  queries.push(...[...readme.matchAll(/query=([^'&]+\))'/g)].map((m) => decodeURIComponent(m[1])));
  assert.ok(queries.length >= 12, `${queries.length}`);
  for (const q of queries) await query(server, q).catch((e) => assert.fail(`${q}: ${e.message}`));
});

test('its configurations are accepted', async (t) => {
  const dir = scratch(t);
  const blocks = [...readme.matchAll(/```yaml\n([\s\S]*?)```/g)].map((m) => m[1]);
  assert.equal(blocks.length, 6);
  const [jobs, partOfJob, cpp, native, store, pushed] = blocks;
  const nativeHere = native.replace('/usr/lib/debug, /mnt/image', dir);
  const key = join(dir, 'key');
  writeFileSync(key, 'secret');
  const storeHere = store.replace('/run/secrets/s3', key);
  for (const text of [jobs, jobs + partOfJob, jobs + cpp, nativeHere, storeHere, pushed]) {
    writeFileSync(join(dir, 'c.yml'), text);
    const run = await finish(t, epitool, ['check', 'config', join(dir, 'c.yml')]);
    assert.equal(run.code, 0, `${text}\n${run.err}`);
  }
});

test('its rules are accepted', async (t) => {
  const file = join(scratch(t), 'r.yml');
  const [, text] = readme.match(/```yml\n([\s\S]*?)```/);
  writeFileSync(file, text);
  const run = await finish(t, epitool, ['check', 'rules', file]);
  assert.match(run.err, /SUCCESS: 2 rules found/);
});

test('what it links to is there', () => {
  for (const [, path] of readme.matchAll(/!\[[^\]]*\]\(([^)]+)\)/g)) assert.ok(existsSync(join(root, path)), path);
  for (const [, path] of readme.matchAll(/`((?:base|proto|tsdb|promql|web|cmd|examples|tests|discovery|scrape)\/[\w./]*)`/g))
    assert.ok(existsSync(join(root, path)), path);
});
