// "Fields of ..." in the book's chapters for those who come from other programs: each row is tried here, under the
// program's name and its first cell. A row without a test fails, as does a test without a row.
import test from 'node:test';
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { epitool, finish, join, request, root, scratch, startServer, writeFileSync } from './lib.mjs';

const rows = ['prometheus', 'parca', 'pyroscope'].flatMap((name) => {
  const chapter = readFileSync(join(root, `web/book/guides/from-${name}.md`), 'utf8');
  return [...chapter.matchAll(/^## Fields of (\w+)\n[^|]*\| \1 \| here \|\n\|---\|---\|\n((?:\|.*\n)+)/gm)].flatMap(([, program, table]) =>
    [...table.matchAll(/^\| (.*?) \| (.*) \|$/gm)].map(([, before, here]) => ({ before: `${program}: ${before}`, here })));
});

let dir;
async function run(t, args, text) {
  writeFileSync(join(dir, 'file'), text);
  return finish(t, epitool, [...args, join(dir, 'file')]);
}
const job = (more) => `scrape_configs:\n- job_name: a\n${more.split('\n').map((x) => `  ${x}\n`).join('')}`;

/** check config: the exit code, and what it says. */
const check = (text, code, want, ...flags) => async (t) => {
  const r = await run(t, ['check', 'config', '--syntax-only', ...flags], text);
  assert.equal(r.code, code, r.err);
  assert.match(r.err, want);
};
/** convert: what is written. */
const convert = (program, text, want) => async (t) => {
  const r = await run(t, ['convert', program], text);
  assert.equal(r.code, 0, r.err);
  assert.match(r.out, want);
};
const both = (...all) => async (t) => {
  for (const one of all) await one(t);
};
const scrape = (more, rest = '') =>
  `pyroscope.scrape "x" {\n  targets = discovery.relabel.r.output\n  forward_to = [pyroscope.write.w.receiver]\n${more}\n}\n` +
  `discovery.kubernetes "k" {\n  role = "pod"\n}\ndiscovery.relabel "r" {\n  targets = discovery.kubernetes.k.targets\n  rule {\n    action = "drop"\n` +
  `    source_labels = ["a"]\n  }\n}\npyroscope.write "w" {\n  external_labels = {"env" = "dev"}\n}\n${rest}`;

const tests = {
  'Prometheus: `scrape_configs`, `relabel_configs`, `static`, `file`, `http`, `dns`, `kubernetes`, `consul`, `docker`, `ec2`, `nomad` discovery': check(
    job('relabel_configs: [{action: labeldrop, regex: x}]\nstatic_configs: [{targets: [a:1]}]\nfile_sd_configs: [{files: [a.yml]}]\n' +
      'http_sd_configs: [{url: "http://a"}]\ndns_sd_configs: [{names: [a]}]\nkubernetes_sd_configs: [{role: pod}]\n' +
      'consul_sd_configs: [{}]\ndocker_sd_configs: [{host: "unix:///run/docker.sock"}]\nec2_sd_configs: [{region: eu-west-1}]\nnomad_sd_configs: [{}]'),
    0, /^Checking .*\n SUCCESS: .* is valid \(syntax only\): 1 scrape config\n$/),
  'Prometheus: `metrics_path`, `honor_timestamps`, `scrape_protocols` ...': check(
    job('metrics_path: /m\nhonor_timestamps: true\nscrape_protocols: []'), 0, /(  WARNING: .* is not used here: .*\n){3} SUCCESS/),
  'Prometheus: `__metrics_path__` set by relabelling': check(
    job('relabel_configs: [{target_label: __metrics_path__, replacement: /x}]'), 0, /WARNING: .*:3:36: __metrics_path__ .* __profile_path__\n/),
  'Prometheus: `remote_write`, `remote_read`, `storage`, `tracing`, `otlp`, `runtime`': both(
    check('remote_write: []\nremote_read: []\nstorage: {}\ntracing: {}\notlp: {}\nruntime: {}\n', 1, /(  FAILED: .*; --config\.ignore-foreign skips the field\n){6}$/),
    check('remote_write: []\nremote_read: []\nstorage: {}\ntracing: {}\notlp: {}\nruntime: {}\n', 0, /(  WARNING: .*\n){6} SUCCESS/, '--config.ignore-foreign')),
  'Prometheus: `azure_sd_configs` and what else is not above': check(
    job('azure_sd_configs: []'), 1, /FAILED: .*: write http_sd_configs, .* or file_sd_configs\n/),
  'Prometheus: `promtool check config`, `check rules`, `test rules`': async (t) => {
    for (const words of [['check', 'config'], ['check', 'rules'], ['test', 'rules']]) {
      const r = await run(t, words, words[1] === 'config' ? 'global: {}\n' : words[0] === 'check' ? 'groups: []\n' : 'tests: []\n');
      assert.equal(r.code, 0, r.err);
    }
  },
  'Parca: `object_storage`': check('object_storage: {bucket: {type: FILESYSTEM}}\n', 1, /FAILED: .*: write `bucket` .*--storage\.tsdb\.path\n/),
  'Parca: `scrape_timeout` above `scrape_interval`': check(job('scrape_interval: 10s\nscrape_timeout: 13s'), 0, /WARNING: .*:4:19: scrape_timeout is cut/),
  'Parca: `pprof_config`': both(
    check(job('profiling_config: {pprof_config: {process_cpu: {path: /x, seconds: 5}, mine: {path: /y, keep_sample_type: []}}}'), 0, /keep_sample_type is not used here/),
    convert('parca', job('profiling_config: {pprof_config: {mine: {path: /y}}}\nstatic_configs: [{targets: [a]}]'),
      /# Parca did not take "mine", .* here the path is enough\n {8}mine:\n/)),
  'Pyroscope: `scrape-configs`': both(
    check('scrape-configs: []\n', 1, /`epitool convert pyroscope FILE`/),
    convert('pyroscope', 'scrape-configs:\n- job-name: a\n  static-configs: [{targets: [a:1]}]\n', /scrape_configs:\n {2}- job_name: a\n {4}static_configs:\n/)),
  'Pyroscope: `enabled-profiles: [cpu, mem]`': convert('pyroscope', 'scrape-configs:\n- job-name: a\n  enabled-profiles: [cpu, mem]\n',
    /process_cpu:\n {10}enabled: true\n {8}memory:\n {10}enabled: true\n {8}goroutine:\n {10}enabled: false\n/),
  'Pyroscope: `application`, `service_name`': convert('pyroscope',
    'scrape-configs:\n- job-name: a\n  static-configs: [{application: shop, targets: [a:1], labels: {x: y}}]\n', / service_name: shop\n {10}x: y\n/),
  'Pyroscope: what is sent by its SDKs': async (t) => {
    const server = await startServer(t, { dir, args: ['--web.enable-ingest'], config: 'scrape_configs: []\n' });
    const now = Math.floor(Date.now() / 1000);
    const res = await request(`${server.url}/ingest?${new URLSearchParams({ name: 'shop.cpu{}', from: now - 10, until: now, format: 'folded' })}`,
      { method: 'POST', body: 'main;work 5\n' });
    assert.equal(res.status, 200, res.body.toString());
  },
  'Alloy: `pyroscope.scrape` with its `discovery.*` and `discovery.relabel`': convert('alloy', scrape(''),
    / {2}- job_name: pyroscope\.scrape\.x\n {4}kubernetes_sd_configs:\n {6}- role: pod\n {4}relabel_configs:\n[^]*# discovery\.relabel "r"\n {6}- action: drop\n/),
  'Alloy: `external_labels` of `pyroscope.write`': convert('alloy', scrape(''), / {6}- target_label: env\n {8}replacement: dev\n/),
  'Alloy: `delta_profiling_duration`': convert('alloy', scrape('  scrape_interval = "30s"\n  delta_profiling_duration = "10s"'), /process_cpu:\n.*\n {10}seconds: 10\n/),
  'Alloy: `profile.godeltaprof_memory`': convert('alloy',
    scrape('  profiling_config {\n    profile.memory {\n      enabled = false\n    }\n    profile.godeltaprof_memory {\n      enabled = true\n    }\n  }'),
    /memory is on for profile\.godeltaprof_memory: .*\n {8}memory:\n {10}enabled: true\n/),
  'Alloy: `pyroscope.ebpf`, `pyroscope.java`': convert('alloy', scrape('', 'pyroscope.ebpf "e" { }\npyroscope.java "j" { }\n'),
    /# pyroscope\.ebpf "e" stays in Alloy: .*--web\.enable-ingest\n# pyroscope\.java "j" stays in Alloy/),
};

test('each row of the table has a test', () => {
  assert.ok(rows.length > 10);
  assert.deepEqual(Object.keys(tests).sort(), rows.map((x) => x.before).sort());
});

test('what the table says', async (t) => {
  dir = scratch(t);
  for (const { before } of rows) await t.test(before, (t) => tests[before]?.(t));
});
