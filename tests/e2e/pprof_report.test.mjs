// The report of go tool pprof -top and its options: of files and of queries, by epitool top and by the API, each byte for byte.
import test from 'node:test';
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { epitool, execFileSync, finish, join, request, root, scratch, startServer, writeFileSync } from './lib.mjs';

const recorded = (kind) => join(root, `tests/proto/testdata/go_${kind}.pb.gz`);
const run = (t, ...args) => finish(t, epitool, args);
const env = { ...process.env, TZ: 'UTC', PPROF_BINARY_PATH: '/nowhere' };
// Versions print the time differently.
const timeless = (text) => text.replace(/^Time: .*\n/m, '');

let tool;
/** Of choices the command line of the tool has the values alone: -cum for sort=cum. */
const flagOf = (option) => `-${option.replace(/^(sort|granularity)=/, '')}`;
function pprof(options, ...files) {
  if (!tool) execFileSync('go', ['tool', 'pprof', '-h'], { stdio: 'ignore' }); // builds it
  tool ??= execFileSync('go', ['tool', '-n', 'pprof']).toString().trim();
  const all = ['-top', '-symbolize=none', ...options.some((o) => o.startsWith('nodefraction')) ? [] : ['-nodefraction=0'],
    ...options.map(flagOf), ...files];
  return timeless(execFileSync(tool, all, { env, stdio: ['ignore', 'pipe', 'ignore'] }).toString());
}

const cases = [
  [], ['noinlines'], ['nodefraction=0.005'], ['nodefraction=0.05', 'nodecount=7'], ['unit=ms'], ['unit=us', 'divide_by=10'], ['sort=cum'],
  ['granularity=lines'], ['granularity=filefunctions', 'noinlines'], ['trim_path=/usr', 'granularity=filefunctions'],
  ['tagroot=tenant'], ['tagleaf=tenant,nowhere', 'sort=cum', 'nodecount=20'], ['trim=false', 'edgefraction=0.5'],
  ['compact_labels', 'relative_percentages', 'drop_negative'],
];

test('epitool top of files is go tool pprof -top', async (t) => {
  for (const options of cases) {
    const got = await run(t, 'top', '--format=text', ...options.map((o) => `--${o}`), recorded('cpu'));
    assert.equal(got.code, 0, got.err);
    assert.equal(timeless(got.out), pprof(options, recorded('cpu')), options.join(' '));
  }
  for (const flag of ['base', 'diff_base'])
    for (const more of [[], ['normalize'], ['noinlines', 'unit=kb']]) {
      const args = [...more.map((o) => `--${o}`), `--${flag}=${recorded('heap')}`];
      const got = await run(t, 'top', '--type=alloc_space', ...args, recorded('allocs'));
      assert.equal(got.code, 0, got.err);
      const want = pprof(['sample_index=alloc_space', ...more, `${flag}=${recorded('heap')}`], recorded('allocs'));
      assert.equal(timeless(got.out), want, args.join(' '));
    }
});

test('epitool top and format=text of a query are go tool pprof -top of its answer', async (t) => {
  const dir = scratch(t);
  const server = await startServer(t, {
    dir, args: ['--web.enable-ingest', '--storage.tsdb.out-of-order-time-window=10000d', '--storage.tsdb.retention.time=10000d'], config: 'scrape_configs: []\n',
  });
  const at = `--server=${server.url}`;
  for (const kind of ['cpu', 'heap', 'allocs']) {
    const pushed = await run(t, 'push', at, '-l', 'job=shop', '-l', `run=${kind}`, recorded(kind));
    assert.equal(pushed.code, 0, pushed.err);
  }
  const window = { start: '2020-01-01T00:00:00Z', end: `${Math.floor(Date.now() / 1000) + 3600}` };
  const ask = async (params) => request(`${server.url}/api/v1/query?${new URLSearchParams({ ...window, ...params })}`);
  const save = async (name, query) => {
    const answer = await ask({ query, format: 'pprof' });
    assert.equal(answer.status, 200, answer.body.toString());
    writeFileSync(join(dir, name), answer.body);
    return join(dir, name);
  };
  const flags = [at, `--start=${window.start}`, `--end=${window.end}`];
  const params = (options) => Object.fromEntries(options.map((o) => (o.includes('=') ? [o.slice(0, o.indexOf('=')), o.slice(o.indexOf('=') + 1)] : [o, 'true'])));

  const query = 'merge(cpu:cpu{job="shop"})';
  const file = await save('cpu.pb.gz', query);
  for (const options of cases) {
    const want = pprof(options, file);
    const text = await ask({ query, format: 'text', ...params(options) });
    assert.equal(text.status, 200, text.body.toString());
    assert.equal(timeless(text.body.toString()), want, options.join(' '));
    const got = await run(t, 'top', ...flags, '--format=text', ...options.map((o) => `--${o}`), query);
    assert.equal(got.code, 0, got.err);
    assert.equal(timeless(got.out), want, options.join(' '));
  }

  const [allocs, heap] = ['allocs', 'heap'].map((of) => `merge(memory:alloc_space{run="${of}"})`);
  const files = [await save('allocs.pb.gz', allocs), await save('heap.pb.gz', heap)];
  for (const base of ['base', 'diff_base'])
    for (const more of [[], ['normalize'], ['noinlines', 'unit=kb', 'nodefraction=0.01']]) {
      const want = pprof([...more, `${base}=${files[1]}`], files[0]);
      const text = await ask({ query: allocs, format: 'text', [base]: heap, ...params(more) });
      assert.equal(text.status, 200, text.body.toString());
      assert.equal(timeless(text.body.toString()), want, `${base} ${more}`);
      const got = await run(t, 'top', ...flags, ...more.map((o) => `--${o}`), `--${base}=${heap}`, allocs);
      assert.equal(timeless(got.out), want, `${base} ${more}`);
    }
  // A file beside a query, the labels of a run, and the data directory without its server.
  const beside = await run(t, 'top', ...flags, `--diff_base=${files[1]}`, allocs);
  assert.equal(timeless(beside.out), pprof([`diff_base=${files[1]}`], files[0]), beside.err);
  const ofRun = await run(t, 'top', ...flags, '--profile=memory:alloc_space', '--diff_base=run=heap', 'run=allocs');
  assert.equal(timeless(ofRun.out), pprof([`diff_base=${files[1]}`], files[0]), ofRun.err);
  await server.stop();
  const local = await run(t, 'top', `--data=${join(dir, 'data')}`, ...flags.slice(1), `--base=${heap}`, '--noinlines', allocs);
  assert.equal(timeless(local.out), pprof(['noinlines', `base=${files[1]}`], files[0]), local.err);
});

test('files of all formats: each report is go tool pprof -top of the file as pprof', async (t) => {
  const dir = scratch(t);
  const server = await startServer(t, { dir, config: 'scrape_configs: []\n' });
  const post = async (path, fields) => {
    const form = new FormData(), name = basename(path);
    for (const [key, value] of Object.entries({ query: `file("${name}")`, ...fields })) form.append(key, value);
    form.append('f', new Blob([readFileSync(path)]), name);
    const answer = await fetch(`${server.url}/api/v1/query`, { method: 'POST', body: form });
    return { status: answer.status, body: Buffer.from(await answer.arrayBuffer()) };
  };
  const filesIn = (folder) => readdirSync(folder, { withFileTypes: true })
    .flatMap((entry) => (entry.isDirectory() ? filesIn(join(folder, entry.name)) : [join(folder, entry.name)]));
  const sets = [['noinlines'], ['granularity=lines', 'nodefraction=0.01', 'tagroot=thread,tenant', 'tagleaf=state']];
  let files = 0, changed = 0;
  for (const path of ['testdata', 'jfr/recordings', 'folded/testdata', 'legacy/testdata'].flatMap((folder) => filesIn(join(root, 'tests/proto', folder)))) {
    const saved = await post(path, { format: 'pprof' });
    if (saved.status !== 200) continue; // damaged ones, and texts beside them
    const file = join(dir, 'f.pb.gz');
    writeFileSync(file, saved.body);
    for (const options of sets) {
      const fields = Object.fromEntries(options.map((o) => [...o.split('='), 'true'].slice(0, 2)));
      const got = await post(path, { format: 'text', ...fields });
      assert.equal(timeless(got.body.toString()), pprof(options, file), `${path} ${options.join(' ')}`);
    }
    const [plain, without] = await Promise.all([{}, { noinlines: 'true' }].map((more) => post(path, { format: 'text', ...more })));
    changed += !plain.body.equals(without.body);
    files++;
  }
  t.diagnostic(`${files} files, ${changed} change with noinlines`);
  assert.ok(files >= 25, `${files} files`);
});

test('the book has a row for each option of go tool pprof, and for no other', async (t) => {
  const asked = await finish(t, 'go', ['tool', 'pprof', '-h']), help = asked.out + asked.err;
  const options = help.slice(help.indexOf('Output formats'), help.indexOf('Environment Variables')).matchAll(/^ +-(\w+)/gm);
  const known = [...new Set([...options].map((m) => m[1]))].sort();
  assert.ok(known.length > 80, known.join(' '));
  const book = readFileSync(join(root, 'web/book/reference/pprof.md'), 'utf8');
  const rows = [...book.matchAll(/^\| (`-.*?) \|(.*)\|(.*)\|$/gm)];
  const named = rows.flatMap((row) => [...row[1].matchAll(/`-(\w+)`/g)].map((m) => m[1])).sort();
  assert.deepEqual(named, known);
  for (const [row, , , says] of rows) assert.match(says, /^ (equal|different|missing)/, row);
});

/** A profile of samples in main, each with its value: equal samples, which nothing has merged. */
function profileOf(values) {
  const strings = ['', 'samples', 'count', 'main'];
  const varint = (v) => {
    const out = [];
    for (let n = BigInt.asUintN(64, BigInt(v)); ; n >>= 7n) {
      if (n < 128n) return [...out, Number(n)];
      out.push(Number(n & 127n) | 128);
    }
  };
  const field = (n, bytes) => [n << 3 | 2, bytes.length, ...bytes];
  return Buffer.from([
    ...field(1, [8, 1, 16, 2]),
    ...values.flatMap((v) => field(2, [8, 1, 16, ...varint(v)])),
    ...field(4, [8, 1, ...field(4, [8, 1])]),
    ...field(5, [8, 1, 16, 3]),
    ...strings.flatMap((s) => field(6, [...Buffer.from(s)])),
  ]);
}

test('totals of mixed signs are those of go tool pprof', async (t) => {
  const dir = scratch(t);
  const server = await startServer(t, { dir, config: 'scrape_configs: []\n' });
  for (const [name, values] of [['mixed', [10, -4, 3]], ['nothing', [5, -5]], ['plain', [5, 6]]]) {
    const file = join(dir, `${name}.pb`);
    writeFileSync(file, profileOf(values));
    const want = pprof([], file), total = values.reduce((sum, v) => sum + Math.abs(v), 0);
    assert.match(want, new RegExp(` of ${total} total`));
    assert.equal((await run(t, 'top', '--format=text', file)).out, want);
    assert.match((await run(t, 'top', file)).out, new RegExp(`^samples: total ${total}\n`));
    const form = new FormData();
    form.append('query', 'file("f")');
    form.append('format', 'text');
    form.append('f', new Blob([profileOf(values)]), 'f');
    const answer = await (await fetch(`${server.url}/api/v1/query`, { method: 'POST', body: form })).text();
    assert.equal(timeless(answer), want, name);
  }
});

test('parameters and flags of the report that are wrong', async (t) => {
  const server = await startServer(t, { dir: scratch(t), config: 'scrape_configs: []\n' });
  const refused = [
    [{ nodefraction: '2' }, 'invalid parameter "nodefraction": must be a number from 0 to 1, not "2"'],
    [{ nodefraction: 'x' }, 'invalid parameter "nodefraction": must be a number from 0 to 1, not "x"'],
    [{ edgefraction: '-1' }, 'invalid parameter "edgefraction": must be a number from 0 to 1, not "-1"'],
    [{ nodecount: '1.5' }, 'invalid parameter "nodecount": must be a whole number, not "1.5"'],
    [{ divide_by: '0' }, 'invalid parameter "divide_by": must be a number above 0, not "0"'],
    [{ divide_by: '0x10' }, 'invalid parameter "divide_by": must be a number above 0, not "0x10"'],
    [{ noinlines: 'maybe' }, 'invalid parameter "noinlines": must be true or false, not "maybe"'],
    [{ sort: 'size' }, 'invalid parameter "sort": must be one of flat|cum, not "size"'],
    [{ granularity: 'file' }, 'invalid parameter "granularity": must be one of functions|filefunctions|files|lines|addresses, not "file"'],
    [{ normalize: 'true' }, 'normalize is given with base or diff_base'],
    [{ normalize: 'x', base: 'cpu' }, 'invalid parameter "normalize": must be "true" or "false"'],
    [{ base: 'cpu', diff_base: 'cpu' }, 'use either base or diff_base'],
    [{ base: 'cpu{' }, 'base: 1:5: unexpected end of query, expected string, "}" or label name'],
    [{ base: 'cpu{}', query: 'cpu' }, 'base: the query found no profiles', 404],
    [{ noinlines: 'true', query: '1' }, 'format=text needs profiles, the query gives a scalar'],
  ];
  for (const [params, want, status = 400] of refused) {
    const answer = await request(`${server.url}/api/v1/query?${new URLSearchParams({ query: 'cpu', format: 'text', ...params })}`);
    assert.equal(answer.body.toString().trimEnd(), want, JSON.stringify(params));
    assert.equal(answer.status, status, JSON.stringify(params));
  }
  const json = await request(`${server.url}/api/v1/query?query=cpu&noinlines=true`);
  assert.match(json.body.toString(), /noinlines needs format=text and a query of profiles at one time or from start to end/);
  const range = await request(`${server.url}/api/v1/query_range?query=cpu&start=1&end=2&step=1&format=text&unit=ms`);
  assert.match(range.body.toString(), /unit needs format=text and a query of profiles at one time/);
  const file = recorded('cpu');
  for (const [args, want] of [
    [['--nodefraction=2', file], '--nodefraction: must be a number from 0 to 1, not "2"'],
    [['--normalize', file], '--normalize is given with --base or --diff_base'],
    [['--base=a', '--diff_base=b', file], 'either --base or --diff_base'],
    [['--format=csv', file], '--format is table or text, not "csv"'],
    [['--format=table', '--noinlines', file], '--noinlines needs --format=text'],
    [['--unit=ms', '--by=line', file], '--by is of the table; the report has --granularity'],
    [['--unit=ms', '--measure=cum', file], '--measure is of the table; the report has --sort'],
  ]) {
    const got = await run(t, 'top', ...args);
    assert.equal(got.code, 2, args.join(' '));
    assert.ok(got.err.startsWith(`epitool: error: ${want}\n`), got.err);
  }
  const other = await run(t, 'top', `--base=${recorded('heap')}`, file);
  assert.equal(other.code, 1);
  assert.match(other.err, /go_heap\.pb\.gz: it has no sample type "cpu"\n/);
});
