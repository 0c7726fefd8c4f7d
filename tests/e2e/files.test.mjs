// Profiles in files: asked with curl's forms, kept through kill -9, and damaged ones.
import test from 'node:test';
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { api, epitool, existsSync, finish, join, query, request, root, scratch, startServer, until, writeFileSync } from './lib.mjs';

const config = 'scrape_configs: []\n';
const args = ['--web.enable-files', '--web.enable-admin-api'];
const folded = 'main;f 30\nmain;g 10\n';

async function send(server, params, body, method = 'POST', path = 'files') {
  const res = await request(`${server.url}/api/v1/${path}?${new URLSearchParams(params)}`, { method, body });
  return { status: res.status, answer: JSON.parse(res.body) };
}

async function total(server, name, type) {
  const text = `total(file("${name}"${type ? `, "${type}"` : ''}))`;
  return Number((await query(server, text)).result[0].value[1]);
}

/** A query with files, as curl -F sends it. */
async function form(server, fields, files) {
  const body = new FormData();
  for (const [name, value] of Object.entries(fields)) body.append(name, value);
  for (const [name, bytes] of Object.entries(files)) body.append('file', new Blob([bytes]), name);
  const res = await fetch(`${server.url}/api/v1/query`, { method: 'POST', body });
  return { status: res.status, text: await res.text() };
}

test('each format is read, and compared with the others', async (t) => {
  const server = await startServer(t, { dir: scratch(t), config });
  const read = (path) => readFileSync(join(root, 'tests/proto', path));
  const files = {
    'go.pb.gz': read('testdata/go_heap.pb.gz'),
    'perf.folded': read('folded/testdata/folded'),
    'py.json': read('folded/testdata/pyspy.speedscope.json'),
    'java.jfr': read('jfr/recordings/async.jfr.gz'),
    'gperf.prof': read('legacy/testdata/gperftools.cpu'),
  };
  for (const name of Object.keys(files)) {
    const { answer } = await send(server, { name }, files[name]);
    assert.equal(answer.status, 'success', JSON.stringify(answer));
    for (const p of answer.data.profiles)
      for (const { type } of p.types) {
        const { status, text } = await form(server, { query: `file("${name}", "${p.name}:${type}")` }, { [name]: files[name] });
        assert.equal(status, 200, text);
      }
    const top = await form(server, { query: `top(3, file("${name}"))`, format: 'text' }, { [name]: files[name] });
    assert.match(top.text, /^File: |^Type: |flat%/m);
  }
  const diff = await form(server, { query: 'top(5, diff(file("java.jfr"), file("gperf.prof")))', format: 'text' }, files);
  assert.match(diff.text, /flat%/);
  assert.deepEqual(existsSync(join(server.child.spawnargs.find((a) => a.startsWith('--storage.tsdb.path=')).slice(20), 'files')), false);
});

test('the tool reads what the page reads', async (t) => {
  for (const path of ['folded/testdata/pyspy.speedscope.json', 'jfr/recordings/async.jfr.gz', 'testdata/go_cpu.pb.gz']) {
    const run = await finish(t, epitool, ['top', join(root, 'tests/proto', path)]);
    assert.equal(run.code, 0, run.err);
    assert.match(run.out, /flat/i);
  }
});

test('a kept file outlives kill -9, and expires', async (t) => {
  const dir = scratch(t);
  let server = await startServer(t, { dir, config, args });
  const kept = (await send(server, { name: 'cpu.folded', keep: '7d' }, folded)).answer.data;
  assert.match(kept.id, /^[0-9a-f]{32}$/);
  const short = (await send(server, { name: 'short.folded', keep: '2s' }, folded)).answer.data;
  assert.equal(await total(server, kept.id), 40);
  await server.stop('SIGKILL');
  server = await startServer(t, { dir, config, args });
  assert.equal(await total(server, kept.id), 40);
  await until('the short one is over', 5, async () =>
    (await send(server, { query: `file("${short.id}")` }, '', 'POST', 'query')).status === 404);
  const { files } = await api(server, 'files');
  assert.deepEqual(files.map((f) => [f.id, f.name, f.bytes]), [[kept.id, 'cpu.folded', folded.length]]);
  assert.deepEqual(readdirSync(join(dir, 'data/files')), [`${kept.id}.file`]);
  assert.equal((await send(server, {}, '', 'DELETE', `files/${kept.id}`)).status, 200);
  assert.deepEqual(readdirSync(join(dir, 'data/files')), []);
});

test('a damaged file is named, and what is full refuses', async (t) => {
  const dir = scratch(t);
  let server = await startServer(t, { dir, config, args });
  const { id } = (await send(server, { name: 'cpu.folded', keep: '7d' }, folded)).answer.data;
  const path = join(dir, `data/files/${id}.file`);
  writeFileSync(path, readFileSync(path, 'utf8').replace('main;f 30', 'main;f 31'));
  await assert.rejects(total(server, id), new RegExp(`the kept file .*files/${id}\\.file is damaged: its bytes are not those`));
  await server.stop('SIGKILL');
  writeFileSync(path, 'short');
  server = await startServer(t, { dir, config, args: [...args, '--storage.files.max-size=30B', '--storage.files.max-time=1d'] });
  assert.match(server.err, /a kept file is damaged/);
  await assert.rejects(total(server, id), /damaged: its first line cannot be read/);
  const full = await send(server, { name: 'a', keep: '1d' }, folded + folded);
  assert.equal(full.status, 422);
  assert.match(full.answer.error, /--storage\.files\.max-size/);
  const long = await send(server, { name: 'a', keep: '2d' }, folded);
  assert.match(long.answer.error, /1s to 1d \(--storage\.files\.max-time\)/);
});

test('nothing is kept unless the server was told so', async (t) => {
  const dir = scratch(t);
  const server = await startServer(t, { dir, config });
  const { status, answer } = await send(server, { name: 'a', keep: '1d' }, folded);
  assert.equal(status, 404);
  assert.match(answer.error, /--web\.enable-files/);
  assert.equal((await send(server, {}, '', 'DELETE', `files/${'0'.repeat(32)}`)).status, 404);
  assert.equal(existsSync(join(dir, 'data/files')), false);
  const wrong = await finish(t, server.child.spawnfile, ['--storage.files.max-time=0s', `--storage.tsdb.path=${join(dir, 'other')}`], 20);
  assert.match(wrong.err, /--storage\.files\.max-time is not 1s to 1y/);
});
