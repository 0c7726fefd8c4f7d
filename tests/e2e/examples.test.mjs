// What examples/ has for senders of profiles: collectors accept their configurations, and names fit each other.
import test from 'node:test';
import assert from 'node:assert/strict';
import { readFileSync, readdirSync, statSync } from 'node:fs';
import { epimetheus, epitool, execFileSync, finish, join, root, scratch, writeFileSync } from './lib.mjs';

const otelcol = join(root, 'build/senders/collector/otelcol');
const read = (path) => readFileSync(join(root, 'examples', path), 'utf8');

async function validate(t, text) {
  execFileSync(join(root, 'tests/e2e/senders/prepare.sh'), ['collector'], { stdio: 'pipe' });
  const file = join(scratch(t), 'otelcol.yml');
  writeFileSync(file, text);
  return finish(t, otelcol, ['validate', `--config=file:${file}`, '--feature-gates=+service.profilesSupport']);
}

test('configurations for discovery are accepted', async (t) => {
  for (const name of ['consul', 'docker', 'ec2', 'nomad']) {
    const file = join(scratch(t), `${name}.yml`), secret = join(scratch(t), 'secret');
    writeFileSync(secret, 'x');
    writeFileSync(file, read(`discovery/${name}.yml`).replace(/\/run\/secrets\/\S+?(?=[}\]])/, secret));
    const run = await finish(t, epitool, ['check', 'config', file]);
    assert.equal(run.code, 0, run.err);
  }
});

test('a collector accepts the configuration that relays', async (t) => {
  const run = await validate(t, read('senders/otelcol.yml'));
  assert.equal(run.code, 0, run.err);
});

test('of the eBPF profiler\'s it knows all but what it is built without', async (t) => {
  const text = read('kubernetes/profiler/otelcol.yml');
  const whole = await validate(t, text);
  assert.equal(whole.code, 1);
  assert.match(whole.err, /unknown type: "profiling"/);
  assert.match(whole.err, /unknown type: "(memory_limiter|k8s_attributes)"/); // it names one
  const rest = text.replace(/\nprocessors:\n[\s\S]*?\n\n/, '\n').replace('processors: [memory_limiter, k8s_attributes]', '')
    .replace(/ {2}profiling:\n.*\n/, '  otlp: {protocols: {http: }}\n').replace('[profiling]', '[otlp]');
  const run = await validate(t, rest);
  assert.equal(run.code, 0, run.err);
});

test('manifests of the eBPF profiler name each other', () => {
  const daemon = read('kubernetes/profiler/daemonset.yaml');
  const kustomization = read('kubernetes/profiler/kustomization.yaml');
  const collector = read('kubernetes/profiler/otelcol.yml');
  const rights = read('kubernetes/profiler/rbac.yaml');
  const server = read('kubernetes/server/statefulset.yaml');
  assert.match(daemon, /--config=\/etc\/otelcol\/otelcol\.yml/);
  assert.match(daemon, /--feature-gates=\+service\.profilesSupport/);
  assert.match(kustomization, /files: \[otelcol\.yml\]/);
  for (const name of ['serviceAccountName', 'configMap: {name']) assert.ok(daemon.includes(`${name}: ebpf-profiler`), name);
  assert.match(rights, /kind: ServiceAccount\nmetadata:\n {2}name: ebpf-profiler\n/);
  assert.match(kustomization, /- name: ebpf-profiler\n/);
  const variable = collector.match(/node_from_env_var: (\w+)/)[1];
  assert.ok(daemon.includes(`- name: ${variable}\n`));
  // The server's service, its port, and the flag without which it takes nothing.
  assert.match(collector, /endpoint: http:\/\/epimetheus:7272\n/);
  assert.match(server, /kind: Service\nmetadata:\n {2}name: epimetheus\n[\s\S]*?port: 7272/);
  assert.match(kustomization, /kind: StatefulSet, name: epimetheus[\s\S]*args\/-, value: --web\.enable-ingest\}/);
  assert.match(server, /kind: StatefulSet\nmetadata:\n {2}name: epimetheus\n/);
  assert.match(server, / args:\n/);
});

test('the image and the namespace of the manifests are set in one place', () => {
  const top = read('kubernetes/kustomization.yaml');
  assert.match(top, /^namespace: profiling$/m);
  assert.match(top, /- name: epimetheus\n {4}newName: registry\.example\/epimetheus\n {4}newTag: \d+\.\d+\.\d+\n/);
  for (const variant of ['server', 'namespaced', 'profiler', 'cluster'])
    for (const name of readdirSync(join(root, 'examples/kubernetes', variant)).filter((one) => one.endsWith('.yaml'))) {
      const text = read(`kubernetes/${variant}/${name}`);
      assert.doesNotMatch(text, /:latest|profiling$|namespace: profiling/m, `${variant}/${name}`);
      for (const [, image] of text.matchAll(/image: (.*)/g)) assert.match(image, /^(epimetheus|otel\/[a-z-]+:\d+\.\d+\.\d+)$/);
      for (const [, namespace] of text.matchAll(/^ {4}namespace: (\w+)/gm)) assert.equal(namespace, 'default', 'kustomize replaces no other');
    }
});

test('components of the Alloy configuration name each other', () => {
  const text = read('senders/config.alloy');
  const made = [...text.matchAll(/^([\w.]+) "(\w+)" \{/gm)].map(([, kind, name]) => `${kind}.${name}`);
  assert.equal(made.length, 6);
  const used = [...text.matchAll(/\b((?:discovery|pyroscope)\.\w+\.\w+)\.(?:targets|output|receiver)/g)].map(([, name]) => name);
  assert.equal(used.length, 6);
  for (const name of used) assert.ok(made.includes(name), name);
  assert.equal(text.split('{').length, text.split('}').length);
});

/** All texts below a folder of examples/, by path. */
function textsOf(dir) {
  return readdirSync(dir).flatMap((name) => {
    const path = join(dir, name);
    if (statSync(path).isDirectory()) return textsOf(path);
    return /\.(webp|json)$/.test(name) ? [] : [[path, readFileSync(path, 'utf8')]];
  });
}

test('flags, chapters and programs that examples speak of are there', async (t) => {
  const flags = (await finish(t, epimetheus, ['--help'])).out;
  const titles = new Set(readdirSync(join(root, 'web/book')).filter((f) => !/\.|pictures/.test(f))
    .flatMap((folder) => textsOf(join(root, 'web/book', folder))).map(([, text]) => text.match(/^# (.*)/)?.[1]));
  const headings = new Set([...readFileSync(join(root, 'README.md'), 'utf8').matchAll(/^#+ (.*)/gm)].map((m) => m[1]));
  let seen = 0;
  for (const [path, text] of textsOf(join(root, 'examples'))) {
    for (const [flag] of text.matchAll(/--(?:shard|storage|query|rules)\.[a-z.-]*[a-z]/g)) {
      assert.ok([`${flag} `, `${flag}=`, `--[no-]${flag.slice(2)} `].some((form) => flags.includes(form)), `${path}: ${flag}`);
      seen++;
    }
    for (const [, where, name] of text.matchAll(/(README|book), "(.*?)"/g)) assert.ok((where === 'book' ? titles : headings).has(name), `${path}: ${where}, "${name}"`);
    for (const [, program] of text.matchAll(/`(\S+) --list-regressions`/g)) assert.ok(['demo', 'build/demo'].includes(program), `${path}: ${program}`);
  }
  assert.ok(seen > 3);
});

test('several servers are shards, as the manifest says', () => {
  const text = read('kubernetes/server/statefulset.yaml');
  assert.match(text, /--shard\.total/);
  assert.doesNotMatch(text, /hashmod/);
});
