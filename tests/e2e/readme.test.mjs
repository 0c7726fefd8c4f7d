// The README is of one screen, and what it names is there. book.test.mjs runs its examples, demo.test.mjs its queries.
import test from 'node:test';
import assert from 'node:assert/strict';
import { readFileSync, readdirSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { existsSync, join, root } from './lib.mjs';

const LINES_MAX = 150;
const SCREEN_MAX = 40;
const PICTURE_BYTES_MAX = 1e6;
const CONTRIBUTORS = ['.github/CONTRIBUTING.md', '.github/SECURITY.md'];
const read = (file) => readFileSync(join(root, file), 'utf8');
const readme = read('README.md');

test('it is short, and the pages for contributors are of one screen', () => {
  assert.ok(readme.split('\n').length - 1 <= LINES_MAX);
  for (const file of CONTRIBUTORS) assert.ok(read(file).split('\n').length - 1 <= SCREEN_MAX, file);
});

test('what they link to is there', () => {
  for (const file of ['README.md', ...CONTRIBUTORS]) {
    const links = [...read(file).matchAll(/\]\(([^)#]+)[^)]*\)/g)].map((m) => m[1]).filter((to) => !/^https?:/.test(to));
    assert.ok(links.length >= 5, file);
    for (const to of links) assert.ok(existsSync(join(root, dirname(file), to)), `${file}: ${to}`);
  }
});

test('its pictures are small', () => {
  const pictures = [...readme.matchAll(/!\[([^\]]+)\]\(([^)]+)\)/g)];
  assert.equal(pictures.length, 2);
  for (const [, , path] of pictures) assert.ok(statSync(join(root, path)).size <= PICTURE_BYTES_MAX, path);
});

test('paths of the tree that it and the book name are there', () => {
  const book = join(root, 'web/book');
  const chapters = readdirSync(book).flatMap((folder) => (statSync(join(book, folder)).isDirectory() ? readdirSync(join(book, folder)) : [])
    .filter((name) => name.endsWith('.md')).map((name) => `web/book/${folder}/${name}`));
  assert.ok(chapters.length > 50);
  for (const file of ['README.md', ...CONTRIBUTORS, ...chapters])
    for (const [, path] of read(file).matchAll(/`((?:base|proto|tsdb|promql|web|cmd|examples|tests|discovery|scrape|\.github)\/[\w./-]*)`/g))
      assert.ok(existsSync(join(root, path)), `${file}: ${path}`);
});
