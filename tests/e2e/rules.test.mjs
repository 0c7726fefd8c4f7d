// Rules: a planted regression makes an alert pending, then firing; Debian's Alertmanager has it and hears of its end;
// Debian's Prometheus scrapes what is recorded.
import test from 'node:test';
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import {
  api, debian, epitool, finish, query, request, scratch, start, startDemo, startOnFreePort, startPrometheus, startServer,
  until,
} from './lib.mjs';

// The window is longer than a restart takes: without a profile in it nothing is pending.
const windowSeconds = 30;
const share = `cum_share(merge by (job) (process_cpu[${windowSeconds}s]), {function="main.scoreItems"})`;
const page = 'http://epimetheus.test/x';
const pendingSeconds = 12, graceSeconds = 1;

const rules = {
  groups: [{
    name: 'shop',
    labels: { team: 'shop' },
    rules: [
      { record: 'job:scoreItems:share', expr: share, labels: { function: 'main.scoreItems' } },
      {
        alert: 'HighCost',
        expr: `${share} > 0.2`,
        for: `${pendingSeconds}s`,
        labels: { severity: 'page' },
        annotations: { summary: '{{ $labels.job }} spends {{ $value | humanizePercentage }} in one function' },
      },
      { alert: 'Never', expr: 'job:scoreItems:share > 1', annotations: { summary: 'more than all' } },
    ],
  }],
};

/**
 * Debian's program reads its templates from where the package would be installed; ours reads them from where it is
 * unpacked: a relative path of the same length.
 */
function unpackedAlertmanager() {
  const bin = debian('prometheus-alertmanager');
  const place = '/usr/share/prometheus/alertmanager';
  const bytes = readFileSync(join(bin, 'prometheus-alertmanager'));
  let found = 0;
  for (let at = bytes.indexOf(place); at >= 0; at = bytes.indexOf(place, at + 1), found++)
    bytes.write('usr/share/prometheus//alertmanager', at);
  assert.ok(found > 0);
  const program = join(bin, `alertmanager-${process.pid}`);
  writeFileSync(program, bytes, { mode: 0o755 });
  return { program, cwd: resolve(bin, '../..') };
}

function startAlertmanager(t, dir) {
  const { program, cwd } = unpackedAlertmanager();
  t.after(() => rmSync(program));
  const file = join(dir, 'alertmanager.yml');
  mkdirSync(dir, { recursive: true });
  writeFileSync(file, JSON.stringify({ route: { receiver: 'none' }, receivers: [{ name: 'none' }] }));
  return startOnFreePort(t, 'alertmanager', (port) => start(t, program, [`--config.file=${file}`,
    `--storage.path=${join(dir, 'data')}`, `--web.listen-address=127.0.0.1:${port}`, '--cluster.listen-address='],
  { cwd }));
}

function config(demo, alertmanager) {
  const off = Object.fromEntries(['memory', 'block', 'mutex', 'goroutine', 'goroutineleak'].map((name) => [name, { enabled: false }]));
  return JSON.stringify({
    global: { evaluation_interval: '1s', external_labels: { cluster: 'test' } },
    rule_files: ['rules/*.yml'],
    alerting: {
      alert_relabel_configs: [{ source_labels: ['severity'], target_label: 'urgency' }],
      alertmanagers: [{ static_configs: [{ targets: [alertmanager.url.replace('http://', '')] }] }],
    },
    scrape_configs: [{
      job_name: 'shop',
      scrape_interval: '2s',
      profiling_config: { pprof_config: { process_cpu: { seconds: 1 }, ...off } },
      static_configs: [{ targets: [demo.address] }],
    }],
  });
}

async function received(alertmanager) {
  const res = await request(`${alertmanager.url}/api/v2/alerts`);
  return JSON.parse(res.body).filter((a) => a.labels.alertname === 'HighCost');
}

async function alert(server) {
  const { alerts } = await api(server, 'alerts');
  assert.ok(alerts.every((a) => a.labels.alertname === 'HighCost'), JSON.stringify(alerts));
  return alerts[0];
}

function regress(demo, name) {
  return request(`http://${demo.address}/-/regression?name=${name}`, { method: 'POST' });
}

test('a regression fires and resolves', async (t) => {
  const dir = scratch(t);
  const ruleFile = join(dir, 'rules', 'shop.yml');
  mkdirSync(join(dir, 'rules'));
  writeFileSync(ruleFile, JSON.stringify(rules));
  const demo = await startDemo(t, 'v1', 'none');
  const alertmanager = await startAlertmanager(t, join(dir, 'alertmanager'));
  const options = {
    dir,
    config: config(demo, alertmanager),
    args: ['--web.enable-lifecycle', `--web.external-url=${page}/`, '--web.route-prefix=/',
      `--rules.alert.for-grace-period=${graceSeconds}s`],
  };
  let server = await startServer(t, options);

  await t.test('the rules are known and go well', async () => {
    const group = await until('rules are evaluated', 30, async () => {
      const { groups } = await api(server, 'rules');
      return groups[0]?.rules.every((r) => r.health === 'ok') && groups[0];
    });
    assert.equal(group.name, 'shop');
    assert.equal(group.file, ruleFile);
    assert.equal(group.interval, 1);
    assert.deepEqual(group.rules.map((r) => [r.name, r.type, r.state]),
      [['job:scoreItems:share', 'recording', undefined], ['HighCost', 'alerting', 'inactive'],
        ['Never', 'alerting', 'inactive']]);
    assert.deepEqual(group.rules[1].labels, { severity: 'page', team: 'shop' });
    assert.equal(group.rules[1].duration, pendingSeconds);
    const records = (await api(server, 'rules', { type: 'record', 'rule_name[]': 'job:scoreItems:share' })).groups;
    assert.deepEqual(records.map((g) => g.rules.map((r) => r.name)), [['job:scoreItems:share']]);
    assert.deepEqual(await api(server, 'rules', { 'rule_group[]': 'nonesuch' }), { groups: [] });
    assert.deepEqual((await api(server, 'alertmanagers')).activeAlertmanagers.map((a) => a.url),
      [`${alertmanager.url}/api/v2/alerts`]);
    await until('a share is recorded', 30, async () => (await query(server, 'job:scoreItems:share')).result.length);
  });

  await t.test('a broken file refuses the reload, and the old rules go on', async (t) => {
    writeFileSync(ruleFile, `groups:\n- name: shop\n  rules:\n  - alert: HighCost\n    expr: cum_share(\n`);
    const res = await request(`${server.url}/-/reload`, { method: 'POST' });
    assert.equal(res.status, 500);
    assert.match(res.body.toString(), /rules\/shop\.yml:\d+:\d+: .*"shop".*HighCost/);
    const before = (await api(server, 'rules')).groups[0];
    assert.equal(before.rules.length, 3);
    await until('evaluation goes on', 10, async () =>
      (await api(server, 'rules')).groups[0].lastEvaluation > before.lastEvaluation);
    const metrics = (await request(`${server.url}/metrics`)).body.toString();
    assert.match(metrics, /\nepimetheus_config_last_reload_successful 0\n/);

    let run = await finish(t, epitool, ['check', 'rules', ruleFile]);
    assert.equal(run.code, 1);
    assert.match(run.err, /^Checking .*shop\.yml\n {2}FAILED: .*shop\.yml:\d+:\d+: /);
    run = await finish(t, epitool, ['check', 'config', join(dir, 'epimetheus.yml')]);
    assert.equal(run.code, 1, run.err);
    writeFileSync(ruleFile, JSON.stringify(rules));
    run = await finish(t, epitool, ['check', 'rules', ruleFile]);
    assert.equal(run.code, 0);
    assert.match(run.err, /\n {2}SUCCESS: 3 rules found\n$/);
    run = await finish(t, epitool, ['check', 'config', join(dir, 'epimetheus.yml')]);
    assert.equal(run.code, 0, run.err);
    assert.match(run.err, /\n {2}SUCCESS: 1 rule file found\n SUCCESS: .* is valid: 1 scrape config\n/);
    assert.match(run.err, /\nChecking .*shop.yml\n {2}SUCCESS: 3 rules found\n$/);
    writeFileSync(join(dir, 'twice.yml'), JSON.stringify({ rule_files: ['rules/*.yml', 'rules/shop.yml'], scrape_configs: [] }));
    run = await finish(t, epitool, ['check', 'config', join(dir, 'twice.yml')]);
    assert.match(run.err, /\n {2}SUCCESS: 1 rule file found\n/);
    assert.equal((await request(`${server.url}/-/reload`, { method: 'POST' })).status, 200);
  });

  await t.test('a reload that fails late leaves Alertmanagers and rules as they were', async () => {
    const file = join(dir, 'epimetheus.yml');
    const late = JSON.parse(options.config);
    late.alerting.alertmanagers[0].static_configs[0].targets = ['nonesuch:1'];
    late.rule_files = [];
    late.scrape_configs.push({
      job_name: 'late', kubernetes_sd_configs: [{ role: 'pod', kubeconfig_file: join(dir, 'nonesuch') }],
    });
    writeFileSync(file, JSON.stringify(late));
    const res = await request(`${server.url}/-/reload`, { method: 'POST' });
    assert.equal(res.status, 500);
    assert.match(res.body.toString(), /nonesuch: No such file or directory/);
    assert.deepEqual((await api(server, 'alertmanagers')).activeAlertmanagers.map((a) => a.url),
      [`${alertmanager.url}/api/v2/alerts`]);
    assert.equal((await api(server, 'rules')).groups[0].rules.length, 3);
    writeFileSync(file, options.config);
    assert.equal((await request(`${server.url}/-/reload`, { method: 'POST' })).status, 200);
  });

  assert.equal(await alert(server), undefined);
  const regressed = Date.now();
  await regress(demo, 'scoreItems');
  await until('the alert is pending', 30, () => alert(server));
  await until('it was pending first', 30, async () => (await query(server, 'ALERTS{alertstate="pending"}[1h]')).result.length);
  const early = await received(alertmanager);
  if ((await alert(server))?.state === 'pending') assert.deepEqual(early, []);

  let activeAt;
  await t.test('a restart keeps the pending time', async () => {
    let again, before, first;
    do { // until one was quick enough: a busy machine may take longer than the window
      await until('its time is stored, and it has been pending for a while', 20, async () =>
        (await query(server, 'ALERTS_FOR_STATE')).result.length && Date.now() - Date.parse((await alert(server)).activeAt) > 5000);
      await server.stop();
      assert.equal(server.code, 0);
      const stopped = Date.now() / 1000;
      server = await startServer(t, options);
      again = await until('the alert is known again', 20, () => alert(server));
      [before, first] = await until('its time is stored again', 20, async () => {
        const { values } = (await query(server, 'ALERTS_FOR_STATE[1h]')).result[0] ?? { values: [] };
        const i = values.findIndex(([at]) => at > stopped);
        return i > 0 && [values[i - 1], values[i]];
      });
    } while (first[0] - before[0] > windowSeconds / 2);
    activeAt = Date.parse(again.activeAt);
    // The time from its last turn to its first one does not count, however long that was; what went before it does.
    const since = Number(before[1]), left = pendingSeconds - (before[0] - since);
    const moved = left <= 0 ? 0 : left < graceSeconds ? first[0] + graceSeconds - pendingSeconds - since : first[0] - before[0];
    assert.ok(Math.abs(Number(first[1]) - since - moved) < 1.1, `${JSON.stringify([before, first])}: values are whole seconds`);
    assert.ok(Math.abs(activeAt / 1000 - Number(first[1])) < 1.1, `${again.activeAt} ${first}`);
  });

  await t.test('the alert fires and Alertmanager has it', async () => {
    const firing = await until('the alert fires', 40, async () => {
      const a = await alert(server);
      return a?.state === 'firing' && a;
    });
    const lasted = (Date.now() - activeAt) / 1000;
    assert.ok(lasted >= pendingSeconds - 1, `it fired after ${lasted} s`);
    assert.deepEqual(firing.labels, {
      alertname: 'HighCost', function: 'main.scoreItems', job: 'shop', severity: 'page', team: 'shop',
    });
    await until('ALERTS says so', 10, async () => (await query(server, 'ALERTS{alertstate="firing"}')).result.length === 1);
    const [there] = await until('Alertmanager has it', 10, async () => {
      const all = await received(alertmanager);
      return all.length && all;
    });
    assert.deepEqual(there.labels, { ...firing.labels, cluster: 'test', urgency: 'page' });
    assert.match(there.annotations.summary, /^shop spends [0-9.]+% in one function$/);
    const sinceThen = (ms) => ms >= regressed && ms <= Date.now();
    assert.ok(sinceThen(Date.parse(there.startsAt)), there.startsAt);
    assert.ok(Date.parse(there.endsAt) > Date.parse(there.updatedAt) + 100000, `${there.updatedAt} ${there.endsAt}`);
    assert.ok(there.generatorURL.startsWith(`${page}/`), there.generatorURL);
    const link = new URL(there.generatorURL).searchParams;
    assert.match(link.get('query'), /process_cpu/);
    assert.equal(link.get('match'), '{function="main.scoreItems", job="shop"}');
    assert.ok(sinceThen(link.get('at') * 1000), link.get('at'));
    assert.ok(sinceThen(link.get('since') * 1000) && Number(link.get('since')) <= Number(link.get('at')), link.get('since'));
  });

  await t.test('a Prometheus scrapes what is recorded', async (t) => {
    const at = server.url.replace('http://', '');
    const job = (job_name, more) => ({ job_name, honor_labels: true, static_configs: [{ targets: [at] }], ...more });
    const prometheus = await startPrometheus(t, join(dir, 'prometheus'), JSON.stringify({
      global: { scrape_interval: '1s' },
      scrape_configs: [job('recorded', { metrics_path: '/metrics/recorded' }),
        job('federated', { metrics_path: '/federate', params: { 'match[]': ['ALERTS'] } })],
    }));
    const there = (text) => until(`Prometheus answers ${text}`, 20, async () => {
      const { result } = await query(prometheus, text);
      return result.length && result;
    });
    const [recorded] = await there('job:scoreItems:share > 0.2');
    assert.deepEqual(recorded.metric, {
      __name__: 'job:scoreItems:share', cluster: 'test', function: 'main.scoreItems', job: 'shop', team: 'shop',
    });
    const [firing] = await there('ALERTS{alertstate="firing"}');
    assert.equal(firing.metric.alertname, 'HighCost');
  });

  await regress(demo, 'none');
  await t.test('it resolves', async () => {
    await until('the alert is gone', 40, async () => !(await alert(server)));
    await until('Alertmanager knows', 10, async () => !(await received(alertmanager)).length);
  });
});
