// Against Debian's prometheus and promtool: the same documents and rules are to give the same targets, the same
// configurations are to be taken and refused.
import test from 'node:test';
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { api, debian, epitool, finish, scratch, startPrometheus, startServer, until } from './lib.mjs';
import { drawn, groups, written } from './relabel_cases.mjs';
import { configurations } from './config_cases.mjs';
import { ruleFiles } from './rule_cases.mjs';

const bin = debian('prometheus');

/** mulberry32: rules are drawn anew each time; the seed is told where they differ. */
function generator(seed) {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** The configuration: job -> rules. One profile a target, at the path that Prometheus takes by default. */
function jobsText(jobs, source, profiling) {
  const one = { process_cpu: false, memory: false, block: false, mutex: false, goroutine: true };
  const pprof = Object.fromEntries(Object.entries(one).map(([k, enabled]) => [k, { enabled, path: '/metrics' }]));
  return JSON.stringify({
    global: { scrape_interval: '1m', scrape_timeout: '10s' },
    scrape_configs: Object.entries(jobs).map(([job_name, relabel_configs]) => ({
      job_name, relabel_configs, ...source, ...(profiling ? { profiling_config: { pprof_config: pprof } } : {}),
    })),
  });
}

/**
 * job -> its targets as sorted texts. Two that differ in their URL alone would write one series: here the first is
 * scraped, by prometheus both; so each text is one target's labels, and the URLs it may have.
 */
async function targetsByJob(server, jobs) {
  const all = await api(server, 'targets');
  const out = Object.fromEntries(Object.keys(jobs).map((job) => [job, { targets: {} }]));
  for (const x of all.activeTargets) {
    const labels = JSON.stringify(Object.entries(x.labels).sort());
    (out[x.scrapePool].targets[labels] ??= []).push(`${x.scrapeUrl} ${x.scrapeInterval} ${x.scrapeTimeout}`);
  }
  return out;
}

/** Both servers on the same jobs; each job's targets are to be the same. */
async function compare(t, jobs, source, count) {
  const dir = scratch(t);
  const prometheus = await startPrometheus(t, join(dir, 'prometheus'), jobsText(jobs, source(dir), false));
  const server = await startServer(t, { dir, config: jobsText(jobs, source(dir), true) });
  const differing = (got, want) => {
    const wrong = {};
    for (const job of Object.keys(jobs)) {
      const sets = [...new Set([...Object.keys(got[job].targets), ...Object.keys(want[job].targets)])].filter((labels) => {
        const [g = [], w = []] = [got[job].targets[labels], want[job].targets[labels]];
        return g.length !== 1 || !w.includes(g[0]);
      });
      if (sets.length)
        wrong[job] = { rules: jobs[job], targets: sets.map((x) => [x, got[job].targets[x], want[job].targets[x]]) };
    }
    return wrong;
  };
  // Prometheus takes up its jobs one after the other: those that have targets in the end are compared.
  return until('both have the same targets', 120, async () => {
    const [got, want] = [await targetsByJob(server, jobs), await targetsByJob(prometheus, jobs)];
    for (const x of [got, want]) assert.equal(Object.keys(x.none.targets).length, count, JSON.stringify(x.none));
    const wrong = differing(got, want);
    assert.equal(Object.keys(wrong).length, 0, JSON.stringify(wrong));
    return want;
  });
}

const count = groups.reduce((n, g) => n + g.targets.length, 0);

test('targets of files and rules are those of prometheus', async (t) => {
  const source = (dir) => {
    writeFileSync(join(dir, 'targets.json'), JSON.stringify(groups));
    return { file_sd_configs: [{ files: [join(dir, 'targets.json')] }] };
  };

  await t.test('rules written for what is subtle', async (t) => {
    await compare(t, written, source, count);
  });

  await t.test('the same documents over HTTP', async (t) => {
    const listener = createServer((req, res) => {
      res.setHeader('Content-Type', 'application/json');
      res.end(JSON.stringify(groups));
    });
    await new Promise((done) => listener.listen(0, '127.0.0.1', done));
    t.after(() => listener.close());
    const url = `http://127.0.0.1:${listener.address().port}/targets`;
    await compare(t, written, () => ({ http_sd_configs: [{ url }] }), count);
  });

  await t.test('rules drawn', async (t) => {
    const seed = Number(process.env.EPI_SEED || Date.now() % 1e9);
    t.diagnostic(`EPI_SEED=${seed}`);
    const jobs = Object.fromEntries(drawn(generator(seed), 300).map((rules, i) => [`drawn-${i}`, rules]));
    const want = await compare(t, { none: [], ...jobs }, source, count);
    const kept = Object.values(want).reduce((n, x) => n + Object.keys(x.targets).length, 0);
    assert.ok(kept > 300, `rules leave ${kept} targets: nothing is compared`);
  });
});

/** promtool and epitool have one verdict on each file, but for those that are marked. */
async function compareVerdicts(t, what, cases) {
  const dir = scratch(t);
  writeFileSync(join(dir, 'secret'), 'x');
  writeFileSync(join(dir, 'targets.json'), '[]');
  const wrong = [];
  let taken = 0;
  for (const [i, [text, differs]] of cases.entries()) {
    const file = join(dir, `c${i}.yml`);
    writeFileSync(file, text);
    const theirs = await finish(t, join(bin, 'promtool'), ['check', what, file]);
    const ours = await finish(t, epitool, ['check', what, file]);
    if (differs ? ours.code === theirs.code : ours.code !== theirs.code)
      wrong.push(`${text}\n  promtool ${theirs.code}: ${theirs.err}\n  epitool ${ours.code}: ${ours.err}`);
    taken += theirs.code === 0;
    assert.ok([0, 1].includes(ours.code), ours.err);
  }
  assert.deepEqual(wrong, []);
  return taken;
}

test('configurations are taken and refused as promtool does', async (t) => {
  const taken = await compareVerdicts(t, 'config', configurations);
  assert.ok(taken > 20 && configurations.length - taken > 40, `${taken} of ${configurations.length} taken`);
});

test('rule files are taken and refused as promtool does', async (t) => {
  const taken = await compareVerdicts(t, 'rules', ruleFiles);
  assert.ok(taken > 10 && ruleFiles.length - taken > 15, `${taken} of ${ruleFiles.length} taken`);
});

test('rules that are given twice are those that promtool finds', async (t) => {
  const dir = scratch(t);
  const file = join(dir, 'r.yml');
  const record = (record, labels) => ({ record, expr: 'vector(1)', ...(labels && { labels }) });
  writeFileSync(file, JSON.stringify({ groups: [
    { name: 'a', rules: [record('r', { x: 'y' }), record('s'), record('r', { x: 'z' }), { alert: 'A', expr: 'vector(1)' }] },
    { name: 'b', rules: [record('r', { x: 'y' }), record('t'), { alert: 'A', expr: 'vector(2)', for: '1m' }, record('s', { x: 'y' })] },
  ] }));
  const theirs = await finish(t, join(bin, 'promtool'), ['check', 'rules', file]);
  assert.equal(theirs.code, 0);
  const found = [...(theirs.out + theirs.err).matchAll(/^Metric: (\S+)$/gm)].map((m) => m[1]);
  assert.deepEqual(found, ['A', 'r']);
  const ours = await finish(t, epitool, ['check', 'rules', file]);
  assert.equal(ours.code, 0, ours.err);
  const said = [...ours.err.matchAll(/^ {2}WARNING: \S+r\.yml:\d+:\d+: group "b", "(\S+)": the (rule|alert) at \S+r\.yml:\d+:\d+ has the same name and labels$/gm)];
  assert.deepEqual(said.map((m) => [m[1], m[2]]), [['r', 'rule'], ['A', 'alert']]);
  assert.match(ours.err, /\n {2}SUCCESS: 8 rules found\n$/);

  const server = await startServer(t, { dir, config: 'rule_files: [r.yml]\nscrape_configs: []\n' });
  const logged = server.err.split('\n').filter((l) => /level=warn component=rules msg="duplicate rule"/.test(l));
  assert.equal(logged.length, 2, server.err);
  assert.match(logged[0], /rule=".*group \\"b\\", \\"r\\": the rule at /);
});
