// Rules that users save, with the real server: they run, survive kill -9, damage and reloads, and are undone; where they are
// refused, the answer says what to do.
import test from 'node:test';
import assert from 'node:assert/strict';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { epimetheus, epitool, finish, join, request, scratch, startServer, until } from './lib.mjs';
import { S3Fake } from '../s3_fake.mjs';

// bcrypt of "secret", cost 4, as `htpasswd -nbB -C 4` writes it.
const secretHash = '$2b$04$dmpZqExj/u8TGBoVsL10Z.nT5488xB4GECFwppKfqrg0hArqnCz/K';
const basic = (user) => ({ Authorization: `Basic ${Buffer.from(`${user}:secret`).toString('base64')}` });
const webConfig = `
basic_auth_users: {alice: "${secretHash}", reader: "${secretHash}"}
users: [{name: alice, roles: [admin]}, {name: reader, roles: [read]}]
`;
const group = (name, expr = 'vector(1) > 0', more = {}) => JSON.stringify({ groups: [
  { name, interval: '1s', rules: [{ alert: name, expr, labels: { severity: 'page' }, ...more }] }] });

async function start(t, dir, { config = { rule_files: ['own.yml'] }, args = ['--web.enable-rules'] } = {}) {
  writeFileSync(join(dir, 'web.yml'), webConfig);
  const server = await startServer(t, { dir, config: JSON.stringify(config), args: ['--web.config.file', join(dir, 'web.yml'), ...args] });
  const ask = async (method, path, body, user = 'alice') => {
    const res = await request(`${server.url}/api/v1/${path}`, { method, body, headers: basic(user) });
    return { ...JSON.parse(res.body), status: res.status };
  };
  const names = async () => (await ask('GET', 'rules/saved')).data.groups.map((g) => g.name);
  // As the manager has it: firing only once it was evaluated.
  const firing = (name) => until(`${name} fires`, 20, async () =>
    (await ask('GET', 'alerts')).data.alerts.some((a) => a.labels.alertname === name && a.state === 'firing'));
  return { server, ask, names, firing, save: (text, params = '') => ask('POST', `rules/saved${params}`, text) };
}

function scratchRules(t) {
  const dir = scratch(t);
  writeFileSync(join(dir, 'own.yml'), group('Own', 'vector(1) > 0'));
  return dir;
}

test('a rule is saved, runs, survives kill -9, is replaced, deleted and restored', async (t) => {
  const dir = scratchRules(t);
  let { server, ask, names, firing, save } = await start(t, dir);

  const saved = await save(group('Costs'));
  assert.equal(saved.status, 200, JSON.stringify(saved));
  assert.equal(saved.data.version, 1);
  assert.equal(saved.data.change, 'save Costs');
  assert.deepEqual(saved.data.groups.map((g) => [g.name, g.interval, g.rules[0].query]), [['Costs', 1, 'vector(1) > 0']]);
  await firing('Costs');
  const list = (await ask('GET', 'rules/saved')).data;
  assert.ok(list.enabled && list.mayChange);
  assert.equal(list.groups[0].changedBy, 'alice');
  assert.ok(Math.abs(Date.parse(list.groups[0].changedAt) - Date.now()) < 600_000);
  assert.equal((await ask('GET', 'rules/saved', undefined, 'reader')).data.mayChange, false);
  const check = await finish(t, epitool, ['check', 'rules', list.file]);
  assert.equal(check.code, 0, check.err + check.out);

  await server.stop('SIGKILL');
  ({ server, ask, names, firing, save } = await start(t, dir));
  await firing('Costs');
  await firing('Own');

  // What is wrong with a rule has its place; nothing of it stays.
  const refused = async (text, params = '') => {
    const { status, error } = await save(text, params);
    return `${status} ${error}`;
  };
  assert.equal(await refused('groups:\n- name: x\n  rules:\n  - alert: X\n    expr: total(cpu) >\n'),
    '400 rule:5:11: group "x", rule 1, "X": could not parse expression: 1:13: unexpected end of query');
  assert.equal(await refused(group('Costs')), '409 "Costs" is saved already: replace=true replaces it');
  assert.match(await refused(group('Own')), /^409 .*rules\/saved\.yml:\d+:\d+: group "Own", "Own": the alert at .*own\.yml:1:\d+ has the same name and labels$/);
  assert.equal((await ask('POST', 'rules/saved', group('Y'), 'reader')).error, 'user "reader" lacks the role admin; it has read');
  assert.deepEqual(await names(), ['Costs']);

  assert.equal((await save(group('Costs', 'vector(2) > 5'), '?replace=true')).status, 200);
  assert.equal((await save(group('More'))).status, 200);
  assert.equal((await ask('DELETE', 'rules/saved?group=Costs')).status, 200);
  assert.equal((await ask('DELETE', 'rules/saved?group=Costs')).status, 404);
  assert.deepEqual(await names(), ['More']);
  assert.deepEqual((await ask('GET', 'rules/saved/history')).data.versions.map((v) => [v.version, v.change ?? '', v.groups.length]),
    [[3, 'save More', 2], [2, 'replace Costs', 1], [1, 'save Costs', 1], [0, '', 0]]);
  const undone = await ask('POST', 'rules/saved/undo');
  assert.deepEqual(undone.data.groups.map((g) => g.rules[0].query), ['vector(2) > 5', 'vector(1) > 0']);
  assert.equal((await ask('POST', 'rules/saved/undo?version=1')).data.groups[0].rules[0].query, 'vector(1) > 0');
  assert.equal((await ask('POST', 'rules/saved/undo?version=99')).error, 'version 99 is not kept');

  // A reload keeps them, one that fails too.
  server.child.kill('SIGHUP');
  await until('the reload', 20, () => server.err.split('configuration in force').length > 2);
  writeFileSync(join(dir, 'own.yml'), 'groups: [{}]');
  server.child.kill('SIGHUP');
  await until('the reload', 20, () => server.err.includes('reload failed'));
  const rules = (await ask('GET', 'rules')).data.groups;
  assert.deepEqual(rules.map((g) => g.name).sort(), ['Costs', 'Own']);

  // Without the flag they run on, and cannot be changed.
  await server.stop();
  writeFileSync(join(dir, 'own.yml'), group('Own'));
  ({ server, ask, names, firing, save } = await start(t, dir, { args: [] }));
  await firing('Costs');
  assert.match(await refused(group('Z')), /^403 saving rules is disabled: start with --web\.enable-rules, which needs users/);
  assert.equal((await ask('GET', 'features')).data.epimetheus.saved_rules, false);
});

test('damaged saved rules are moved away, named, and do not keep others from running', async (t) => {
  const dir = scratchRules(t);
  let { server, ask, names, firing, save } = await start(t, dir);
  const { file } = (await ask('GET', 'rules/saved')).data;
  await save(group('A'));
  await save(group('B'));
  await server.stop();
  writeFileSync(file, readFileSync(file, 'utf8').replace('"page"', '"PAGE"'));

  ({ server, ask, names, firing, save } = await start(t, dir));
  await firing('Own');
  assert.deepEqual(await names(), []);
  const [warning] = (await ask('GET', 'rules')).warnings;
  assert.match(warning, /^the saved rules are damaged: .*saved\.yml: its checksum is wrong; moved to .*saved\.yml\.damaged-\d+$/);
  assert.ok(readdirSync(join(dir, 'data/rules')).some((name) => name.startsWith('saved.yml.damaged-')));
  assert.equal((await ask('POST', 'rules/saved/undo')).status, 200);
  assert.deepEqual(await names(), ['A']);
  await firing('A');
  assert.equal((await ask('GET', 'rules')).warnings, undefined);
});

test('without users the server does not start; in a cluster nothing is saved', async (t) => {
  const dir = scratchRules(t);
  writeFileSync(join(dir, 'none.yml'), 'tls_server_config: {}\n');
  writeFileSync(join(dir, 'c.yml'), 'scrape_configs: []\n');
  writeFileSync(join(dir, 'web.yml'), webConfig);
  const fails = async (...args) => {
    const { code, err } = await finish(t, epimetheus, ['--config.file', join(dir, 'c.yml'), '--storage.tsdb.path', join(dir, 'x'),
      '--web.listen-address=127.0.0.1:0', '--web.enable-rules', ...args]);
    assert.equal(code, 2, err);
    return err;
  };
  assert.match(await fails(), /--web\.enable-rules needs users: --web\.config\.file has no basic_auth_users, users or trusted_proxy/);
  assert.match(await fails('--mode=query', '--web.config.file', join(dir, 'web.yml')), /--web\.enable-rules makes no sense with --mode=query: rules are added to rule_files of each query node/);

  const fake = await new S3Fake().listen();
  t.after(() => fake.close());
  const config = { rule_files: ['own.yml'], bucket: { endpoint: fake.endpoint, bucket: fake.bucket, region: fake.region,
    access_key: fake.accessKey, secret_key: fake.secretKey } };
  for (const [args, why] of [
    [[], 'rules are not saved in a cluster, as several servers evaluate them: add the rule to rule_files of each'],
    [['--shard.total=2'], 'rules are not saved on a shard, as they run on query nodes: add the rule to rule_files of each query node'],
  ]) {
    const { server, ask, save } = await start(t, dir, { config, args: ['--web.enable-rules', '--shard.name=s-0', ...args] });
    const { status, error } = await save(group('A'));
    assert.deepEqual([status, error, (await ask('GET', 'rules/saved')).data.why], [403, why, why]);
    await server.stop();
  }
});
