// Several servers share the targets of one configuration; what a shard, a query node or a bucket cannot be is refused.
import test from 'node:test';
import assert from 'node:assert/strict';
import { api, epimetheus, epitool, finish, join, request, scratch, startServer, until, writeFileSync } from './lib.mjs';
import { S3Fake } from '../s3_fake.mjs';

const SECRET = 'S3CRET';
const addresses = Array.from({ length: 12 }, (_, i) => `127.0.0.1:${i + 1}`);

const bucket = (fake) => `
bucket:
  endpoint: ${fake.endpoint}
  bucket: ${fake.bucket}
  region: ${fake.region}
  access_key: ${fake.accessKey}
  secret_key: ${fake.secretKey}
  session_token: ''
  http_headers: {X-Key: {secrets: [${SECRET}]}}
`;

const config = (fake) => `
rule_files: [rules.yml]
scrape_configs:
- job_name: shared
  scrape_interval: 1h
  profiling_config:
    pprof_config:
      ${['memory', 'block', 'mutex', 'goroutine', 'goroutineleak'].map((p) => `${p}: {enabled: false}`).join('\n      ')}
  static_configs: [{targets: [${addresses.map((a) => `'${a}'`).join(', ')}, '127.0.0.1:99']}]
  relabel_configs: [{source_labels: [__address__], regex: '.*:99', action: drop}]
${bucket(fake)}`;

const rules = `
groups:
- name: g
  rules: [{alert: A, expr: 'up == 0'}]
`;

test('Targets are shared, rules run elsewhere', async (t) => {
  const fake = await new S3Fake().listen();
  t.after(() => fake.close());
  const total = 3;
  const owners = new Map();
  const dropped = new Map();
  for (let i = 0; i < total; i++) {
    const dir = scratch(t);
    writeFileSync(join(dir, 'rules.yml'), rules);
    const server = await startServer(t, { dir, config: config(fake), args: [`--shard.name=epi-${i}`, `--shard.total=${total}`] });
    const seen = await until('targets', 20, async () => {
      const data = await api(server, 'targets');
      return data.droppedTargetCounts.shared !== undefined && data.activeTargets.length + data.droppedTargets.length === 13 && data;
    });
    for (const target of seen.activeTargets) {
      const address = target.discoveredLabels.__address__;
      assert.ok(!owners.has(address), address);
      owners.set(address, i);
    }
    assert.equal(seen.droppedTargetCounts.shared, seen.droppedTargets.length);
    dropped.set(i, seen.droppedTargets.map((d) => [d.discoveredLabels.__address__, d.reason]));
    // why: the last step of relabelling
    for (const d of seen.droppedTargets.filter((x) => x.reason)) {
      const steps = await api(server, 'targets/relabel_steps', { scrapePool: 'shared', labels: JSON.stringify(d.discoveredLabels) });
      assert.deepEqual(steps.profiles.map((p) => [p.profile, p.keep, `shard ${p.shard} scrapes it (shards 0 to ${total - 1})`]),
        [['process_cpu', false, d.reason]]);
    }
    const metrics = (await request(`${server.url}/metrics`)).body.toString();
    assert.match(metrics, new RegExp(`^epimetheus_scrape_pool_targets_of_other_shards\\{scrape_pool="shared"\\} ${seen.droppedTargets.length - 1}$`, 'm'));
    // rules are read, and do not run
    for (const path of ['rules', 'alerts']) {
      const answer = JSON.parse((await request(`${server.url}/api/v1/${path}`)).body);
      assert.deepEqual(answer.warnings, ['rules do not run on one of several shards, but on query nodes']);
      assert.deepEqual(answer.data, path === 'rules' ? { groups: [] } : { alerts: [] });
    }
    assert.match(server.err, /msg="rules do not run on one of several shards, but on query nodes" rules=1 shards=3/);
    const shown = (await api(server, 'status/config')).yaml;
    for (const secret of [SECRET, fake.secretKey]) assert.ok(!shown.includes(secret), shown);
    assert.match(shown, /secret_key: <secret>/);
    assert.equal((await api(server, 'status/flags'))['shard.name'], `epi-${i}`);
    await server.stop();
  }
  assert.deepEqual([...owners.keys()].sort(), [...addresses].sort());
  assert.ok(new Set(owners.values()).size > 1);
  for (const [i, list] of dropped)
    for (const [address, reason] of list)
      assert.equal(reason, address === '127.0.0.1:99' ? undefined : `shard ${owners.get(address)} scrapes it (shards 0 to ${total - 1})`, `${i} ${address}`);
});

test('What makes no sense is refused', async (t) => {
  const fake = await new S3Fake().listen();
  t.after(() => fake.close());
  const dir = scratch(t);
  const file = join(dir, 'c.yml');
  const base = [`--storage.tsdb.path=${join(dir, 'data')}`, '--web.listen-address=127.0.0.1:0', `--config.file=${file}`];
  const rows = [
    ['scrape_configs: []\n', ['--mode=query'], /--mode=query needs `bucket` in the configuration/],
    ['scrape_configs: []\n', ['--shard.total=2', '--shard.name=a-1'], /--shard.total=2 needs `bucket`/],
    [bucket(fake), ['--mode=compact', '--web.enable-ingest'], /--web.enable-ingest makes no sense with --mode=compact/],
    [bucket(fake), ['--shard.total=2', '--shard.name=a-2'], /the number at the end of --shard.name .*a-2.* is not 0 to 1/],
    [`bucket: {endpoint: '${fake.endpoint}', bucket: b, prefix: a//b}\n`, ['--shard.name=a'], /c\.yml:1:9: prefix .*a\/\/b.* has an empty part/],
  ];
  for (const [text, args, message] of rows) {
    writeFileSync(file, text);
    const run = await finish(t, epimetheus, [...base, ...args], 20);
    assert.equal(run.code, 2, run.err);
    assert.match(run.err, message);
  }
});

test('epitool checks the bucket', async (t) => {
  const dir = scratch(t);
  const file = join(dir, 'c.yml');
  const check = async (text) => {
    writeFileSync(file, text);
    return finish(t, epitool, ['check', 'config', file]);
  };
  assert.equal((await check(`bucket: {endpoint: 'http://s3', bucket: b, prefix: a/b}\n`)).code, 0);
  for (const [text, message] of [
    [`bucket: {endpoint: 'http://s3', bucket: b, prefix: a//b}\n`, /c\.yml:1:9: prefix "a\/\/b" has an empty part/],
    [`bucket:\n  endpoint: http://s3\n  bucket: b\n  credentials_file: gone.ini\n`, /bucket: credentials file .*gone\.ini: No such file/],
    [`bucket: {endpoint: 'http://s3', bucket: b, secret_key: ${SECRET}}\n`, /c\.yml:1:9: secret_key needs access_key/],
  ]) {
    const run = await check(text);
    assert.equal(run.code, 1);
    assert.match(run.err, message);
    assert.ok(!run.err.includes(SECRET));
  }
});
