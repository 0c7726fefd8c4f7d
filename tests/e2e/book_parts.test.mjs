// The book's generated parts say what the programs say: metrics of a live server, flags, commands, rules.
import test from 'node:test';
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { build, epimetheus, epitool, execFileSync, finish, helpFlags, join, root, scratch, startServer } from './lib.mjs';

async function parts(t) {
  const dir = scratch(t);
  const run = await finish(t, join(build, 'book_parts'), [dir], 60, { cwd: root });
  assert.equal(run.code, 0, run.err);
  return (name) => readFileSync(join(dir, `${name}.md`), 'utf8');
}

// Cells of the rows of all tables, as they read.
function rows(text) {
  return text.split('\n').filter((l) => l.startsWith('| ') && !l.startsWith('|---')).map((l) =>
    l.slice(1, -1).split(/(?<!\\)\|/).map((cell) => cell.trim().replace(/\\([\\`*_[\]<>|])/g, '$1')));
}

test('every metric of a live server is in the part, with type and help', async (t) => {
  const part = await parts(t);
  const known = new Map(rows(part('metrics')).map(([name, type, , help]) => [name.replaceAll('`', ''), { type, help }]));
  const server = await startServer(t, { dir: scratch(t), config: 'scrape_configs: []\n', args: ['--web.enable-ingest', '--web.enable-admin-api'] });
  await fetch(`${server.url}/api/v1/ingest?name=cpu`, { method: 'POST', body: 'main;f 1\n' }); // some have labels
  const text = await (await fetch(`${server.url}/metrics`)).text();
  const help = new Map([...text.matchAll(/^# HELP (\S+) (.*)$/gm)].map((m) => [m[1], m[2].replace(/\\\\/g, '\\')]));
  const types = [...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)];
  assert.ok(types.length > 100, `${types.length}`);
  for (const [, name, type] of types) assert.deepEqual(known.get(name), { type, help: help.get(name) }, name);
});

test('every metric that the sources define is in the part', async (t) => {
  const text = (await parts(t))('metrics');
  const rooms = ['base', 'discovery', 'scrape', 'tsdb', 'promql', 'web', 'cmd/epimetheus'];
  const sources = execFileSync('find', [...rooms, '-name', '*.c'], { cwd: root, encoding: 'utf8' }).trim().split('\n');
  const names = sources.flatMap((f) => [...readFileSync(join(root, f), 'utf8')
    .matchAll(/\bMETRIC_(?:COUNTER|GAUGE|HISTOGRAM|INFO)\(\s*\w+,\s*"(\w+)"/g)].map((m) => m[1]));
  assert.ok(names.length > 150, `${names.length}`);
  for (const name of names) assert.ok(text.includes(`| \`${name}\` | `), name);
});

const ownFlags = (help) => helpFlags(help).filter((f) => f !== 'help' && f !== 'version');
const flagsIn = (text) => [...text.matchAll(/^\| `(?:-\w`, `)?--((?:\[no-\])?[a-z0-9._-]+)`/gm)].map((m) => m[1]);

test('flags and exit codes are those that --help prints', async (t) => {
  const part = await parts(t);
  const help = await finish(t, epimetheus, ['--help']);
  assert.deepEqual(flagsIn(part('flags-epimetheus')), ownFlags(help.out));
  const list = await finish(t, epitool, ['--help']);
  const sections = part('epitool').split(/^### epitool /m).slice(1);
  const commands = [...list.out.matchAll(/^  ([a-z].*?)  +\S/gm)].map((m) => m[1]);
  assert.equal(sections.length, commands.length);
  for (const section of sections) {
    const command = section.slice(0, section.indexOf('\n'));
    const own = await finish(t, epitool, [...command.split(' '), '--help']);
    assert.equal(own.code, 0, command);
    assert.deepEqual(flagsIn(section), ownFlags(own.out), command);
    const codes = own.out.slice(own.out.indexOf('Exit codes:')).match(/^  \d+/gm).map(Number);
    const said = section.match(/^Exit codes: .*$/m)[0].match(/(?:: |; )(\d+) /g).map((c) => Number(c.slice(2)));
    assert.deepEqual([...said, 2].sort((a, b) => a - b), codes, command);
  }
});

test('every rule to copy is in the part', async (t) => {
  const text = (await parts(t))('alerts');
  const dir = join(root, 'examples/rules');
  const names = readdirSync(dir).filter((f) => f.endsWith('.yml'))
    .flatMap((f) => [...readFileSync(join(dir, f), 'utf8').matchAll(/^ +- (alert|record): (\S+)$/gm)]);
  assert.ok(names.length > 30, `${names.length}`);
  for (const [, kind, name] of names) assert.ok(text.includes(`\n| ${kind} | \`${name}\` | \``), name);
});
