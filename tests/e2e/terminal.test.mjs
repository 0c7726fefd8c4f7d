// epitool in a terminal: errors that name what was meant, compare, top --watch, flame, and completion in real shells.
import test from 'node:test';
import assert from 'node:assert/strict';
import {
  epimetheus, epitool, execFileSync, finish, helpFlags, join, programEnds, request, scratch, start, startServer, until,
  writeFileSync,
} from './lib.mjs';

const run = (t, ...args) => finish(t, epitool, args);
/** Commands of `epitool tsdb`, in the order of its help. */
const tsdb = ['list', 'analyze', 'verify', 'repair', 'dump', 'backup', 'restore', 'backups'];

const BASE = 'main.main;main.handle;main.parsePrices 10\nmain.main;main.handle;main.parsePrices;runtime.memmove 20\nmain.main;main.serve 70\n';
const NEW = 'main.main;main.handle;main.parsePrices 40\nmain.main;main.handle;main.parsePrices;runtime.memmove 50\nmain.main;main.serve 60\nmain.main;main.retry 5\n';

function files(t) {
  const dir = scratch(t);
  const [one, two] = ['base.folded', 'new.folded'].map((name) => join(dir, name));
  writeFileSync(one, BASE);
  writeFileSync(two, NEW);
  return { dir, one, two };
}

test('epitool: what is neither file nor query', async (t) => {
  const { dir, one } = files(t);
  const nowhere = '--server=http://127.0.0.1:1';
  const wrong = join(dir, 'wrong.pb');
  writeFileSync(wrong, 'hi\n');
  const cases = [
    [['diff', nowhere, 'nope.pb.gz', one], /^epitool: error: nope\.pb\.gz: there is no file of that name, and it is no query: 1:5: unexpected "\."\n$/],
    [['diff', nowhere, one, 'nope.folded'], /^epitool: error: nope\.folded: there is no file of that name, and it is no query: 1:5: unexpected "\."\n$/],
    [['flame', nowhere, '/no/such/file'], /^epitool: error: \/no\/such\/file: there is no file of that name, and it is no query: 1:1: .+\n$/],
    [['query', nowhere, 'nope.pb.gz'], /^epitool: error: nope\.pb\.gz: there is no file of that name, and it is no query: 1:5: unexpected "\."\n$/],
    // What may be a query is asked for.
    [['top', nowhere, 'dir/nope'], /^epitool: error: dir\/nope: there is no file of that name; as a query: connect 127\.0\.0\.1:1: .+\n$/],
    [['diff', nowhere, one, 'nothere'], /^epitool: error: nothere: there is no file of that name, and it is no label of runs such as run=1; as a query: connect 127\.0\.0\.1:1: .+\n$/],
    [['diff', nowhere, 'base-1', one], /^epitool: error: base-1: there is no file of that name, and it is no label of runs such as run=1; as a query: connect 127\.0\.0\.1:1: .+\n$/],
    [['diff', nowhere, one, 'cpu:samples'], /^epitool: error: cpu:samples: connect 127\.0\.0\.1:1: .+\n$/],
    [['compare', nowhere, one, 'cpu'], /^epitool: error: cpu: connect 127\.0\.0\.1:1: .+\n$/],
    [['diff', wrong, one], /^epitool: error: .*wrong\.pb: folded stacks: line 1: .+\n$/],
    [['push', nowhere, '-l', 'job=a', '-l', 'run=1', one], /^epitool: error: .*base\.folded: its sample types do not say which profile it is: use --name\n$/],
    [['query', nowhere, wrong], /^epitool: error: .*wrong\.pb is a file, which epitool top, flame and compare read; as a query: .+\n$/],
    [['flame', '--type=sample', one], /^epitool: error: .*base\.folded: it has no sample type "sample"; did you mean "samples"\?\n$/],
  ];
  for (const [args, error] of cases) {
    const r = await run(t, ...args);
    assert.match(r.err, error, args.join(' '));
    assert.equal(r.code, args[0] === 'diff' ? 4 : 1, args.join(' '));
    assert.equal(r.out, '');
  }
});

test('epitool: did you mean', async (t) => {
  const cases = [
    [['qurey', '1'], `unknown command 'qurey'; did you mean "query"?`],
    [['chek', 'config', 'x.yml'], `unknown command 'chek'; did you mean "check config"?`],
    [['tsdb', 'lst'], `unknown command 'tsdb lst'; it has ${tsdb.join(', ')}; did you mean "tsdb list"?`],
    [['tsdb'], `incomplete command 'tsdb'; it has ${tsdb.join(', ')}`],
    [['xyzzy'], `unknown command 'xyzzy'`],
    [['a\x1b[2J'], `unknown command 'a\\x1b[2J'`],
  ];
  for (const [args, error] of cases) {
    const r = await run(t, ...args);
    assert.equal(r.err, `epitool: error: ${error}\n\`epitool --help\` lists the commands.\n`);
    assert.equal(r.code, 2);
  }
  const flag = await run(t, 'compare', '--nrmalize', 'a', 'b');
  assert.match(flag.err, /unknown long flag '--nrmalize'; did you mean '--normalize'\?/);
  assert.equal(flag.code, 2);
});

test('epitool compare: files', async (t) => {
  const { one, two } = files(t);
  const r = await run(t, 'compare', one, two);
  assert.equal(r.code, 0, r.err);
  assert.equal(r.out, [
    'samples: base 100, new 155',
    'base  new  difference  times  function',
    '  10   40         +30     4x  main.parsePrices',
    '  20   50         +30   2.5x  runtime.memmove',
    '  70   60         -10  0.86x  main.serve',
    '   0    5          +5    new  main.retry',
    '   0    0           0         main.handle',
    '   0    0           0         main.main',
    '',
    'main.parsePrices changed most: 30% -> 58% (1.9x, +60), called only by main.handle.',
    '',
  ].join('\n'));
  const shares = await run(t, 'compare', '--normalize', '--measure=cum', '--limit=1', one, two);
  assert.match(shares.out, /^samples: base 100, new 155, new times 0\.6452 to compare shares\n/);
  assert.match(shares.out, /\n +70 +39 +-31 +0\.56x +main\.serve\n5 more: --limit=0 shows all\n\nmain\.serve changed most: 70% -> 39% \(0\.56x, -31\), called only by main\.main\.\n$/);
  assert.match((await run(t, 'compare', one, one)).out, /\nBoth sides cost the same\.\n$/);
  for (const [args, error] of [[[one], /is compared with what\?/], [['--ago=1d', '--base-start=-2h', 'cpu'], /either --ago or --base-start/],
    [['--base-end=-2h', 'cpu'], /--base-end is given with --base-start/], [['--ago=0s', 'cpu'], /--ago is more than 0/],
    [['--start=-2h', '--base-start=-1h', 'cpu'], /--base-start is behind --start/]]) {
    const wrong = await run(t, 'compare', ...args);
    assert.match(wrong.err, error);
    assert.equal(wrong.code, 2);
  }
});

test('epitool compare: windows of one query', async (t) => {
  const dir = scratch(t);
  const server = await startServer(t, { dir, args: ['--web.enable-ingest', '--storage.tsdb.out-of-order-time-window=6h'], config: 'scrape_configs: []\n' });
  const at = `--server=${server.url}`, now = Math.floor(Date.now() / 1000);
  const send = async (body, minutes) => {
    const from = now - minutes * 60;
    const res = await request(`${server.url}/ingest?${new URLSearchParams({ name: 'shop.cpu{}', from, until: from + 10, format: 'folded', sampleRate: 100 })}`, { method: 'POST', body });
    assert.equal(res.status, 200, res.body.toString());
  };
  await send(BASE, 90);
  await send(NEW, 30);
  const query = 'merge(cpu)';
  const sentence = /\nmain\.parsePrices changed most: 30% -> 58% \(1\.9x, \+600ms of CPU\), called only by main\.handle\.\n$/;
  // The last hour and the one before; the same said in two other ways; two queries over all.
  for (const args of [[query], ['--ago=1h', query], ['--start=-1h', '--base-start=-2h', query]]) {
    const r = await run(t, 'compare', at, ...args);
    assert.equal(r.code, 0, r.err);
    assert.match(r.out, /^cpu: base 1s, new 1\.55s\n/, args.join(' '));
    assert.match(r.out, sentence, args.join(' '));
  }
  const empty = await run(t, 'compare', at, '--ago=3h', query);
  assert.equal(empty.code, 1);
  assert.match(empty.err, /found no profiles|nothing found/);
  const none = await run(t, 'top', at, 'nothere');
  assert.equal(none.code, 1);
  assert.match(none.err, /^epitool: error: nothere: there is no file of that name, and it is no label of runs such as run=1; as a query: the query found no profiles\n$/m);
  const watched = await run(t, 'top', at, '--start=-1h', '--watch=100ms', '--count=2', query);
  assert.equal(watched.code, 0, watched.err);
  assert.match(watched.out, /^cpu: total 1\.55s, 20\S+Z\n flat +flat% +cum +cum% +function\n/);
  assert.match(watched.out, /\n\ncpu: total 1\.55s, change 0, 20\S+Z\n flat +flat% +cum +cum% +change +function\n/);
  const graph = await run(t, 'flame', at, '--start=-1h', '--width=60', query);
  assert.match(graph.out, /^cpu: 1\.55s\n\|total\n\|main\.main\n/);
});

test('epitool top', async (t) => {
  const { one, two } = files(t);
  const once = await run(t, 'top', '--limit=2', one);
  assert.equal(once.out, 'samples: total 100\nflat   flat%  cum    cum%  function\n  70  70.00%   70  70.00%  main.serve\n  20  20.00%   20  20.00%  runtime.memmove\n');
  // A file that changes while it is watched.
  const watch = start(t, epitool, ['top', '--watch=200ms', one]);
  await until('the first table', 10, () => /main\.serve\n/.test(watch.out));
  assert.doesNotMatch(watch.out.split('\n\n')[0], /change|\x1b/);
  writeFileSync(one, NEW);
  await until('the change is shown', 10, () => /change \+55, .*\n.*\n(.*\n)* +40 .* \+30 +main\.parsePrices\n/.test(watch.out));
  assert.equal((await watch.stop('SIGINT')).code, 0);
  assert.equal(watch.err, '');
  for (const args of [['--count=2', two], ['--watch=0s', two], ['--watch', '-'], ['--by=age', two], ['--measure=x', two]])
    assert.equal((await run(t, 'top', ...args)).code, 2, args.join(' '));
  // Only a terminal is cleared.
  const shown = start(t, 'script', ['-qefc', `'${epitool}' top --watch=100ms --count=2 '${two}'`, '/dev/null'], { stdio: ['pipe', 'pipe', 'pipe'] });
  await programEnds(shown);
  assert.equal(shown.code, 0, shown.out);
  assert.equal(shown.out.split('\x1b[H\x1b[2J').length, 3);
});

/** A terminal of that size, whose settings are printed behind the program's end: the shell outlives a Ctrl-C, which both of them get. */
function onTerminal(t, columns, rows, args) {
  const quoted = args.map((a) => `'${a}'`).join(' ');
  return start(t, 'script', ['-qefc', `trap : INT; stty cols ${columns} rows ${rows}; stty -g; ${quoted}; code=$?; stty -g; exit $code`, '/dev/null'], { stdio: ['pipe', 'pipe', 'pipe'] });
}

const LEFT = '\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l';

/** The terminal is as it was: its screen, and each of its settings. */
function assertRestored(r) {
  assert.ok(r.out.includes(LEFT), JSON.stringify(r.out));
  const after = r.out.slice(r.out.indexOf(LEFT) + LEFT.length).trim();
  assert.equal(after.split(/\s/)[0], r.out.trim().split(/\s/)[0]);
}

test('epitool flame: printed once', async (t) => {
  const { one } = files(t);
  const r = await finish(t, epitool, ['flame', one], 60, { env: { ...process.env, COLUMNS: '50' } });
  assert.equal(r.code, 0, r.err);
  assert.equal(r.out, [
    'samples: 100',
    '|total',
    '|main.main',
    '|main.serve                        |main.handle',
    `${' '.repeat(35)}|main.parsePri…`,
    `${' '.repeat(35)}|runtime.…`,
    '',
  ].join('\n'));
  const wide = await run(t, 'flame', '--width=100', one);
  assert.match(wide.out, new RegExp(`\\n {70}\\|main\\.parsePrices\\n {70}\\|runtime\\.memmove\\n$`));
  assert.equal((await run(t, 'flame', '--width=5', one)).code, 2);
  const colored = onTerminal(t, 60, 20, [epitool, 'flame', '--print', one]);
  await programEnds(colored);
  assert.equal(colored.code, 0);
  assert.match(colored.out, /\x1b\[48;5;\d+m\x1b\[38;5;16mmain\.serve +\x1b\[0m /);
  assert.ok(!colored.out.includes('\x1b[?1049h'));
});

test('epitool flame: on a terminal', async (t) => {
  const { one } = files(t);
  const r = onTerminal(t, 60, 12, [epitool, 'flame', one]);
  const status = async (text) => until(text, 10, () => r.out.slice(r.out.lastIndexOf('\x1b[2J')).includes(text));
  const type = (keys) => r.child.stdin.write(keys);
  await status('100 (100.00%), itself 0 (0.00%)  total');
  type('\x1b[B\x1b[B\x1b[C');
  await status('30 (30.00%), itself 0 (0.00%)  main.handle');
  type('\r');
  await until('it is zoomed', 10, () => !r.out.slice(r.out.lastIndexOf('\x1b[2J')).includes('main.serve'));
  type('\x7f');
  type('\x7f');
  await until('it is out again', 10, () => r.out.slice(r.out.lastIndexOf('\x1b[2J')).includes('main.serve'));
  type('/memmove');
  await status('/memmove_  found 20 (20.00%)');
  type('\r');
  await status('20 (20.00%), itself 20 (20.00%)  runtime.memmove');
  type('\x1b'); // alone: out of the search
  await until('nothing is searched for', 10, () => !r.out.slice(r.out.lastIndexOf('\x1b[2J')).includes('found'));
  type('q');
  assert.equal((await programEnds(r)).code, 0);
  assertRestored(r);
});

test('epitool flame: a signal gives the terminal back', async (t) => {
  const { one } = files(t);
  const typed = onTerminal(t, 60, 12, [epitool, 'flame', one]);
  await until('it is drawn', 10, () => typed.out.includes('main.serve'));
  typed.child.stdin.write('\x03');
  assert.equal((await programEnds(typed)).code, 130);
  assertRestored(typed);
  for (const [signal, code] of [['TERM', 143], ['HUP', 129], ['QUIT', 131]]) {
    const r = onTerminal(t, 60, 12, ['sh', '-c', `echo pid=$$; exec "${epitool}" flame "${one}"`]);
    await until('it is drawn', 10, () => r.out.includes('main.serve'));
    process.kill(Number(r.out.match(/pid=(\d+)/)[1]), `SIG${signal}`);
    assert.equal((await programEnds(r)).code, code, signal);
    assertRestored(r);
  }
});

/** What bash offers for the last of these words. */
function offered(script, program, words) {
  const list = words.map((w) => `'${w}'`).join(' ');
  const text = `source '${script}'; COMP_WORDS=(${program} ${list}); COMP_CWORD=${words.length}; _${program}; printf '%s\\n' "\${COMPREPLY[@]}"`;
  return execFileSync('bash', ['--norc', '-uc', text.replace(/^/, 'set +u; ')]).toString().split('\n').filter(Boolean);
}

const has = (program) => {
  try {
    execFileSync('sh', ['-c', `command -v ${program}`], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
};

const flagsOf = (help) => helpFlags(help).map((flag) => flag.replace('[no-]', ''));

test('completion in shells', async (t) => {
  const dir = scratch(t);
  const scripts = {};
  for (const [program, args] of [[epitool, (s) => ['completion', s]], [epimetheus, (s) => [`--completion-script=${s}`]]])
    for (const shell of ['bash', 'zsh', 'fish']) {
      const r = await finish(t, program, args(shell));
      assert.equal(r.code, 0, r.err);
      const name = program === epitool ? 'epitool' : 'epimetheus';
      const file = join(dir, `${name}.${shell}`);
      writeFileSync(file, r.out);
      scripts[`${name}.${shell}`] = { file, text: r.out };
      if (has(shell)) execFileSync(shell, ['-n', file]);
    }
  const bash = (program, ...words) => offered(scripts[`${program}.bash`].file, program, words);
  assert.deepEqual(bash('epitool', 'query', '--fo'), ['--format=']);
  assert.deepEqual(bash('epitool', 'fl'), ['flame']);
  assert.deepEqual(bash('epitool', 'tsdb', ''), tsdb);
  assert.deepEqual(bash('epitool', 'tsdb', 'repair', '--a'), ['--accept']);
  assert.deepEqual(bash('epitool', 'debuginfo', 'upload', '--no-'), ['--no-wait']);
  assert.deepEqual(bash('epitool', 'query', '--format', '=', 'j'), []);
  assert.deepEqual(bash('epitool', 'diff', 'new'), []); // files are bash's own
  assert.deepEqual(bash('epimetheus', '--config.f'), ['--config.file=']);
  assert.deepEqual(bash('epimetheus', '--no-security'), ['--no-security.sandbox']);
  // No flag of any command's help is missing anywhere.
  const help = (await run(t, '--help')).out;
  const commands = [...help.matchAll(/^  ([a-z]+(?: [a-z-]+)?)(?= )/gm)].map((m) => m[1]);
  assert.ok(commands.length > 20 && commands.includes('flame') && commands.includes('bucket copy'), commands);
  const check = (program, words, flags) => {
    const all = bash(program, ...words, '--').map((f) => f.replace(/=$/, ''));
    const zsh = scripts[`${program}.zsh`].text, fish = scripts[`${program}.fish`].text;
    const part = words.length ? zsh.slice(zsh.indexOf(`\t'${words.join(' ')} '*)`)).split(' ;;\n')[0] : zsh;
    const condition = words.length ? ` -n '__fish_seen_subcommand_from ${words.join('; and __fish_seen_subcommand_from ')}'` : '';
    for (const flag of flags) {
      const forms = [flag, `no-${flag}`];
      assert.ok(forms.some((f) => all.includes(`--${f}`)), `bash ${words} ${flag}`);
      assert.ok(forms.some((f) => part.includes(`'--${f}[`) || part.includes(`'--${f}=[`) || part.includes(`'*--${f}=[`)), `zsh ${words} ${flag}`);
      if (flag !== 'help' && flag !== 'version')
        assert.ok(forms.some((f) => fish.includes(`complete -c ${program}${condition} -l ${f} `)), `fish ${words} ${flag}`);
    }
  };
  for (const command of commands) {
    const one = await run(t, ...command.split(' '), '--help');
    check('epitool', command.split(' '), flagsOf(one.out));
  }
  const server = flagsOf((await finish(t, epimetheus, ['--help'])).out);
  assert.ok(server.length > 50);
  check('epimetheus', [], server);
  const unknown = await run(t, 'completion', 'tcsh');
  assert.equal(unknown.code, 2);
  assert.match(unknown.err, /no completion for "tcsh"; known are bash, zsh, fish/);
});
