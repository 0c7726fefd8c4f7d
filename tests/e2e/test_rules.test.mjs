// `epitool test rules`: the verdicts of Debian's promtool on files that both can read, profiles, and the rules and
// dashboards of examples/.
import test from 'node:test';
import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { api, debian, epitool, finish, query, request, root, scratch, startDemo, startServer, until } from './lib.mjs';
import { cases } from './rule_test_cases.mjs';

const rules = join(root, 'examples/rules');

const shown = (run) => `exit ${run.code}\n${run.out}${run.err}`;

test('files of numbers have the verdicts and the words of promtool', async (t) => {
  const program = join(debian('prometheus'), 'promtool');
  const dir = scratch(t);
  const wrong = [];
  let passed = 0;
  for (const [i, [what, rulesText, testText, differs]] of cases.entries()) {
    mkdirSync(join(dir, `${i}`));
    writeFileSync(join(dir, `${i}/rules.yml`), rulesText);
    writeFileSync(join(dir, `${i}/test.yml`), testText);
    const args = ['test', 'rules', 'test.yml'];
    const theirs = await finish(t, program, args, 60, { cwd: join(dir, `${i}`) });
    const ours = await finish(t, epitool, args, 60, { cwd: join(dir, `${i}`) });
    const same = differs ? ours.code === theirs.code : shown(ours) === shown(theirs);
    if (!same) wrong.push(`${what}\n${testText}\nis\n${shown(ours)}\nof promtool\n${shown(theirs)}`);
    passed += theirs.code === 0;
    assert.ok([0, 1].includes(ours.code), shown(ours));
  }
  assert.equal(wrong.join('\n'), '');
  assert.ok(passed > 30 && cases.length - passed > 30, `${passed} of ${cases.length} succeed`);
});

function files(dir, end) {
  return readdirSync(dir).filter((x) => x.endsWith(end)).sort();
}

test('rules of examples/ do what their tests say', async (t) => {
  const ours = files(rules, '.yml').filter((x) => x !== 'epimetheus.yml');
  assert.ok(ours.length >= 8, `${ours}`);
  assert.deepEqual(files(join(rules, 'tests'), '.yml'), ours, 'each file of rules has its test');
  const run = await finish(t, epitool, ['test', 'rules', ...ours.map((x) => join(rules, 'tests', x))], 120);
  assert.equal(run.code, 0, shown(run));
  for (const x of ours) {
    const text = readFileSync(join(rules, 'tests', x), 'utf8');
    for (const [, name] of readFileSync(join(rules, x), 'utf8').matchAll(/^ *- (?:alert|record): (\S+)$/gm))
      assert.ok(text.includes(name), `${name} of ${x} is not tested`);
    // A test that cannot fail tests nothing: without the rules it does.
    const dir = scratch(t);
    writeFileSync(join(dir, 'test.yml'), text.replace(/^rule_files:.*$/m, 'rule_files: []'));
    const bare = await finish(t, epitool, ['test', 'rules', join(dir, 'test.yml')]);
    assert.equal(bare.code, 1, `${x} succeeds without its rules: ${shown(bare)}`);
  }
});

test('profiles come from files and as text; faults have their place', async (t) => {
  const dir = scratch(t);
  const say = async (text) => {
    writeFileSync(join(dir, 'test.yml'), text);
    return shown(await finish(t, epitool, ['test', 'rules', 'test.yml'], 60, { cwd: dir }));
  };
  const failed = (text) => `exit 1\nUnit Testing:  test.yml\n\n\n  FAILED:\n${text}\n`;
  const head = 'tests:\n- interval: 1m\n  input_profiles:\n';
  const ask = (expr, time, samples) => `  promql_expr_test: [{expr: '${expr}', eval_time: ${time}, exp_samples: [${samples}]}]\n`;

  const folded = `${head}  - {series: 'memory{job="a"}', to: 3m, folded: "main;f{page=\\"/x\\"} 1+1x9\\nmain;g 5"}\n`;
  assert.equal(await say(folded + ask('flat by (page) (memory, {function="f"})', '3m', '{labels: \'{page="/x"}\', value: 3}')),
    'exit 0\nUnit Testing:  test.yml\n  SUCCESS\n\n');
  assert.equal(await say(folded + ask('flat(merge(memory))', '3m', "{labels: '{function=\"f\"}', value: 3}")),
    failed(`    expr: "flat(merge(memory))", time: 3m,
        exp: {function="f"} 3E+00
        got: {function="f"} 3E+00, {function="g"} 5E+00`));
  assert.equal(await say(folded + ask('memory', '3m', '')), failed('    expr: "memory", time: 3m, err: the result is neither costs ' +
    'nor a scalar; use total(), flat() or cum() for costs'));

  assert.equal(await say(`${head}  - {series: process_cpu, file: nonesuch.pb.gz, at: [1m]}\n${ask('1', '1m', '')}`),
    failed('open nonesuch.pb.gz: No such file or directory'));
  assert.equal(await say(`${head}  - series: process_cpu\n    folded: |\n      main;f\n`),
    failed('test.yml:5:13: folded: line 1: a stack is written `root;...;leaf VALUE...`'));

  const saved = await finish(t, epitool, ['test', 'rules', 'nonesuch.yml'], 60, { cwd: dir });
  assert.equal(shown(saved), 'exit 1\nUnit Testing:  nonesuch.yml\n\n\n  FAILED:\nopen nonesuch.yml: No such file or directory\n');
});

test('alerts on our own metrics are rules of prometheus', async (t) => {
  const program = join(debian('prometheus'), 'promtool');
  const dir = scratch(t);
  const checked = await finish(t, program, ['check', 'rules', join(rules, 'epimetheus.yml')]);
  assert.equal(checked.code, 0, shown(checked));
  // Each fires upon what it is for: [alert, series of input, labels].
  const down = ['EpimetheusTargetsDown', [['epimetheus_scrape_targets{instance="a",state="down"}', '1x60'],
    ['epimetheus_scrape_targets{instance="a",state="up"}', '3x60']], { instance: 'a', severity: 'warning' },
  '25% of the targets of Epimetheus a are down'];
  const failing = ['EpimetheusIngestFailing', [['epimetheus_tsdb_append_failures_total{instance="a",job="e",reason="limit"}', '0+1x60']],
    { instance: 'a', job: 'e', reason: 'limit', severity: 'warning' }, 'Epimetheus a refuses profiles: limit'];
  const full = ['EpimetheusDiskFull', [['epimetheus_tsdb_state{instance="a"}', '1x60']], { instance: 'a', severity: 'critical' },
    'Epimetheus a takes no profiles: its disk is full'];
  const losses = ['EpimetheusLosses', [['epimetheus_tsdb_losses{instance="a"}', '0x20 2x40'], ['epimetheus_tsdb_losses{instance="b"}', '0x60']],
    { instance: 'a', severity: 'critical' }, 'Epimetheus a has lost stored profiles: 2 losses that nobody accepted'];
  const limit = ['EpimetheusLimitMet', [['epimetheus_tsdb_series_refused_total{instance="a",job="e",limit="max-series-per-job"}', '0+1x60']],
    { instance: 'a', job: 'e', limit: 'max-series-per-job', severity: 'warning' },
    'A job passes the limit max-series-per-job of Epimetheus a'];
  const reload = ['EpimetheusConfigReloadFailed', [['epimetheus_config_last_reload_successful{instance="a"}', '0x60']],
    { instance: 'a', severity: 'warning' }, 'Epimetheus a goes on with an old configuration: the new one is refused'];
  const sending = ['EpimetheusNotificationsFailing', [['epimetheus_notifications_errors_total{instance="a",alertmanager="m"}', '0+1x60'],
    ['epimetheus_notifications_sent_total{instance="a",alertmanager="m"}', '0+3x60']],
  { instance: 'a', alertmanager: 'm', severity: 'critical' }, 'm does not take 25% of the alerts of Epimetheus a'];
  const late = ['EpimetheusShardLate', [['epimetheus_cluster_shard_late{instance="q",shard="a"}', '1x60'],
    ['epimetheus_cluster_shard_late{instance="q",shard="b"}', '0x60']], { instance: 'q', shard: 'a', severity: 'warning' },
  'Answers of Epimetheus q lack the newest profiles of the shard a'];
  const missing = ['EpimetheusObjectsMissing', [['epimetheus_cluster_shard_missing_objects{instance="q",shard="a"}', '2x60'],
    ['epimetheus_cluster_shard_missing_objects{instance="q",shard="b"}', '0x60']], { instance: 'q', shard: 'a', severity: 'critical' },
  'The bucket lacks 2 objects of the shard a, as Epimetheus q sees it'];
  // The bucket is away for longer and longer; a restart in between waits for the lease.
  const state = (instance, name, values) => [`epimetheus_publish_state{instance="${instance}",state="${name}"}`, values];
  const away = ['EpimetheusNotPublishing', [state('a', 'away', '1x30 0x3 1x60'), state('a', 'waiting', '0x30 1x3 0x60'),
    state('a', 'running', '0x60'), state('b', 'away', '0x60'), state('b', 'running', '1x60'), state('c', 'waiting', '0x38 1x10')],
  { instance: 'a', severity: 'critical' }, 'Epimetheus a puts nothing into the bucket: its profiles are on its own disk only'];
  const fenced = ['EpimetheusFenced', [state('a', 'fenced', '0x34 1 stale'), state('b', 'fenced', '0x60')],
    { instance: 'a', severity: 'critical' }, 'Another server has taken the shard of Epimetheus a: --shard.name is used twice'];
  const cache = ['EpimetheusCacheOff', [['epimetheus_bucket_cache_off{instance="q"}', '1x60'], ['epimetheus_bucket_cache_off{instance="r"}', '0x60']],
    { instance: 'q', severity: 'warning' },
    'The cache of Epimetheus q takes no pages, so queries read more in the bucket: is its disk full?'];
  const all = [down, failing, full, losses, limit, reload, sending, late, missing, away, fenced, cache];
  const file = readFileSync(join(rules, 'epimetheus.yml'), 'utf8');
  const todo = new Map([...file.matchAll(/- alert: (\w+)\n(?:(?! +- alert).*\n)*? +description: "(.*)"/g)].map((m) => [m[1], m[2]]));
  assert.equal(todo.size, file.match(/- alert: /g).length, 'each says what to do');
  const test = { rule_files: [join(rules, 'epimetheus.yml')], tests: all.map(
    ([alertname, input, exp_labels, summary]) => ({ interval: '1m', input_series: input.map(([series, values]) => ({ series, values })),
      alert_rule_test: [{ eval_time: '40m', alertname, exp_alerts: [{ exp_labels, exp_annotations: { summary, description: todo.get(alertname) } }] }] })) };
  writeFileSync(join(dir, 'test.json'), JSON.stringify(test));
  const run = await finish(t, program, ['test', 'rules', join(dir, 'test.json')]);
  assert.equal(run.code, 0, shown(run));
});

/** All PromQL of a dashboard. */
function expressions(board) {
  return board.panels.flatMap((p) => p.targets.map((x) => [p.title, x.expr]));
}

function dashboard(name) {
  const board = JSON.parse(readFileSync(join(root, 'examples/dashboards', name), 'utf8'));
  const ids = board.panels.map((p) => p.id);
  assert.equal(new Set(ids).size, ids.length, 'panels have ids of their own');
  for (const [i, a] of board.panels.entries())
    for (const b of board.panels.slice(0, i)) {
      const [p, q] = [a.gridPos, b.gridPos];
      assert.ok(p.x + p.w <= q.x || q.x + q.w <= p.x || p.y + p.h <= q.y || q.y + q.h <= p.y, `${a.title} lies on ${b.title}`);
    }
  return board;
}

/** Metrics that the sources declare: families without a sample yet are not on /metrics. */
function declared() {
  const below = (dir) => readdirSync(dir, { withFileTypes: true }).flatMap((f) =>
    f.isDirectory() ? below(join(dir, f.name)) : f.name.endsWith('.c') ? [readFileSync(join(dir, f.name), 'utf8')] : []);
  const sources = ['base', 'proto', 'discovery', 'scrape', 'tsdb', 'promql', 'web', 'cmd'].flatMap((d) => below(join(root, d)));
  return new Map(sources.flatMap((text) =>
    [...text.matchAll(/METRIC_[A-Z]+\(\s*\w+,\s*"(\w+)",((?:\s*"(?:[^"\\]|\\.)*")+),\s*("\w+"|NULL)/g)]
      .map(([, name, , label]) => [name, label !== 'NULL'])));
}

test('dashboards and alerts name metrics that are there', async (t) => {
  const server = await startServer(t, { dir: scratch(t), config: 'scrape_configs: []\n' });
  await request(`${server.url}/api/v1/query?query=1`);
  const text = (await request(`${server.url}/metrics`)).body.toString();
  const there = new Set([...text.matchAll(/^# TYPE (\w+) /gm)].map((m) => m[1]));
  const known = declared();
  const used = [...expressions(dashboard('epimetheus.json')).map((x) => x[1]), readFileSync(join(rules, 'epimetheus.yml'), 'utf8')]
    .flatMap((x) => x.match(/\b(?:epimetheus|process)_[a-z_]+/g))
    .map((x) => x.replace(/_bucket$/, ''));
  assert.ok(new Set(used).size > 35, `${new Set(used).size}`);
  assert.deepEqual([...new Set(used)].filter((x) => !there.has(x) && !known.get(x)), []);
});

test('the dashboard of costs asks what the server answers', async (t) => {
  const demo = await startDemo(t, 'v1', 'none');
  const server = await startServer(t, { dir: scratch(t), config: `
global: {scrape_interval: 2s}
scrape_configs: [{job_name: demo, static_configs: [{targets: ["${demo.address}"]}]}]
` });
  await until('all kinds are there', 60, async () => {
    const kinds = ['process_cpu', 'memory', 'mutex', 'block', 'goroutine'];
    const counted = await Promise.all(kinds.map((x) => query(server, `count_over_time(${x}[5m])`)));
    return counted.every((x) => Number(x.result[0]?.value[1]) >= 3);
  });

  await t.test('pprof files are profiles of tests, as the README has it', async (t) => {
    const dir = scratch(t);
    for (const [kind, file] of [['mutex', 'mutex.pb.gz'], ['heap', 'heap.pb.gz']])
      writeFileSync(join(dir, file), (await request(`http://${demo.address}/debug/pprof/${kind}`)).body);
    const [, written] = readFileSync(join(rules, 'README.md'), 'utf8').match(/```yaml\n([^`]*(?:`[^`]+`[^`]*)*)```/);
    const more = `      - {series: memory, at: [1m, 2m], interval: 1m, file: heap.pb.gz}
    promql_expr_test:
      - {expr: 'count_over_time(memory[10m])', eval_time: 10m, exp_samples: [{labels: '{}', value: 2}]}
      - {expr: 'count_over_time(mutex[10m])', eval_time: 10m, exp_samples: [{labels: '{job="api"}', value: 20}]}
      - {expr: 'total(memory offset 8m) > bool 0', eval_time: 10m, exp_samples: [{labels: '{}', value: 1}]}
`;
    for (const text of [written, written.replace(/^ *type: .*\n/m, '').replace('series: memory{', 'series: goroutine{')
      .replace('    promql_expr_test:\n', more)]) {
      writeFileSync(join(dir, 'test.yml'), text);
      assert.equal(shown(await finish(t, epitool, ['test', 'rules', 'test.yml'], 60, { cwd: dir })),
        'exit 0\nUnit Testing:  test.yml\n  SUCCESS\n\n');
    }
  });

  const board = dashboard('costs.json');
  const empty = [];
  for (const variable of board.templating.list.filter((x) => x.type === 'query')) {
    const [, selector, label] = variable.definition.match(/^label_values\((.*), (\w+)\)$/);
    assert.deepEqual(await api(server, `label/${label}/values`, { 'match[]': selector }), ['demo']);
  }
  for (const [title, text] of expressions(board)) {
    const expr = text.replaceAll('$job', 'demo');
    const now = Date.now() / 1000;
    const at = await query(server, expr);
    assert.equal(at.resultType, 'vector', title);
    const steps = await api(server, 'query_range', { query: expr, start: now - 60, end: now, step: 15 });
    assert.equal(steps.resultType, 'matrix', title);
    if (!at.result.length || !steps.result.length) empty.push(title);
  }
  assert.deepEqual(empty, ['What changed in the last ten minutes']);
});
