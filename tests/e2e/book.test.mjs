// Every example of the book and of the README is run: configurations and rules are checked, queries are answered, commands print what the book says.
import test from 'node:test';
import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { printsAs, readChapters, readReadme, runChapter, startExamples } from './book_examples.mjs';
import { wrongFlags } from './book_flags.mjs';
import { join, scratch, writeFileSync } from './lib.mjs';

/** An example of each kind that is wrong, and what is said of it. The line of each fence follows from those before it. */
const BROKEN = [
  ['yaml config', 'scrape_confix: []', /field scrape_confix not found/],
  ['yaml job', '- job_name: a\n  scrape_intervall: 5s', /field scrape_intervall not found/],
  ['yaml rules', 'groups:\n  - name: a\n    rules:\n      - record: b\n        expr: sum(', /expr/],
  ['yaml web', 'basic_auth_users: [alice]', /cannot unmarshal !!seq into map/],
  ['yaml other', 'a: [1\nb: 2', /did not find expected/],
  ['promql', 'nothing_of_this_name(cpu)', /^400: .*nothing_of_this_name/],
  ['promql range', 'cpu[', /^400: /],
  ['promql parse', 'cpu{job=}', /^400: /],
  ['sh', 'echo before; false; echo after', /^exit code 1: before$/],
  ['sh', 'cat of_another_chapter', /^exit code 1: cat: of_another_chapter: No such file/],
  ['sh', 'epitool query --no-such-flag cpu', /no-such-flag/],
  ['sh elsewhere', 'if true; then', /syntax error/],
  ['sh elsewhere', 'epimetheus --config.files=a.yml', /^epimetheus has no flag --config\.files$/],
  ['sh elsewhere', 'sudo /usr/local/bin/epitool check config \\\n  --syntax-onl a.yml && epitool quarry cpu', /^epitool check config has no flag --syntax-onl; there is no epitool quarry$/],
];
const SOUND = `
\`\`\`yaml config file=conf/e.yml
scrape_configs: []
\`\`\`

\`\`\`yaml job
- job_name: a
  static_configs: [{targets: ["a:1"]}]
\`\`\`

\`\`\`yaml other
a: |
  text

  more
---
- b
\`\`\`

\`\`\`yaml web
tls_server_config:
  cert_file: /etc/epimetheus/server.crt
  key_file: server.key
\`\`\`

\`\`\`promql
# A comment.
topk(1, flat(merge(cpu{version="v2"}[5m])))
\`\`\`

\`\`\`promql range
total(rate(cpu{job="demo"}[1m]))
\`\`\`

\`\`\`promql parse
cpu{job="nobody"}
\`\`\`

\`\`\`sh
epitool check config --syntax-only conf/e.yml 2>&1 | sed 's/^ *//' >kept
curl -s http://127.0.0.1:7272/-/healthy
\`\`\`

\`\`\`text
Epimetheus is ...
\`\`\`

\`\`\`sh
cat kept; echo 127.0.0.1:7272
\`\`\`

\`\`\`text
Checking conf/e.yml
SUCCESS: ...
127.0.0.1:7272
\`\`\`

\`\`\`sh
epitool query 'total(cpu{job="epimetheus"}[5m])' >/dev/null
\`\`\`

\`\`\`sh elsewhere
kubectl logs deploy/epimetheus --tail=5
docker run epimetheus --config.file=/e.yml --no-config.ignore-foreign # --nothing
epitool query --format=json 'cpu --nothing' | jq .
\`\`\`
`;

/** A book of one chapter. */
function oneChapter(dir, name, text) {
  const folder = join(dir, 'web/book/start');
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(dir, 'web/book/book.json'), '{"sections": [{"title": "Start", "folder": "start"}]}');
  writeFileSync(join(folder, 'chapters.json'), JSON.stringify([name]));
  writeFileSync(join(folder, `${name}.md`), `# Examples\n\nOf a test.\n${text}`);
  return readChapters(dir, join(dir, 'parts'))[0];
}

test('flags of our programs are found in commands', () => {
  for (const [text, wrong] of [
    ['epimetheus --web.listen-address=:1 --version', []],
    ['epimetheus --nothing; epitool --help', ['epimetheus has no flag --nothing']],
    ['out=$(epitool query --nothing cpu)', ['epitool query has no flag --nothing']],
    ['A=b build/epitool debuginfo upload --nothing x', ['epitool debuginfo upload has no flag --nothing']],
    ['echo "$(date)" # epimetheus --nothing', []],
    ['systemctl status epimetheus --no-pager', []],
    ['go test --nothing ./... | epitool diff --nothing a b', ['epitool diff has no flag --nothing']],
  ]) assert.deepEqual(wrongFlags(text), wrong, text);
});

test('"..." stands for any text, all else for itself', () => {
  for (const [out, want, is] of [
    ['a 1 b\n', 'a ... b', true],
    ['a\nmore\nb\n', 'a\n...\nb\n', true],
    ['a (1.5)  \nb', 'a (1.5)\nb', true],
    ['a (1x5)', 'a (1.5)', false],
    ['a b c', 'a b', false],
    ['', '...', true],
  ]) assert.equal(printsAs(out, want), is, `${out} | ${want}`);
});

test('examples', async (t) => {
  const context = await startExamples(t, scratch(t));

  await t.test('sound ones of each kind pass', async () => {
    const chapter = oneChapter(scratch(t), 'sound', SOUND);
    assert.equal(chapter.fences.length, 13);
    assert.deepEqual(await runChapter(context, chapter), []);
  });

  await t.test('a broken one of each kind is found, with file and line', async () => {
    let text = '', line = 4;
    const want = [];
    for (const [info, body, said] of [...BROKEN, ['sh', 'echo 1\n```\n\n```text\n2', /^prints\n1\nwhere the book has\n2$/]]) {
      text += `\n\`\`\`${info}\n${body}\n\`\`\`\n`;
      want.push([`web/book/start/broken.md:${line + 1}: `, said]);
      line += body.split('\n').length + 3;
    }
    const found = await runChapter(context, oneChapter(scratch(t), 'broken', text));
    assert.equal(found.length, want.length, found.join('\n'));
    for (const [i, [at, said]] of want.entries()) {
      assert.equal(found[i].slice(0, at.length), at);
      assert.match(found[i].slice(at.length), said);
    }
  });

  for (const chapter of [readReadme(), ...readChapters()].filter((c) => c.fences.length))
    await t.test(chapter.id, async () => {
      assert.deepEqual(await runChapter(context, chapter), []);
    });
});
