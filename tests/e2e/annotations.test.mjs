// The configuration for Kubernetes in examples/ scrapes what annotations of pods ask for: pods of an API server that
// the test runs, all else as it stands there.
import test from 'node:test';
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { KubeApi } from './kube_api.mjs';
import { api, join, root, scratch, startServer, until, writeFileSync } from './lib.mjs';

const example = readFileSync(join(root, 'examples/kubernetes/server/epimetheus.yml'), 'utf8');

const pods = [];
/**
 * address: IP and the container's port, or none; more: phase, the port's name, labels, further containers and those for
 * the start, each with its ports, and who made it: [kind, name].
 */
function pod(name, address, annotations, { phase = 'Running', ports = [], labels = {}, beside = {}, init = {}, owner } = {}) {
  const [, podIP, port] = address.match(/^\[?(.*?)\]?(?::(\d+))?$/);
  if (port) ports.push({ containerPort: Number(port), protocol: 'TCP' });
  const containers = (of) => Object.entries(of).map(([container, numbers]) => ({ name: container, image: 'x',
    ports: numbers.map((containerPort) => ({ containerPort, protocol: 'TCP' })) }));
  const ownerReferences = owner && [{ kind: owner[0], name: owner[1], controller: true }];
  pods.push({ metadata: { namespace: 'shop', name, annotations, labels, ownerReferences },
    spec: { nodeName: 'n1', containers: [{ name: 'main', image: 'x', ports }, ...containers(beside)], initContainers: containers(init) },
    status: { phase, podIP, hostIP: '192.0.2.1' } });
}

const grafana = (more) => Object.fromEntries(Object.entries(more).map(([k, v]) => [`profiles.grafana.com/${k}`, v]));
const pyroscope = (more) => Object.fromEntries(Object.entries(more).map(([k, v]) => [`pyroscope.io/${k}`, v]));
const profefe = (more) => Object.fromEntries(Object.entries(more).map(([k, v]) => [`profefe.com/${k}`, v]));

pod('plain', '10.0.0.1:80', {});
pod('cpu', '10.0.0.2:8080', grafana({ 'cpu.scrape': 'true' }));
pod('three', '10.0.0.3:8080', grafana({ 'cpu.scrape': 'true', 'memory.scrape': 'true', 'fgprof.scrape': 'true', 'mutex.scrape': 'false',
  'cpu.port': '6060', 'memory.port': '6061', 'memory.path': '/pprof/heap', 'fgprof.scheme': 'https', service_name: 'three-service' }));
// Two ports of one container: the annotation names one of them.
pod('named', '10.0.0.4', grafana({ 'goroutine.scrape': 'true', 'goroutine.port_name': 'pprof' }), { labels: { app: 'catalogue' },
  ports: [{ name: 'http', containerPort: 8080 }, { name: 'pprof', containerPort: 6060 }] });
pod('v6', '[2001:db8::5]:8080', grafana({ 'block.scrape': 'true', 'block.port': '6060' }),
  { labels: { 'app.kubernetes.io/name': 'six', 'app.kubernetes.io/version': '1.2.3' } });
pod('over', '10.0.0.6:8080', grafana({ 'cpu.scrape': 'true' }), { phase: 'Succeeded' });
pod('classic', '10.0.0.7', pyroscope({ scrape: 'true', 'application-name': 'classic-app', port: '4040', 'profile-mem-enabled': 'false',
  'profile-block-enabled': 'false', 'profile-mutex-enabled': 'false', 'profile-goroutine-enabled': 'true', 'profile-cpu-path': '/p/cpu' }));
pod('both', '10.0.0.8:8080', { ...pyroscope({ scrape: 'true' }), ...grafana({ 'mutex.scrape': 'true' }), ...profefe({ enable: 'true' }) });
pod('unasked', '10.0.0.9:8080', pyroscope({ scrape: 'false' }));
pod('fefe', '10.0.0.10', profefe({ enable: 'true' }));
pod('fefe-set', '10.0.0.11:80', profefe({ enable: 'true', port: '7070', path: '/x/pprof/', service: 'svc' }));
// One process, whatever containers there are beside its own: the annotation names the port, declared or not.
const sidecars = { beside: { envoy: [9901, 9902] }, init: { migrate: [6060], proxy: [15090] } };
pod('web-7d4b9c6f5-x2x7k', '10.0.0.20:6060', grafana({ 'cpu.scrape': 'true', 'cpu.port': '6060' }),
  { ...sidecars, owner: ['ReplicaSet', 'web-7d4b9c6f5'] });
pod('db-0', '10.0.0.21:5432', grafana({ 'memory.scrape': 'true', 'memory.port': '6060' }), { ...sidecars, owner: ['StatefulSet', 'db'] });
pod('lone', '10.0.0.22', grafana({ 'mutex.scrape': 'true', 'mutex.port': '6060' }), sidecars);
pod('nightly-29012345-abcde', '10.0.0.23', grafana({ 'block.scrape': 'true', 'block.port': '6060' }),
  { ...sidecars, owner: ['Job', 'nightly-29012345'] });
pod('labeled', '10.0.0.24:8080', grafana({ 'cpu.scrape': 'true', 'cpu.port': '6060' }), { ...sidecars, labels: { app: 'shop' } });
pod('sdk-5f6d7-abcde', '10.0.0.25:8080', pyroscope({ scrape: 'true', port: '4040', 'profile-mem-enabled': 'false',
  'profile-block-enabled': 'false', 'profile-mutex-enabled': 'false', 'profile-goroutine-enabled': 'false' }),
{ ...sidecars, owner: ['ReplicaSet', 'sdk-5f6d7'] });
pod('fefe-beside', '10.0.0.26:80', profefe({ enable: 'true' }), sidecars);
// Without it, each port of a container is a process; those for the start have ended.
pod('two', '10.0.0.27:8080', grafana({ 'goroutine.scrape': 'true' }), { beside: { worker: [8081] }, init: { migrate: [6060] } });
pod('fefe-pending', '10.0.0.12', profefe({ enable: 'true' }), { phase: 'Pending' });

const all = ['process_cpu:profile', 'memory:allocs', 'goroutine:goroutine', 'block:block', 'mutex:mutex'];
const fefe = (address, prefix) => all.map((x) => `http://${address}${prefix}/${x.split(':')[1]}`);
const want = {
  'grafana-annotations': [
    ['shop/main', 'cpu', 'http://10.0.0.2:8080/debug/pprof/profile'],
    ['three-service', 'three', 'http://10.0.0.3:6060/debug/pprof/profile'],
    ['three-service', 'three', 'http://10.0.0.3:6061/pprof/heap'],
    ['three-service', 'three', 'https://10.0.0.3:8080/debug/fgprof'],
    ['shop/catalogue', 'named', 'http://10.0.0.4:6060/debug/pprof/goroutine'],
    ['shop/six', 'v6', 'http://[2001:db8::5]:6060/debug/pprof/block'],
    ['shop/main', 'both', 'http://10.0.0.8:8080/debug/pprof/mutex'],
    ['shop/web', 'web-7d4b9c6f5-x2x7k', 'http://10.0.0.20:6060/debug/pprof/profile'],
    ['shop/db', 'db-0', 'http://10.0.0.21:6060/debug/pprof/allocs'],
    ['shop/lone', 'lone', 'http://10.0.0.22:6060/debug/pprof/mutex'],
    ['shop/nightly', 'nightly-29012345-abcde', 'http://10.0.0.23:6060/debug/pprof/block'],
    ['shop/shop', 'labeled', 'http://10.0.0.24:6060/debug/pprof/profile'],
    ['shop/main', 'two', 'http://10.0.0.27:8080/debug/pprof/goroutine'],
    ['shop/worker', 'two', 'http://10.0.0.27:8081/debug/pprof/goroutine'],
  ],
  'pyroscope-annotations': [
    ['classic-app', 'classic', 'http://10.0.0.7:4040/p/cpu'],
    ['classic-app', 'classic', 'http://10.0.0.7:4040/debug/pprof/goroutine'],
    ['shop/sdk', 'sdk-5f6d7-abcde', 'http://10.0.0.25:4040/debug/pprof/profile'],
  ],
  'profefe-annotations': [
    ...fefe('10.0.0.10:6060', '/debug/pprof').map((url) => ['fefe', 'fefe', url]),
    ...fefe('10.0.0.26:6060', '/debug/pprof').map((url) => ['fefe-beside', 'fefe-beside', url]),
    ...fefe('10.0.0.11:7070', '/x/pprof').map((url) => ['svc', 'fefe-set', url]),
  ],
};

test('pods are scraped as their annotations say', async (t) => {
  const dir = scratch(t);
  const kube = await new KubeApi().listen(t);
  for (const x of pods) kube.put('pods', x);
  const entry = 'kubernetes_sd_configs:\n      - role: pod\n';
  assert.equal(example.split(entry).length, 4);
  const config = example.replaceAll(entry, `${entry}        api_server: ${kube.url}\n`)
    .replace(/ {2}# The API servers themselves[^]*?(?= {2}- job_name: epimetheus)/, ''); // its account is the cluster's
  assert.doesNotMatch(config, /credentials/);
  const server = await startServer(t, { dir, config });
  const jobs = Object.keys(want);
  const active = await until('targets of all jobs', 30, async () => {
    const found = (await api(server, 'targets', { state: 'active' })).activeTargets;
    return jobs.every((job) => found.some((x) => x.scrapePool === job)) && found;
  });
  const got = {};
  for (const x of active)
    (got[x.scrapePool] ??= []).push([x.labels.job, x.labels.pod, x.scrapeUrl.replace(/\?.*/, '')]);
  delete got.epimetheus;
  for (const list of [...Object.values(got), ...Object.values(want)]) list.sort();
  assert.deepEqual(got, want);
  const watches = () => kube.requests.filter((x) => x.resource === 'pods' && x.watch).length;
  await until('the watch', 30, () => watches() > 0); // it follows the list
  assert.equal(watches(), 1, 'one watch for three jobs');
  const six = active.find((x) => x.labels.pod === 'v6');
  assert.deepEqual(six.labels, { instance: '[2001:db8::5]:6060', job: 'shop/six', namespace: 'shop', node: 'n1', pod: 'v6', version: '1.2.3' });
});
