// format=pgo against the compiler: `go tool preprofile`, which is its first pass over a profile, says the same edges and
// weights of what was recorded and of our answer, and a build with either inlines the same calls.
import test from 'node:test';
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { execFileSync, finish, join, request, root, scratch, startDemo, startServer, writeFileSync } from './lib.mjs';

const code = join(root, 'tests/e2e/pgo');
const PERIODS = { demo: 100 }; // samples per second; of the others 500

/** Files {job: path}: profiles of each work of the program, and of the demo. */
async function record(t, dir) {
  const program = join(dir, 'record');
  const built = await finish(t, 'go', ['build', '-tags', 'record', '-o', program, '.'], 120, { cwd: code });
  assert.equal(built.code, 0, built.err);
  const run = await finish(t, program, [dir], 200);
  assert.equal(run.code, 0, run.err);
  const demo = await startDemo(t, 'v1', 'none', 100);
  writeFileSync(join(dir, 'demo.pb.gz'), (await request(`http://${demo.address}/debug/pprof/profile?seconds=2`)).body);
  await demo.stop();
  return Object.fromEntries(readdirSync(dir).filter((f) => f.endsWith('.pb.gz')).map((f) => [f.slice(0, -6), join(dir, f)]));
}

/** Edges as the compiler takes them, by weight and then name: [caller, callee, line and weight]. */
function edges(file) {
  const lines = execFileSync('go', ['tool', 'preprofile', '-i', file]).toString().trimEnd().split('\n');
  assert.equal(lines[0], 'GO PREPROFILE V1');
  const out = [];
  for (let i = 1; i < lines.length; i += 3) out.push([lines[i], lines[i + 1], ...lines[i + 2].split(' ').map(Number)]);
  return out;
}

/** What is inlined where, and what could be. */
async function decisions(t, dir, pgo) {
  const run = await finish(t, 'go', ['build', `-pgo=${pgo}`, '-gcflags=-m', '-o', join(dir, 'plain'), '.'], 300, { cwd: code });
  assert.equal(run.code, 0, run.err);
  return run.err.split('\n').filter((l) => /inlin/.test(l)).sort();
}

test('format=pgo gives the compiler what was recorded', async (t) => {
  const dir = scratch(t);
  const files = await record(t, dir);
  const server = await startServer(t, { dir, args: ['--web.enable-ingest'], config: 'scrape_configs: []\n' });
  for (const [job, file] of Object.entries(files)) {
    const res = await request(`${server.url}/api/v1/ingest?name=process_cpu&job=${job}`, { method: 'POST', body: readFileSync(file) });
    assert.equal(res.status, 200, res.body.toString());
  }
  const end = Math.floor(Date.now() / 1000) + 60;
  const ours = async (name, query, format = 'pgo') => {
    const res = await request(`${server.url}/api/v1/query?${new URLSearchParams({ query, start: end - 3600, end, format })}`);
    assert.equal(res.status, 200, res.body.toString());
    writeFileSync(join(dir, name), res.body);
    return join(dir, name);
  };

  for (const [job, file] of Object.entries(files)) {
    await t.test(`edges of ${job}`, async () => {
      const want = edges(file);
      assert.ok(want.length >= 3, JSON.stringify(want));
      assert.deepEqual(edges(await ours('samples.pgo', `process_cpu:samples{job="${job}"}`)), want);
      assert.deepEqual(edges(await ours('samples.pb.gz', `process_cpu:samples{job="${job}"}`, 'pprof')), want);
      const period = 1e9 / (PERIODS[job] ?? 500);
      assert.deepEqual(edges(await ours('cpu.pgo', `cpu{job="${job}"}`)), want.map(([a, b, line, n]) => [a, b, line, n * period]));
    });
  }

  await t.test('edges of all of them merged', async () => {
    const merged = join(dir, 'merged.pb');
    execFileSync('go', ['tool', 'pprof', '-proto', '-symbolize=none', '-output', merged, ...Object.values(files)], { stdio: 'ignore' });
    assert.deepEqual(edges(await ours('merged.pgo', 'merge(process_cpu:samples)')), edges(merged));
  });

  await t.test('what is inlined', async () => {
    // All works of the program in one profile, as it would be recorded of a service.
    const theirs = join(dir, 'works.pb');
    const works = Object.entries(files).filter(([job]) => job !== 'demo').map(([, file]) => file);
    execFileSync('go', ['tool', 'pprof', '-proto', '-symbolize=none', '-output', theirs, ...works], { stdio: 'ignore' });
    const want = await decisions(t, dir, theirs);
    assert.deepEqual(await decisions(t, dir, await ours('works.pgo', 'merge(process_cpu:samples{job!="demo"})')), want);
    assert.notDeepEqual(await decisions(t, dir, 'off'), want);
    for (const hot of ['large', 'heavy']) assert.ok(want.some((l) => l.endsWith(`inlining call to ${hot}`)), want.join('\n'));
  });

  await t.test('a whole service is built with it', async () => {
    // The compiler says from which weight on a call is hot, which it says of no empty profile.
    const file = await ours('default.pgo', 'merge(process_cpu:samples{job="demo"})'), program = join(dir, 'demo-pgo');
    const run = await finish(t, 'go', ['build', `-pgo=${file}`, '-gcflags=-d=pgodebug=1', '-o', program, '.'], 600,
      { cwd: join(root, 'examples/demo') });
    assert.equal(run.code, 0, run.err);
    assert.match(run.out + run.err, /hot-callsite-thres-from-CDF=\d*\.?\d+/);
    assert.match(execFileSync('go', ['version', '-m', program]).toString(), /-pgo=/);
  });
});
