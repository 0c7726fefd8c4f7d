// epitool as people use it: against a server, against its data directory while it runs and after, and files that
// `go tool pprof` opens.
import test from 'node:test';
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, readdirSync } from 'node:fs';
import {
  epitool, execFileSync, finish, join, programEnds, request, scratch, start, startDemo, startServer, until,
  writeFileSync,
} from './lib.mjs';

const run = (t, ...args) => finish(t, epitool, args);

async function profileOf(t, file, version, regression) {
  const demo = await startDemo(t, version, regression, 300);
  await until('a profile of many samples', 30, async () => {
    writeFileSync(file, (await request(`http://${demo.address}/debug/pprof/profile?seconds=3`)).body);
    const raw = execFileSync('go', ['tool', 'pprof', '-raw', file], { stdio: ['ignore', 'pipe', 'ignore'] }).toString();
    return [...raw.matchAll(/^ +(\d+) +\d+: /gm)].reduce((n, m) => n + Number(m[1]), 0) >= 50;
  });
  const heap = await request(`http://${demo.address}/debug/pprof/allocs`);
  writeFileSync(file.replace('cpu', 'heap'), heap.body);
  const mutex = await request(`http://${demo.address}/debug/pprof/mutex`);
  writeFileSync(file.replace('cpu', 'mutex'), mutex.body);
  await demo.stop();
}

const top = (file) => execFileSync('go', ['tool', 'pprof', '-top', '-nodefraction=0', '-nodecount=5', file], { stdio: ['ignore', 'pipe', 'ignore'] }).toString();

/** The rows of go tool pprof's report, without what its head says of the machine. */
const rows = (text) => text.slice(text.indexOf('      flat')).trim();

test('epitool: push, query, diff', async (t) => {
  const dir = scratch(t);
  const one = join(dir, 'cpu1.pb.gz'), two = join(dir, 'cpu2.pb.gz');
  await profileOf(t, one, 'v1', 'none');
  await profileOf(t, two, 'v2', 'parsePrices');
  const server = await startServer(t, { dir, args: ['--web.enable-ingest'], config: 'scrape_configs: []\n' });
  const at = `--server=${server.url}`, data = `--data=${join(dir, 'data')}`;

  await t.test('push stores files, and says which one failed', async () => {
    const ok = await run(t, 'push', at, '-l', 'run=1', '-l', 'job=bench', one, one.replace('cpu', 'heap'), one.replace('cpu', 'mutex'));
    assert.equal(ok.code, 0, ok.err);
    assert.match(ok.out, /cpu1\.pb\.gz: stored as process_cpu at 20.*Z, \d+ samples\n/);
    assert.match(ok.out, /heap1\.pb\.gz: stored as memory at /);
    assert.match(ok.out, /mutex1\.pb\.gz: stored as mutex at /);
    assert.match(ok.out, /\n3 stored, 0 failed\n$/);
    const bad = join(dir, 'bad');
    writeFileSync(bad, 'no profile');
    const some = await run(t, 'push', at, '-l', 'run=2', '-l', 'job=bench', bad, two, two.replace('cpu', 'heap'));
    assert.equal(some.code, 1);
    assert.match(some.err, /^epitool: error: .*bad: /);
    assert.match(some.out, /\n2 stored, 1 failed\n$/);
    // Bytes that are not gzipped, through standard input, under a name and a time.
    const raw = join(dir, 'raw');
    writeFileSync(raw, execFileSync('gunzip', ['-c', one]));
    const child = start(t, 'sh', ['-c', `"$0" push "$1" -l run=3 -l job= --name wall --time now-1m - < "$2"`, epitool, at, raw]);
    assert.equal((await programEnds(child)).code, 0, child.err);
    assert.match(child.out, /^-: stored as wall at /);
    const refused = await run(t, 'push', at, '-l', 'job=bench', '-l', '__x=1', one);
    assert.equal(refused.code, 1);
    assert.match(refused.err, /cpu1\.pb\.gz: .*"__x" is not a label name/);
    const unknown = join(dir, 'locks.pb.gz');
    writeFileSync(unknown, readFileSync(one.replace('cpu', 'mutex')));
    const which = await run(t, 'push', at, '-l', 'job=bench', '-l', 'run=1', unknown);
    assert.equal(which.code, 1);
    assert.match(which.err, /its sample types do not say which profile it is: use --name/);
    const nobody = await run(t, 'push', at, '-l', 'run=4', one);
    assert.equal(nobody.code, 2);
    assert.match(nobody.err, /^epitool: error: the profiles have no job: name it with -l job=NAME; -l job= stores them without\nusage: /);
    // A service is a job.
    assert.equal((await run(t, 'push', at, '-l', 'service_name=shop', '-l', 'run=5', one.replace('cpu', 'heap'))).code, 0);
    const series = JSON.parse((await request(`${server.url}/api/v1/series?match[]=${encodeURIComponent('{run="5"}')}`)).body).data;
    assert.ok(series.length > 0);
    for (const labels of series) assert.deepEqual([labels.job, labels.service_name], ['shop', 'shop']);
  });

  const span = ['--start', '-1h'];
  const cpu = 'merge(cpu{run="1"})';

  await t.test('tables', async () => {
    const table = await run(t, 'query', at, ...span, 'total(cpu)');
    assert.equal(table.code, 0, table.err);
    const lines = table.out.trimEnd().split('\n');
    assert.match(lines[0], /^ *value  environment  job +run$/);
    assert.match(lines[1], /^ *[\d.]+(ms|s)  ci           bench  1$/);
    assert.equal(lines.length, 4); // that of run 3, called wall, has CPU time too
    const topTable = await run(t, 'query', at, ...span, `top(3, ${cpu})`);
    assert.match(topTable.out, /^\{\}  total [\d.]+(ms|s)\n *flat +flat% +sum% +cum +cum%  function\n/);
    assert.equal(topTable.out.trimEnd().split('\n').length, 5);
    const steps = await run(t, 'query', at, '--start=-2m', '--step', '1m', `total(${cpu})`);
    assert.equal(steps.code, 0, steps.err);
    assert.match(steps.out, /^\{\}\ntime +value\n20\S+Z +[\d.]+m?s$/m);
    const limited = await run(t, 'query', at, ...span, '--limit=1', '--json', 'total(cpu)');
    assert.equal(JSON.parse(limited.out).data.result.length, 1);
    for (const where of [at, data]) {
      const few = JSON.parse((await run(t, 'query', where, ...span, '--max-nodes=3', '--json', cpu)).out).data.result[0].flamebearer;
      assert.ok(few.names.includes('other'), where);
      assert.ok(few.levels.flat().length / 4 <= 2 * 3, where); // each may have one for what was left out
    }
  });

  await t.test('every format is the same from the server and from its data directory', async () => {
    for (const format of ['table', 'json', 'folded', 'speedscope', 'text', 'pprof']) {
      for (const text of [cpu, `top(5, ${cpu})`]) {
        const out = ['server', 'data'].map((w) => join(dir, `${w}.${format}`));
        const args = ['--start', '-1h', '--end', '2030-01-01T00:00:00Z', `--format=${format}`, text];
        const a = await run(t, 'query', at, '-o', out[0], ...args), b = await run(t, 'query', data, '-o', out[1], ...args);
        assert.equal(a.code, 0, `${format}: ${a.err}`);
        assert.equal(b.code, 0, `${format}: ${b.err}`);
        const bytes = out.map((f) => readFileSync(f));
        assert.ok(bytes[0].length > 20, format);
        if (format === 'pprof') assert.equal(rows(top(out[1])), rows(top(out[0])));
        else assert.equal(bytes[1].toString(), bytes[0].toString(), format);
      }
    }
    // What was pushed is what comes back.
    const back = join(dir, 'back.pb.gz');
    assert.equal((await run(t, 'query', data, ...span, '--format=pprof', '-o', back, cpu)).code, 0);
    assert.equal(rows(top(back)), rows(top(one)));
  });

  await t.test('explain', async () => {
    for (const where of [at, data]) {
      const plan = await run(t, 'query', where, '--time=now', '--explain', `total(${cpu})`);
      assert.equal(plan.code, 0, plan.err);
      assert.match(plan.out, /^total\(merge\(cpu\{run="1"\}\)\)  # /);
      assert.match(plan.out, /\nall: about \d+ samples of \d+/);
      const json = await run(t, 'query', where, '--explain', '--analyze', '--json', cpu);
      assert.ok(JSON.parse(json.out).data.tree, json.out);
    }
  });

  await t.test('errors show where', async () => {
    for (const where of [at, data]) {
      const bad = await run(t, 'query', where, 'cpu{job="x"} +\n  flat(1)');
      assert.equal(bad.code, 1);
      assert.equal(bad.err, 'epitool: error: 2:8: flat() needs profiles, got a scalar\n  flat(1)\n       ^\n');
    }
    assert.equal((await run(t, 'query', `--data=${join(dir, 'none')}`, '1')).code, 1);
  });

  await t.test('diff of runs, queries and files agree', async () => {
    const json = async (...args) => {
      const r = await run(t, 'diff', '--json', '--limit=0', ...args);
      assert.equal(r.code, 0, r.err);
      return JSON.parse(r.out);
    };
    const files = await json(one, two);
    const named = /^ +\d+ +(\d+): \d/; // a goroutine that just begins has no frame, and is in no row
    const sum = (file, sample = /^ +\d+ +(\d+):/) => Number(execFileSync('go', ['tool', 'pprof', '-raw', file], { stdio: ['ignore', 'pipe', 'ignore'] })
      .toString().split('\n').map((l) => l.match(sample)?.[1] || 0).reduce((a, b) => a + Number(b), 0));
    assert.equal(files.total.base, sum(one));
    assert.equal(files.total.new, sum(two));
    assert.equal(files.rows.reduce((a, r) => a + r.flat.base, 0), sum(one, named));
    const changes = files.rows.map((r) => Math.abs(r.change));
    assert.deepEqual(changes, [...changes].sort((a, b) => b - a));
    for (const where of [at, data]) {
      assert.deepEqual(await json(where, 'run=1', 'run=2,job=bench'), files);
      assert.deepEqual(await json(where, cpu, 'merge(cpu{run="2"})'), files);
    }
    const normal = await json('--normalize', one, two);
    const back = normal.rows.reduce((a, r) => a + r.flat.new, 0);
    const want = normal.total.base * sum(two, named) / sum(two);
    assert.ok(Math.abs(back - want) <= normal.rows.length, `${back} ${want}`);
    const heap = await json(at, '--profile=memory:alloc_space', 'run=1', 'run=2');
    assert.equal(heap.unit, 'bytes');
  });

  await t.test('diff is a test for CI', async () => {
    const same = await run(t, 'diff', at, '--threshold=2%', '--total-threshold=5%', 'run=1', 'run=1');
    assert.equal(same.code, 0, same.err);
    assert.match(same.out, /^cpu: base .* \(\+0\.00%\)\n/);
    const worse = await run(t, 'diff', at, '--threshold=0.5%', '--both-ways', '--measure=cum', 'run=1', 'run=2');
    assert.equal(worse.code, 1);
    assert.match(worse.out, /\n *[-+][\d.]+m?s +! [-+][\d.]+%  /);
    assert.match(worse.err, /^epitool: \d+ above --threshold=0\.5%, first .+\n$/);
    const none = await run(t, 'diff', at, 'run=1', 'run=77');
    assert.equal(none.code, 4);
    assert.equal(none.err, `epitool: info: no series of "cpu" has run="77" in this time range\n` +
      "epitool: error: run=77: the query found no profiles\n");
  });

  await t.test('the data directory of a server that has ended', async () => {
    assert.equal((await server.stop()).code, 0);
    const temporary = join(dir, 'tmp');
    mkdirSync(temporary);
    const r = await finish(t, epitool, ['query', data, ...span, '--json', `total(${cpu})`], 60, { env: { TMPDIR: temporary } });
    assert.equal(r.code, 0, r.err);
    assert.equal(r.err, '');
    assert.deepEqual(readdirSync(temporary), []);
    assert.equal(JSON.parse(r.out).data.result.length, 1);
    assert.equal((await run(t, 'query', at, '1')).code, 1);
  });
});

test('epitool: the command line', async (t) => {
  const flags = {
    query: ['format', 'json', 'output', 'limit', 'max-nodes', 'time', 'start', 'end', 'step', 'explain', 'analyze', 'server', 'http.config.file', 'data', 'timeout'],
    push: ['label', 'name', 'time', 'interval', 'server', 'http.config.file', 'timeout'],
    diff: ['normalize', 'by', 'measure', 'threshold', 'total-threshold', 'both-ways', 'function-threshold', 'function-budget',
      'least-share', 'cannot-tell', 'limit', 'json', 'profile', 'match', 'type', 'start', 'end',
      'server', 'http.config.file', 'data', 'timeout'],
    compare: ['normalize', 'by', 'measure', 'limit', 'profile', 'match', 'type', 'start', 'end', 'ago', 'base-start', 'base-end', 'server',
      'http.config.file', 'data', 'timeout'],
    top: ['watch', 'count', 'limit', 'by', 'measure', 'profile', 'match', 'type', 'time', 'start', 'end', 'server', 'http.config.file', 'data', 'timeout',
      'format', 'base', 'diff_base', 'normalize', 'nodecount', 'nodefraction', 'edgefraction', 'trim', 'sort', 'granularity', 'noinlines', 'unit',
      'divide_by', 'relative_percentages', 'drop_negative', 'compact_labels', 'showcolumns', 'tagroot', 'tagleaf', 'trim_path', 'source_path'],
    flame: ['print', 'width', 'profile', 'match', 'type', 'time', 'start', 'end', 'server', 'http.config.file', 'data', 'timeout'],
  };
  for (const [command, list] of Object.entries(flags)) {
    const help = await run(t, command, '--help');
    assert.equal(help.code, 0);
    assert.ok(help.out.startsWith(`usage: epitool ${command} [FLAGS] `), help.out);
    const shown = [...help.out.matchAll(/^  (?:-\w, |    )--(?:\[no-\])?([a-z._-]+)/gm)].map((m) => m[1]);
    assert.deepEqual(shown, ['help', 'version', ...list]);
    assert.match(help.out.replace(/\s+/g, ' '), /Exit codes: 0 .* 1 .* 2 /);
    for (const line of help.out.split('\n')) assert.ok(line.length <= 90, line);
    const wrong = [['--nonsense'], []];
    if (command === 'query') {
      wrong.push(['--format=xml', '1'], ['1', '2'], ['--time=yesterday', '1'], ['--time=1', '--start=1', '1'], ['--end=1', '1'],
        ['--step=1m', '1'], ['--start=2', '--end=1', '1'], ['--analyze', '1'], ['--json', '--format=text', '1'], ['--limit=x', '1'], ['--limit']);
    }
    if (command === 'push') wrong.push(['-l', 'x', 'f'], ['-l', '1=2', 'f'], ['--time=then', '-l', 'job=a', 'f'], ['-l', 'run=1', 'f']);
    if (command === 'compare') wrong.push(['a', 'b', 'c'], ['--by=age', 'a', 'b'], ['--measure=x', 'a', 'b'], ['--start=then', 'a', 'b'], ['--base-start=then', 'cpu']);
    if (command === 'top' || command === 'flame') wrong.push(['a', 'b'], ['--start=then', 'cpu'], ['--time=1', '--start=1', 'cpu']);
    if (command === 'diff') wrong.push(['a'], ['a', 'b', 'c'], ['--by=age', 'a', 'b'], ['--threshold=much', 'a', 'b'], ['--measure=x', 'a', 'b'],
      ['--function-threshold=0%', 'a', 'b'], ['--function-budget=12%', 'a', 'b'], ['--function-budget=f=100%', 'a', 'b'], ['--cannot-tell=maybe', 'a', 'b']);
    for (const args of wrong) {
      const r = await run(t, command, ...args);
      assert.equal(r.code, 2, `${command} ${args}: ${r.err}`);
      assert.match(r.err, /^epitool: error: .+\nusage: epitool /, `${command} ${args}`);
    }
  }
});

test('epitool: help and version', async (t) => {
  const all = await run(t, '--help');
  const commands = [...all.out.matchAll(/^  (([a-z]+)(?: ([a-z]+))?) .*$/gm)];
  assert.ok(commands.length > 20);
  assert.deepEqual(await run(t, 'help').then((r) => [r.code, r.out]), [0, all.out]);
  for (const name of ['check', 'convert', 'test', 'debuginfo', 'bucket', 'tsdb']) {
    const below = commands.filter((c) => c[2] === name).map((c) => c[0]);
    const text = `usage: epitool ${name} COMMAND [FLAGS] [ARGUMENTS]\n\n${below.join('\n')}\n\n\`epitool ${name} COMMAND --help\` shows a command's flags.\n`;
    for (const args of [[name, '--help'], [name, '-h'], ['help', name]]) {
      const r = await run(t, ...args);
      assert.deepEqual([r.code, r.out, r.err], [0, text, ''], args.join(' '));
    }
  }
  for (const command of ['query', 'check config']) {
    const own = await run(t, ...command.split(' '), '--help'), asked = await run(t, 'help', ...command.split(' '));
    assert.deepEqual([asked.code, asked.out], [0, own.out], command);
  }
  const none = await run(t, 'help', 'chek');
  assert.deepEqual([none.code, none.err.split('\n')[0]], [2, 'epitool: error: unknown command \'chek\'; did you mean "check"?']);
  const version = await run(t, 'version');
  assert.deepEqual([version.code, version.out], [0, (await run(t, '--version')).out]);
  assert.match(version.out, /^epitool/);
});

/** On a terminal of so many columns: what it shows. */
function onTerminal(t, columns, args, input = 'pipe') {
  const quoted = args.map((a) => `'${a}'`).join(' ');
  return start(t, 'script', ['-qefc', `stty cols ${columns}; exec ${quoted}`, '/dev/null'], { stdio: [input, 'pipe', 'pipe'] });
}

test('epitool: on a terminal', async (t) => {
  const { createServer } = await import('node:http');
  const name = 'a/package/of/a/name/that/is/long.Function';
  const answer = { status: 'success', data: { resultType: 'vector', unit: 'bytes', result: [{ metric: { function: name }, value: [1, '2048'] }] } };
  // It answers once somebody has been told that it is waited for.
  const told = {};
  const slow = createServer((req, res) => told[req.url.includes('explain') ? 'never' : 'table'].then(() => res.end(JSON.stringify(answer))));
  await new Promise((done) => slow.listen(0, '127.0.0.1', done));
  t.after(() => { slow.closeAllConnections(); slow.close(); });
  const at = `--server=http://127.0.0.1:${slow.address().port}`;
  told.never = new Promise(() => {});
  told.table = new Promise((done) => told.now = done);
  const run = onTerminal(t, 30, [epitool, 'query', at, '1']);
  await until('it waits', 10, () => run.out.includes('waiting'));
  told.now();
  await programEnds(run);
  assert.equal(run.code, 0, run.out);
  // The line with the time is erased before the table, whose names are cut to fit.
  assert.match(run.out, /^\r\x1b\[Kwaiting for the answer: \d+\.\d s(\r\x1b\[Kwaiting for the answer: \d+\.\d s)*\r\x1b\[K *value  function\r\n/);
  assert.ok(run.out.endsWith(`2kB  …${name.slice(-22)}\r\n`), run.out);
  const binary = onTerminal(t, 80, [epitool, 'query', at, '--format=pprof', '1']);
  assert.equal((await programEnds(binary)).code, 2);
  assert.match(binary.out, /^epitool: error: pprof is binary: name a file with --output\r\n/);
  const stopped = onTerminal(t, 80, [epitool, 'query', at, '--explain', '1']);
  await until('it waits', 10, () => stopped.out.includes('waiting'));
  stopped.child.stdin.write('\x03');
  assert.equal((await programEnds(stopped)).code, 130);
  assert.match(stopped.out, /\r\x1b\[Kepitool: error: canceled\r\n$/);
});

test('epitool: Ctrl-C ends the wait for an answer', async (t) => {
  const { createServer } = await import('node:net');
  let connected = 0;
  const silent = createServer(() => connected++);
  await new Promise((done) => silent.listen(0, '127.0.0.1', done));
  t.after(() => silent.close());
  for (const [signal, code] of [['SIGINT', 130], ['SIGTERM', 143]]) {
    const before = connected;
    const child = start(t, epitool, ['query', `--server=http://127.0.0.1:${silent.address().port}`, '1']);
    await until('it has connected', 10, () => connected > before);
    const canceled = await child.stop(signal);
    assert.equal(canceled.code, code);
    assert.equal(canceled.err, 'epitool: error: canceled\n');
  }
});

test('epitool: Ctrl-C cancels the query on the server', async (t) => {
  const dir = scratch(t);
  const server = await startServer(t, { dir, config: 'scrape_configs: []\n' });
  const metrics = async () => (await request(`${server.url}/metrics`)).body.toString();
  // Expressions that look through a long label and do not match, at each of many steps: minutes of work, no memory.
  const long = `label_replace(vector(1), "x", "${'ab'.repeat(15000)}", "", "")`;
  const slow = Array.from({ length: 60 }).reduce((q, _, i) => `label_replace(${q}, "y", "", "x", "(.*a){9}c${i}")`, long);
  const child = start(t, epitool, ['query', `--server=${server.url}`, '--start=-3h', '--step=1s', slow]);
  await until('the server evaluates it', 20, async () => child.code !== undefined || /^epimetheus_queries 1$/m.test(await metrics()));
  const canceled = await child.stop('SIGINT');
  assert.equal(canceled.code, 130, canceled.err);
  assert.equal(canceled.err, 'epitool: error: canceled\n');
  await until('the server has stopped', 10, async () => /^epimetheus_queries 0$/m.test(await metrics()));
  assert.match(await metrics(), /^epimetheus_queries_total\{result="canceled"\} 1$/m);
});
