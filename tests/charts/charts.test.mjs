// The chart of examples/kubernetes by helm, and its kustomizations by kustomize: every object is valid, objects fit each other, and
// the real program runs with the flags and the configuration that they give it.
import test from 'node:test';
import assert from 'node:assert/strict';
import { copyFileSync, mkdirSync } from 'node:fs';
import { relative } from 'node:path';
import { epitool, finish, join, request, root, scratch, startServer, targets, until, writeFileSync } from '../e2e/lib.mjs';
import { certificates } from '../e2e/certificates.mjs';
import { KubeApi, pod } from '../e2e/kube_api.mjs';
import { S3Fake } from '../s3_fake.mjs';
import { checkFlags, fit, members, named, of, selected, workloads } from './manifests.mjs';
import { parse, run, validate } from './tools.mjs';

const chart = join(root, 'examples/kubernetes/chart');
const image = { repository: 'registry.example/epimetheus' };
const bucket = { endpoint: 'https://s3.example', bucket: 'profiles', region: 'eu-central-1' };
const everything = {
  imagePullSecrets: ['pull'], priorityClassName: 'important', secrets: ['alertmanager'], labels: { team: 'perf' },
  web: { secret: 'epimetheus-web', tls: true, externalUrl: 'https://profiles.example/epi/' },
  networkPolicy: { enabled: true, from: [{ namespaceSelector: { matchLabels: { team: 'perf' } } }] },
  serviceMonitor: { enabled: true, labels: { release: 'prometheus' }, settings: { authorization: { credentials: { name: 'metrics', key: 'token' } } } },
  prometheusRule: { enabled: true, labels: { release: 'prometheus' } },
  route: { enabled: true, parentRefs: [{ name: 'gateway', namespace: 'infra' }], hostnames: ['profiles.example'] },
  topologySpread: { zone: 'DoNotSchedule' }, service: { type: 'LoadBalancer', annotations: { cost: 'shared' } },
  accounts: { scraper: { 'eks.amazonaws.com/role-arn': 'arn:aws:iam::1:role/shard' } },
  retention: { time: '90d', size: '40GB' },
  ruleFiles: { 'fleet.yml': { groups: [{ name: 'fleet', rules: [{ record: 'job:cpu', expr: 'total(merge by (job) (cpu[5m]))' }] }] } },
  scrape: { configs: [{ job_name: 'further', static_configs: [{ targets: ['10.0.0.1:6060'] }] }] },
};
const pushes = { enabled: true };

function template(t, values) {
  const file = join(scratch(t), 'values.json');
  writeFileSync(file, JSON.stringify(values));
  return run('helm', ['template', 'epimetheus', chart, '--namespace=profiling', '--kube-version=1.34.2', '-f', file]);
}

/** The objects of a release, each valid. */
function rendered(t, values) {
  const { code, out, err } = template(t, { image, ...values });
  assert.equal(code, 0, err);
  validate(out);
  return parse(out);
}

const names = (objects) => objects.map((o) => `${o.kind} ${o.metadata.name}`).sort();
const pods = (objects) => workloads(objects).map((o) => o.spec.template.spec);
const argsOf = (objects, kind, name) => named(objects, kind, name).spec.template.spec.containers[0].args;
const configOf = (objects) => parse(named(objects, 'ConfigMap', 'epimetheus').data['epimetheus.yml'])[0];
const jobs = (objects) => configOf(objects).scrape_configs.map((job) => job.job_name);
const components = (objects, service) =>
  selected(objects, named(objects, 'Service', service)).map((one) => one.metadata.labels['app.kubernetes.io/component']);

// ---- running what was rendered

/** The directory of a release's files; discovery asks `kube`, the bucket is `store`. */
function place(t, objects, kube, store) {
  const dir = scratch(t);
  for (const [name, text] of Object.entries(named(objects, 'ConfigMap', 'epimetheus').data)) writeFileSync(join(dir, name), text);
  const config = configOf(objects);
  config.scrape_configs = config.scrape_configs.filter((job) => job.job_name !== 'kube-apiserver'); // its certificate is the pod's
  for (const job of config.scrape_configs)
    for (const sd of job.kubernetes_sd_configs ?? []) {
      sd.api_server = kube.url;
      if (sd.namespaces?.own_namespace) sd.namespaces = { names: ['profiling'] }; // its name is a file of the pod's
    }
  if (store) Object.assign(config.bucket, { endpoint: store.endpoint, bucket: store.bucket, region: store.region, access_key: store.accessKey, secret_key: store.secretKey });
  writeFileSync(join(dir, 'epimetheus.yml'), JSON.stringify(config));
  return dir;
}

/** Starts a member with the flags of its container. The server's own address and directory are those of the test. */
async function started(t, dir, { name, container }, web) {
  const at = join(dir, name);
  mkdirSync(at);
  const args = container.args.filter((arg) => !/^--(storage\.tsdb\.path|web\.otlp-grpc)/.test(arg))
    .map((arg) => arg.replace('/etc/epimetheus/config/', `${dir}/`).replace('/etc/epimetheus/web/web.yml', web).replace('$(POD_NAME)', `${name}-0`));
  if (name.endsWith('-shard')) args.push(`--shard.name=${name}-0`);
  const server = await startServer(t, { dir: at, args, seconds: 60 });
  for (const probe of ['readinessProbe', 'livenessProbe'])
    assert.equal((await request(server.url + container[probe].httpGet.path)).status, 200, `${name} ${probe}`);
  return server;
}

const asked = { 'profiles.grafana.com/cpu.scrape': 'true', 'profiles.grafana.com/cpu.port': '6060' };
const annotated = (namespace) => {
  const one = pod(namespace, 'web-1', { ip: '10.1.0.1' });
  one.metadata.annotations = asked;
  return one;
};

const found = (server, job) => until(`a target of ${job}`, 30, async () => (await targets(server)).some((x) => x.scrapePool === job));

// ---- modes

test('the chart is sound', () => {
  const { code, out } = run('helm', ['lint', '--strict', chart, '--set=image.repository=registry.example/epimetheus']);
  assert.equal(code, 0, out);
});

test('one server', async (t) => {
  const objects = rendered(t, {});
  assert.deepEqual(names(objects), ['ClusterRole profiling-epimetheus', 'ClusterRoleBinding profiling-epimetheus', 'ConfigMap epimetheus',
    'Service epimetheus', 'Service epimetheus-members', 'ServiceAccount epimetheus', 'StatefulSet epimetheus']);
  fit(objects);
  await checkFlags(t, objects);
  assert.equal(named(objects, 'StatefulSet', 'epimetheus').spec.replicas, 1);
  assert.equal(pods(objects)[0].containers[0].image, 'registry.example/epimetheus:0.1.0');
  assert.deepEqual(jobs(objects), ['grafana-annotations', 'pyroscope-annotations', 'profefe-annotations', 'kube-apiserver', 'epimetheus']);
  const kube = await new KubeApi().listen(t);
  kube.put('pods', annotated('shop'));
  const server = await started(t, place(t, objects, kube), members(objects)[0]);
  for (const job of ['grafana-annotations', 'epimetheus']) await found(server, job);
});

test('a pair', async (t) => {
  const objects = rendered(t, { mode: 'pair', ...everything });
  fit(objects);
  await checkFlags(t, objects);
  const set = named(objects, 'StatefulSet', 'epimetheus').spec;
  assert.deepEqual([set.replicas, set.updateStrategy.type, set.podManagementPolicy], [2, 'RollingUpdate', undefined]);
  assert.equal(named(objects, 'Service', 'epimetheus').spec.sessionAffinity, 'ClientIP');
  assert.deepEqual(of(objects, 'PodDisruptionBudget').map((o) => [o.metadata.name, o.spec.maxUnavailable]), [['epimetheus-server', 1]]);
});

test('a cluster', async (t) => {
  const kube = await new KubeApi().listen(t), store = await new S3Fake().listen();
  t.after(() => store.close());
  const objects = rendered(t, { mode: 'cluster', bucket, pushes, bucketSecret: 'epimetheus-bucket' });
  fit(objects);
  await checkFlags(t, objects);
  assert.deepEqual(workloads(objects).map((o) => `${o.kind} ${o.metadata.name}`).sort(),
    ['Deployment epimetheus-caretaker', 'Deployment epimetheus-query', 'StatefulSet epimetheus-shard']);
  for (const [service, component] of [['epimetheus', 'query'], ['epimetheus-push', 'shard'], ['epimetheus-shard', 'shard']])
    assert.deepEqual(components(objects, service), [component], service);
  // Shards start together and are updated one by one; a drain of nodes takes one of a kind.
  const shards = named(objects, 'StatefulSet', 'epimetheus-shard').spec;
  assert.deepEqual([shards.replicas, shards.updateStrategy, shards.podManagementPolicy], [3, { type: 'RollingUpdate' }, 'Parallel']);
  assert.deepEqual(of(objects, 'PodDisruptionBudget').map((o) => [o.metadata.name, o.spec.maxUnavailable]).sort(), [['epimetheus-query', 1], ['epimetheus-shard', 1]]);
  assert.ok(argsOf(objects, 'StatefulSet', 'epimetheus-shard').includes('--shard.address=http://$(POD_NAME).epimetheus-shard:7272'));
  for (const one of pods(objects)) assert.deepEqual(one.containers[0].envFrom, [{ secretRef: { name: 'epimetheus-bucket' } }]);
  assert.deepEqual(Object.fromEntries(of(objects, 'ServiceAccount').map((o) => [o.metadata.name, o.automountServiceAccountToken])),
    { epimetheus: true, 'epimetheus-query': false, 'epimetheus-caretaker': false });

  kube.put('pods', annotated('shop'));
  const dir = place(t, objects, kube, store);
  const list = members(objects);
  const shard = await started(t, dir, list.find((m) => m.name.endsWith('-shard')));
  await found(shard, 'grafana-annotations');
  for (const one of list.filter((m) => !m.name.endsWith('-shard'))) await started(t, dir, one);
});

// ---- what values do

test('rights of namespaces', async (t) => {
  const objects = rendered(t, { rbac: { scope: 'namespace' }, scrape: { namespaces: ['shop', 'bank'] } });
  fit(objects);
  assert.deepEqual(objects.filter((o) => /^Cluster/.test(o.kind)), []);
  for (const kind of ['Role', 'RoleBinding'])
    assert.deepEqual(of(objects, kind).map((o) => o.metadata.namespace).sort(), ['bank', 'profiling', 'shop']);
  assert.ok(!jobs(objects).includes('kube-apiserver'), 'API servers are of no namespace');
  for (const job of configOf(objects).scrape_configs)
    for (const sd of job.kubernetes_sd_configs ?? []) assert.deepEqual(sd.namespaces, { names: ['shop', 'bank'] });
  // Without a list: its own.
  const own = rendered(t, { rbac: { scope: 'namespace' } });
  assert.deepEqual(of(own, 'Role').map((o) => o.metadata.namespace), ['profiling']);
  assert.deepEqual(configOf(own).scrape_configs[0].kubernetes_sd_configs[0].namespaces, { names: ['profiling'] });
  const kube = await new KubeApi().listen(t);
  kube.put('pods', annotated('bank'));
  await found(await started(t, place(t, objects, kube), members(objects)[0]), 'grafana-annotations');
  assert.deepEqual(rendered(t, { rbac: { create: false } }).filter((o) => /Role/.test(o.kind)), []);
});

test('all that may be asked for', (t) => {
  for (const mode of ['one', 'pair', 'cluster']) {
    const objects = rendered(t, { mode, ...everything, ...(mode === 'cluster' ? { bucket } : {}), ...(mode === 'pair' ? {} : { pushes }) });
    fit(objects);
    for (const one of pods(objects)) {
      const [c] = one.containers;
      assert.deepEqual([one.priorityClassName, one.imagePullSecrets, one.topologySpreadConstraints.map((x) => x.whenUnsatisfiable).sort()],
        ['important', [{ name: 'pull' }], ['DoNotSchedule', 'ScheduleAnyway']]);
      assert.deepEqual(c.readinessProbe.httpGet, { path: '/epi/-/ready', port: 'http', scheme: 'HTTPS' });
      assert.ok(c.args.includes('--web.config.file=/etc/epimetheus/web/web.yml'));
      assert.ok(c.volumeMounts.some((m) => m.mountPath === '/etc/epimetheus/secrets/alertmanager' && m.readOnly));
      assert.deepEqual(one.volumes.filter((v) => v.secret).map((v) => v.secret.secretName), ['epimetheus-web', 'alertmanager']);
      assert.deepEqual([one.securityContext.runAsNonRoot, c.securityContext.readOnlyRootFilesystem, c.securityContext.capabilities], [true, true, { drop: ['ALL'] }]);
    }
    for (const o of objects) assert.equal(o.metadata.labels.team, 'perf', `${o.kind} ${o.metadata.name}`);
    // Each member is scraped once, under the job that the alerts ask for.
    const [monitor] = of(objects, 'ServiceMonitor');
    const watched = of(objects, 'Service').filter((o) => Object.entries(monitor.spec.selector.matchLabels).every(([k, v]) => o.metadata.labels[k] === v));
    assert.equal(watched.length, 1);
    assert.equal(selected(objects, watched[0]).length, workloads(objects).length);
    assert.deepEqual([monitor.spec.endpoints[0].path, monitor.spec.endpoints[0].scheme], ['/epi/metrics', 'https']);
    assert.equal(monitor.spec.endpoints[0].relabelings[0].replacement, 'epimetheus');
    const alerts = of(objects, 'PrometheusRule')[0].spec.groups.flatMap((g) => g.rules);
    assert.ok(alerts.some((r) => r.expr === 'up{job="epimetheus"} == 0'));
    assert.ok(alerts.every((r) => !/job=/.test(r.expr) || /job="epimetheus"/.test(r.expr)));
    const [route] = of(objects, 'HTTPRoute');
    assert.deepEqual(route.spec.rules[0].matches[0].path, { type: 'PathPrefix', value: '/epi' });
    named(objects, 'Service', route.spec.rules[0].backendRefs[0].name);
    // The policy is of all pods, and lets them reach each other.
    const [policy] = of(objects, 'NetworkPolicy');
    assert.equal(selected(objects, policy).length, workloads(objects).length);
    assert.deepEqual(policy.spec.ingress[0].from[0].podSelector, policy.spec.podSelector);
    assert.deepEqual(policy.spec.ingress[0].ports, mode === 'pair' ? [{ port: 'http' }] : [{ port: 'http' }, { port: 'otlp-grpc' }]);
    assert.deepEqual(configOf(objects).rule_files, ['fleet.yml']);
    assert.equal(jobs(objects).at(-1), 'further');
  }
});

test('probes need no user', async (t) => {
  const objects = rendered(t, { web: { secret: 'epimetheus-web' } });
  const kube = await new KubeApi().listen(t), dir = scratch(t);
  writeFileSync(join(dir, 'token'), 'the-token-of-an-admin');
  writeFileSync(join(dir, 'web.yml'), 'users: [{name: root, token_file: token, roles: [admin]}]\n');
  const server = await started(t, place(t, objects, kube), members(objects)[0], join(dir, 'web.yml'));
  assert.equal((await request(`${server.url}/metrics`)).status, 401);
});

test('a configuration of one\'s own, and a changed one', (t) => {
  const own = rendered(t, { existingConfigMap: 'mine' });
  assert.deepEqual(of(own, 'ConfigMap'), []);
  assert.deepEqual(pods(own)[0].volumes.map((v) => v.configMap?.name), ['mine']);
  const sum = (values) => workloads(rendered(t, values))[0].spec.template.metadata.annotations['checksum/config'];
  assert.equal(sum({}), sum({}));
  assert.notEqual(sum({}), sum({ config: { global: { scrape_interval: '30s' } } }), 'pods read a changed configuration');
  const more = rendered(t, { existingConfigMap: 'mine', server: { annotations: { a: 'b' }, nodeSelector: { disk: 'fast' }, args: ['--log.format=json'] } });
  assert.deepEqual(workloads(more)[0].spec.template.metadata.annotations, { a: 'b' });
  assert.deepEqual(pods(more)[0].nodeSelector, { disk: 'fast' });
  assert.equal(pods(more)[0].containers[0].args.at(-1), '--log.format=json');
  const digest = `sha256:${'a'.repeat(64)}`;
  assert.equal(pods(rendered(t, { image: { ...image, tag: 'x', digest } }))[0].containers[0].image, `registry.example/epimetheus@${digest}`);
});

test('what the API server would refuse or drop is found', () => {
  const service = (more) => JSON.stringify({ apiVersion: 'v1', kind: 'Service', metadata: { name: 'x' }, spec: { ports: [{ port: 1, ...more }] } });
  validate(service({ targetPort: 'http' }));
  validate(service({ targetPort: 80 }));
  for (const more of [{ target: 80 }, { port: 'x' }, { targetPort: null }]) assert.throws(() => validate(service(more)), JSON.stringify(more));
  assert.throws(() => validate(JSON.stringify({ apiVersion: 'v1', kind: 'Servant', metadata: { name: 'x' } })), /could not find schema/);
});

test('values that cannot be', (t) => {
  const rows = [
    [{ image: {} }, /image.*repository|repository.*minLength/s],
    [{ image, mode: 'three' }, /mode/],
    [{ image, mode: 'cluster' }, /bucket/],
    [{ image, mode: 'pair', pushes }, /pushes/], // a push would be in one of the two
    [{ image, mode: 'pair', bucket }, /bucket/],
    [{ image, replicas: 2 }, /replicas/],
    [{ image, server: { resource: {} } }, /resource/],
    [{ image, route: { enabled: true } }, /parentRefs/],
    [{ image, config: { scrape_configs: [] } }, /config/],
    [{ image, server: { args: ['web.enable-lifecycle'] } }, /args/],
    [{ image, retention: { time: '30' } }, /retention/],
  ];
  for (const [values, want] of rows) {
    const { code, err } = template(t, values);
    assert.notEqual(code, 0, JSON.stringify(values));
    assert.match(err, want);
    assert.match(err, /schema/);
  }
});

// ---- kustomize

test('kustomizations', async (t) => {
  const dir = join(scratch(t), 'mine');
  mkdirSync(dir);
  for (const [variant, kinds] of [['server', 'StatefulSet'], ['namespaced', 'StatefulSet'], ['profiler', 'DaemonSet,StatefulSet'], ['cluster', 'Deployment,Deployment,StatefulSet']]) {
    // As the one of examples/kubernetes, with another namespace and another image.
    writeFileSync(join(dir, 'kustomization.yaml'), JSON.stringify({ namespace: 'mine',
      resources: [relative(dir, join(root, 'examples/kubernetes', variant))], images: [{ name: 'epimetheus', newName: 'registry.example/mine', newTag: '1.2.3' }] }));
    const { code, out, err } = run('kustomize', ['build', dir]);
    assert.equal(code, 0, err);
    validate(out);
    const objects = parse(out);
    assert.equal(workloads(objects).map((o) => o.kind).sort().join(), kinds);
    fit(objects);
    await checkFlags(t, objects);
    for (const o of objects) assert.equal(o.metadata.namespace, /^Cluster/.test(o.kind) ? undefined : 'mine', `${o.kind} ${o.metadata.name}`);
    for (const { container } of members(objects)) assert.equal(container.image, 'registry.example/mine:1.2.3');
    assert.equal(objects.some((o) => /^Cluster/.test(o.kind)), variant !== 'namespaced');
  }
  const { out } = run('kustomize', ['build', join(root, 'examples/kubernetes')]);
  for (const { container } of members(parse(out))) assert.match(container.image, /^registry\.example\/epimetheus:\d/);
});

test('configurations of the kustomizations are valid', async (t) => {
  for (const variant of ['server', 'namespaced', 'cluster']) {
    const dir = scratch(t);
    const files = named(parse(run('kustomize', ['build', join(root, 'examples/kubernetes', variant)]).out), 'ConfigMap', 'epimetheus').data;
    certificates(dir);
    copyFileSync(join(dir, 'ca.pem'), join(dir, 'ca.crt'));
    writeFileSync(join(dir, 'token'), 'x');
    for (const [name, text] of Object.entries(files))
      writeFileSync(join(dir, name), text.replaceAll('/var/run/secrets/kubernetes.io/serviceaccount', dir));
    const checked = await finish(t, epitool, ['check', 'config', join(dir, 'epimetheus.yml')]);
    assert.equal(checked.code, 0, checked.out + checked.err);
  }
});
