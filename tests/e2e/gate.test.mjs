// epitool diff as a gate in CI: repeated runs, verdicts, exit codes; and the book's recipe as it is written there.
import test from 'node:test';
import assert from 'node:assert/strict';
import { chmodSync, mkdirSync, readFileSync } from 'node:fs';
import { cpuProfile } from '../browser/pprof.mjs';
import { build, epitool, finish, freePort, join, root, scratch, startServer, writeFileSync } from './lib.mjs';

const NAMES = ['main.main', 'main.encode', 'main.rank', 'main.rare'];
const SAMPLE = 1e7;
/** Runs of about 1,000 samples, a second apart; counts go up and down by less than chance would make them. */
const profile = (run, encode, rank) => {
  const wave = [0, 7, -9, 4, -5, 8, -3, 2, -8, 4][run % 10];
  const counts = [500 - wave, encode + wave, rank, 20];
  return cpuProfile({ functions: NAMES.map((name) => ({ name })), time: Date.now() - 60000 + run * 1000,
    samples: counts.map((n, i) => ({ stack: i ? [0, i] : [0], value: n * SAMPLE })) });
};

/** A directory of so many runs. */
function runs(dir, name, n, encode, rank = 280) {
  const at = join(dir, name);
  mkdirSync(at);
  for (let i = 0; i < n; i++) writeFileSync(join(at, `${i}.pb.gz`), profile(i, encode, rank));
  return at;
}

const verdicts = (json) => Object.fromEntries(json.functions.map((f) => [f.name, f.verdict]));

test('epitool diff judges repeated runs', async (t) => {
  const dir = scratch(t);
  const base = runs(dir, 'base', 10, 200), same = runs(dir, 'same', 10, 202), worse = runs(dir, 'worse', 10, 270), few = runs(dir, 'few', 2, 225);
  const diff = (...args) => finish(t, epitool, ['diff', '--normalize', ...args]);
  const files = (at, n) => Array.from({ length: n }, (_, i) => join(at, `${i}.pb.gz`)).join(',');

  await t.test('not worse, worse, cannot tell', async () => {
    const ok = await diff('--function-threshold=20%', base, same);
    assert.equal(ok.code, 0, ok.err);
    assert.match(ok.out, /\nnot worse: 3 of 3\n$/);
    assert.equal(ok.err, '');
    const bad = await diff('--function-threshold=20%', base, worse);
    assert.equal(bad.code, 1);
    assert.match(bad.err, /^epitool: worse: main\.encode costs \+3\d% \(\+\d+% to \+\d+%\) against base\n$/);
    assert.match(bad.out, /\n10 runs of base, 10 of new; /);
    assert.match(bad.out, /\nworse +\+3\d% .* 20\.0% +25\.\d% +main\.encode\n/);
    const open = await diff('--function-threshold=20%', base, few);
    assert.equal(open.code, 3);
    assert.match(open.err, /^epitool: cannot tell: \d of 3; about \d+ more runs a side would tell\n$/);
    assert.equal((await diff('--function-threshold=20%', '--cannot-tell=ok', base, few)).code, 0);
    assert.equal((await diff('--function-threshold=20%', '--cannot-tell=ok', base, worse)).code, 1);
    const one = await diff('--function-threshold=20%', join(base, '1.pb.gz'), same);
    assert.equal(one.code, 3, one.err);
    assert.match(one.out, /\n1 run of base, 10 of new; /);
  });

  await t.test('what costs less makes nothing else worse', async () => {
    const faster = runs(dir, 'faster', 10, 200, 20);
    const r = await diff('--function-threshold=20%', base, faster);
    assert.equal(r.code, 0, r.err);
    assert.match(r.out, /; cost relative to all other functions but main\.rank, which costs less, with its bounds; /);
    assert.match(r.out, /\nnot worse: 3 of 3\n$/);
    // Costs with callees overlap: there it is only told.
    const cum = await diff('--function-threshold=20%', '--measure=cum', base, faster);
    assert.equal(cum.code, 1);
    assert.match(cum.err, /^epitool: worse: main\.encode costs .*; main\.rank costs less, and that alone raises what others cost relative to all: .+\n$/);
  });

  await t.test('JSON has all of it', async () => {
    const r = await diff('--function-threshold=20%', '--json', base, files(worse, 10));
    assert.equal(r.code, 1);
    const json = JSON.parse(r.out);
    assert.equal(json.verdict, 'worse');
    assert.match(json.summary, /^worse: main\.encode costs /);
    assert.deepEqual(json.runs, { base: 10, new: 10 });
    assert.equal(json.moreRuns, 0);
    assert.equal(json.falseAlarmsPercent, 1);
    assert.deepEqual(verdicts(json), { 'main.encode': 'worse', 'main.main': 'not worse', 'main.rank': 'not worse' });
    const [encode] = json.functions;
    assert.ok(encode.changePercentLow > 0 && encode.changePercentLow < encode.changePercent, r.out);
    assert.ok(encode.changePercentHigh > encode.changePercent && encode.noiseBase >= 1, r.out);
    const all = JSON.parse((await diff('--function-threshold=20%', '--least-share=1%', '--json', base, same)).out);
    assert.equal(verdicts(all)['main.rare'], 'cannot tell');
    assert.ok(all.moreRuns > 10 && all.moreRuns < 1000, `${all.moreRuns}`);
  });

  await t.test('budgets', async () => {
    for (const [budget, code] of [['30%', 0], ['20%', 1], ['25.3%', 3]]) {
      const r = await diff(`--function-budget=main.encode=${budget}`, '--json', base, worse);
      assert.equal(r.code, code, r.out);
      assert.deepEqual(Object.keys(verdicts(JSON.parse(r.out))), ['main.encode']);
    }
    const typo = await diff('--function-budget=main.encod=30%', base, worse);
    assert.equal(typo.code, 4);
    assert.equal(typo.err, 'epitool: error: --function-budget=main.encod=30%: "main.encod" in no run; did you mean "main.encode"?\n');
  });

  await t.test('costs of runs', async () => {
    const r = await finish(t, epitool, ['diff', '--function-threshold=20%', '--json', base, files(worse, 9)]);
    assert.equal(r.code, 1, r.err);
    const json = JSON.parse(r.out), [encode] = json.functions;
    assert.ok(encode.changePercent > 30 && encode.changePercent < 40, r.out);
    assert.equal(json.total.base, 1000 * SAMPLE); // of a run, as there are not as many
  });

  await t.test('what cannot be judged', async () => {
    const empty = join(dir, 'empty');
    mkdirSync(empty);
    const cases = [
      [[base, `${files(same, 2)},${join(dir, 'none.pb.gz')}`], /none\.pb\.gz: there is no file of that name\n$/],
      [[base, empty], /empty: no file in this directory\n$/],
      [['--least-share=90%', base, same], /nothing to judge: no function has 90% of the costs; see --least-share\n$/],
      [[`--server=http://127.0.0.1:${await freePort()}`, 'run=1', 'run=2'], /Connection refused\n$/],
    ];
    for (const [args, message] of cases) {
      const r = await diff('--function-threshold=20%', ...args);
      assert.equal(r.code, 4, r.err);
      assert.match(r.err, message);
    }
    assert.equal((await diff(base, join(dir, 'none.pb.gz'))).code, 4);
  });

  await t.test('without thresholds it is a table', async () => {
    const r = await diff(base, worse);
    assert.equal(r.code, 0, r.err);
    assert.doesNotMatch(r.out, /verdict/);
    assert.match(r.out, /^cpu: base 100s, new 107s /);
  });
});

test('stored runs are judged like files', async (t) => {
  const dir = scratch(t);
  const base = runs(dir, 'base', 10, 200), worse = runs(dir, 'worse', 10, 270);
  const server = await startServer(t, { dir, args: ['--web.enable-ingest'], config: 'scrape_configs: []\n' });
  const at = `--server=${server.url}`;
  const push = async (files, ...labels) => {
    const r = await finish(t, epitool, ['push', at, ...labels.flatMap((l) => ['-l', l]), ...files]);
    assert.equal(r.code, 0, r.err);
  };
  const list = (dir) => Array.from({ length: 10 }, (_, i) => join(dir, `${i}.pb.gz`));
  await push(list(base), 'job=bench', 'run=1');
  await push(list(worse), 'job=bench', 'run=2');
  for (const [i, file] of list(worse).entries()) await push([file], 'job=bench', `run=3.${i}`, `host=${i % 2}`);
  const judge = async (...args) => {
    const r = await finish(t, epitool, ['diff', '--normalize', '--function-threshold=20%', '--json', ...args]);
    assert.equal(r.code, 1, r.err);
    const { functions, runs } = JSON.parse(r.out);
    return { functions, runs };
  };
  const want = await judge(base, worse);
  const values = `run=${Array.from({ length: 10 }, (_, i) => `3.${i}`)}`;
  const data = `--data=${join(dir, 'data')}`;
  for (const [where, next] of [[at, 'run=2'], [data, 'run=2,job=bench'], [at, `${values},job=bench`], [at, 'run=~"3[.].+"'], [data, 'run=~3.+']])
    assert.deepEqual(await judge(where, 'run=1', next), want, `${where} ${next}`);
  const missing = await finish(t, epitool, ['diff', at, '--function-threshold=20%', 'run=1', 'run=3.1,3.11,3.2']);
  assert.equal(missing.code, 4);
  assert.equal(missing.err, 'epitool: error: run=3.11: no profiles\n');
});

/** A repository, and the book's recipe to run in it: as it is, and with the runs on a server before they are judged. */
async function recipeIn(t, dir, env = {}) {
  const chapter = readFileSync(join(root, 'web/book/guides/ci.md'), 'utf8');
  const [, runs, judge] = chapter.match(/^(rm -rf runs[^]*?)^(epitool diff [^]*?)^```/m);
  const [, keep] = chapter.match(/^(epitool push [^]*?)^```/m);
  const server = await startServer(t, { dir, args: ['--web.enable-ingest'], config: 'scrape_configs: []\n' });
  const here = (text) => text.replaceAll('http://epimetheus:7272', server.url).replaceAll(/^epitool/gm, join(build, 'epitool'));
  const local = here(runs + judge), stored = here(runs + keep);
  const work = join(dir, 'work');
  mkdirSync(work);
  const shell = (text, more = {}) => finish(t, 'bash', ['-eu', '-c', text], 240, { cwd: work,
    env: { ...process.env, GIT_CONFIG_NOSYSTEM: '1', ...env, ...more } });
  const commit = async (files) => {
    for (const [name, text] of Object.entries(files)) writeFileSync(join(work, name), text);
    const r = await shell('git init -q . && git add . && git -c user.name=t -c user.email=t@example.com commit -q -m t');
    assert.equal(r.code, 0, r.err);
  };
  return { local, stored, shell, commit, work };
}

test("the book's recipe", async (t) => {
  const dir = scratch(t);
  // Benchmarks take their time, and are as fast as the machine is: profiles that are made up stand in for them.
  for (const [name, encode] of [['a', 200], ['b', 202], ['c', 270]]) runs(dir, `made-${name}`, 10, encode);
  const bin = join(dir, 'bin');
  mkdirSync(bin);
  // What a commit's program does is in its file "made".
  writeFileSync(join(bin, 'go'), `#!/bin/bash
set -eu
[ "$1 $2 $3 $5" = "test -c -o ." ]
cat >"$4" <<EOF
#!/bin/bash
set -eu
made=${dir}/made-$(cat made)
EOF
cat >>"$4" <<'EOF'
for arg; do case $arg in -test.cpuprofile=*) to=\${arg#*=};; -test.run='^$' | -test.bench=. | -test.benchtime=*) ;; *) exit 2;; esac; done
cp "$made/$(($(basename "$to" .pb.gz) - 1)).pb.gz" "$to"
EOF
chmod +x "$4"
`);
  chmodSync(join(bin, 'go'), 0o755);
  const { local, stored, shell, commit } = await recipeIn(t, dir, { PATH: `${bin}:${process.env.PATH}`, HOME: dir });
  await commit({ made: 'a' });
  await commit({ made: 'b' });
  for (const script of [local, stored]) {
    const same = await shell(script, { BASE: 'HEAD~1', RUN: '1' });
    assert.equal(same.code, 0, same.err);
    assert.match(same.out, /\nnot worse: 3 of 3\n$/);
  }
  await commit({ made: 'c' });
  for (const script of [local, stored]) {
    const worse = await shell(script, { BASE: 'HEAD~1', RUN: '2' });
    assert.equal(worse.code, 1, worse.err);
    assert.match(worse.err, /epitool: worse: main\.encode costs .+\n$/);
  }
});

test("the book's recipe with Go's benchmarks", async (t) => {
  const { stored, shell, commit } = await recipeIn(t, scratch(t));
  const program = (rounds) => ({ 'go.mod': 'module bench\n\ngo 1.19\n', 'bench_test.go': `package bench

import "testing"

var sink uint64

//go:noinline
func spin(n int) (x uint64) {
	for i := 0; i < n; i++ {
		x = x*6364136223846793005 + uint64(i)
	}
	return
}

//go:noinline
func encode(n int) (x uint64) {
	for i := 0; i < n; i++ {
		x = x*6364136223846793005 ^ uint64(i)
	}
	return
}

func BenchmarkWork(b *testing.B) {
	for i := 0; i < b.N; i++ {
		sink += spin(100000) + encode(${rounds})
	}
}
` });
  await commit(program(30000));
  await commit(program(300000));
  // So few runs tell little: what they measured is read, and ten times the cost is never "not worse".
  const short = stored.replace('seq 10', 'seq 3').replace('benchtime=5s', 'benchtime=5000x').replace('--normalize', '--json --normalize');
  const r = await shell(short, { BASE: 'HEAD~1', RUN: '1' });
  const { runs, verdict, functions } = JSON.parse(r.out.slice(r.out.lastIndexOf('\n{')));
  assert.equal(r.code, verdict === 'worse' ? 1 : 0, r.err);
  assert.deepEqual(runs, { base: 3, new: 3 });
  const encode = functions.find((f) => f.name === 'bench.encode');
  assert.ok(encode && encode.verdict !== 'not worse' && encode.changePercent > 100, r.out);
  assert.ok(functions.some((f) => f.name === 'bench.spin'), r.out);
});
