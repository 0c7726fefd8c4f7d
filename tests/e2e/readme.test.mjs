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
  // Those of files have theirs: files.test.mjs has the server's answers to forms.
  const withFiles = queries.filter((q) => q.includes('file("'));
  assert.equal(withFiles.length, 1);
  for (const q of withFiles) {
    queries.splice(queries.indexOf(q), 1);
    const body = new FormData();
    body.append('query', q);
    for (const [, name] of q.matchAll(/file\("([^"]+)"\)/g)) body.append('file', new Blob(['main;f 1\n']), name);
    const res = await fetch(`${server.url}/api/v1/query`, { method: 'POST', body });
    assert.equal(res.status, 200, `${q}: ${await res.text()}`);
  }
  assert.ok(queries.length >= 12, `${queries.length}`);
  for (const q of queries) await query(server, q).catch((e) => assert.fail(`${q}: ${e.message}`));
});

test('its configurations are accepted', async (t) => {
  const dir = scratch(t);
  const blocks = [...readme.matchAll(/```yaml\n([\s\S]*?)```/g)].map((m) => m[1]);
  assert.equal(blocks.length, 9);
  const [jobs, partOfJob, cpp, native, links, socket, users, store, pushed] = blocks;
  const nativeHere = native.replace('/usr/lib/debug, /mnt/image', dir);
  const key = join(dir, 'key');
  writeFileSync(key, 'secret');
  const storeHere = store.replace('/run/secrets/s3', key);
  writeFileSync(join(dir, 'ci.token'), 'a-token-for-this-test');
  writeFileSync(join(dir, 'web.yml'), users.replaceAll('$2y$10$...', () => '$2y$10$0NZoNlLiSY9EXnGuSTv0Du8/2nz.zlgTVB.r3TaD312pwE6WV.gUe'));
  const web = await finish(t, epitool, ['check', 'web-config', join(dir, 'web.yml')]);
  assert.equal(web.code, 0, `${web.out}${web.err}`);
  for (const text of [jobs, jobs + partOfJob, jobs + cpp, jobs + socket, nativeHere, links, storeHere, pushed]) {
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
