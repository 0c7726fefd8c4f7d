// Names of functions with line ends, escape sequences, NUL and bytes that are no UTF-8: what people read has none of
// them, what programs read has them in its own form.
import test from 'node:test';
import assert from 'node:assert/strict';
import { gunzipSync } from 'node:zlib';
import { cpuProfile } from '../browser/pprof.mjs';
import { epitool, finish, join, request, scratch, startServer, writeFileSync } from './lib.mjs';

const evil = Buffer.concat([Buffer.from('main.\x1b]0;owned\x07\n0 0\r\0\u202e'), Buffer.from([0xff]), Buffer.from('.run')]);
const SHOWN = 'main.\\x1b]0;owned\\a\\n0 0\\r\\x00\\u202e\\xff.run';

/** Text of lines that print: a terminal shows each as one line. */
function lines(bytes) {
  const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  assert.doesNotMatch(text, /[\0-\x09\x0b-\x1f\x7f-\x9f]/);
  return text.split('\n');
}

test('names are escaped where people read them', async (t) => {
  const dir = scratch(t);
  const file = join(dir, 'cpu.pb.gz');
  const names = [evil, 'main.main'];
  const profile = (value) => cpuProfile({ functions: names.map((name) => ({ name, line: 1 })), samples: [{ stack: [1, 0], value }, { stack: [1], value: 1e6 }] });
  writeFileSync(file, profile(2e7));
  writeFileSync(`${file}.new`, profile(3e7));
  const server = await startServer(t, { dir, args: ['--web.enable-ingest'], config: 'scrape_configs: []\n' });
  const at = `--server=${server.url}`;
  const run = async (...args) => {
    const child = await finish(t, epitool, args);
    return { code: child.code, out: lines(Buffer.from(child.out, 'utf8')), err: lines(Buffer.from(child.err, 'utf8')) };
  };
  assert.equal((await run('push', at, '-l', 'job=a', file)).code, 0);
  const ask = async (format, query = 'cpu{job="a"}', more = {}) => {
    const end = Math.floor(Date.now() / 1000) + 60;
    const res = await request(`${server.url}/api/v1/query?${new URLSearchParams({ query, format, start: end - 3600, end, ...more })}`);
    assert.equal(res.status, 200, res.body.toString());
    return res.body;
  };

  await t.test('answers', async () => {
    assert.deepEqual(lines(await ask('folded')), ['main.main 1000000', `main.main;${SHOWN.replace(';', ':')} 20000000`, '']);
    assert.ok(lines(await ask('text')).some((l) => l.endsWith(`  ${SHOWN}`)));
    assert.ok(lines(await ask('text', 'flat(cpu)')).some((l) => l.includes(`function="${SHOWN}"`)));
    for (const format of ['json', 'speedscope']) {
      const [body, end] = lines(await ask(format));
      assert.equal(end, '');
      assert.ok(JSON.stringify(JSON.parse(body)).includes('"main.\\u001b]0;owned\\u0007\\n0 0\\r\\u0000\u202e\ufffd.run"'), body);
    }
    // Data as it was recorded, which go tool pprof prints as it is.
    assert.ok(gunzipSync(await ask('pprof')).includes(evil));
  });

  await t.test('epitool', async () => {
    for (const where of [at, `--data=${join(dir, 'data')}`]) {
      for (const [format, query] of [['table', 'top(3, cpu)'], ['table', 'flat(cpu)'], ['folded', 'cpu'], ['text', 'cpu']]) {
        const r = await run('query', where, '--start=-1h', `--format=${format}`, query);
        assert.equal(r.code, 0, r.err.join('\n'));
        const want = format === 'table' ? SHOWN.replace('\\xff', '\ufffd') : format === 'folded' ? SHOWN.replace(';', ':') : SHOWN;
        assert.ok(r.out.some((l) => l.includes(want)), r.out.join('\n'));
      }
    }
    const dump = await run('tsdb', 'dump', join(dir, 'data'));
    assert.equal(dump.code, 0);
    assert.ok(dump.out.some((l) => l.startsWith(`main.main;${SHOWN} `)), dump.out.join('\n'));
    const diff = await run('diff', '--threshold=1%', file, `${file}.new`);
    assert.equal(diff.code, 1);
    assert.ok(diff.out.some((l) => l.endsWith(`  ${SHOWN}`)), diff.out.join('\n'));
    assert.ok(diff.err.some((l) => l.endsWith(`first ${SHOWN}`)), diff.err.join('\n'));
  });

  await t.test('errors of a server', async () => {
    const { createServer } = await import('node:http');
    const other = createServer((req, res) => { res.statusCode = 500; res.end('gone\x1b[2J\nfor good\n'); });
    await new Promise((done) => other.listen(0, '127.0.0.1', done));
    t.after(() => other.close());
    const r = await run('query', `--server=http://127.0.0.1:${other.address().port}`, '1');
    assert.equal(r.code, 1);
    assert.equal(r.err[0], 'epitool: error: gone\\x1b[2J\\nfor good');
  });
});
