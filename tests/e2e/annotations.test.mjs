// The configuration for Kubernetes in examples/ scrapes what annotations of pods ask for. Here pods come as what
// discovery says of them, from a file.
import test from 'node:test';
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { api, join, root, scratch, startServer, until, writeFileSync } from './lib.mjs';

const example = readFileSync(join(root, 'examples/kubernetes/epimetheus.yml'), 'utf8');

const pods = [];
function pod(name, address, annotations, more = {}) {
  const labels = { __meta_kubernetes_namespace: 'shop', __meta_kubernetes_pod_name: name, __meta_kubernetes_pod_phase: 'Running',
    __meta_kubernetes_pod_container_name: 'main', __meta_kubernetes_pod_node_name: 'n1', ...more };
  for (const [k, v] of Object.entries(annotations)) {
    labels[`__meta_kubernetes_pod_annotation_${k.replace(/\W/g, '_')}`] = v;
    labels[`__meta_kubernetes_pod_annotationpresent_${k.replace(/\W/g, '_')}`] = 'true';
  }
  pods.push({ targets: [address], labels });
}

const grafana = (more) => Object.fromEntries(Object.entries(more).map(([k, v]) => [`profiles.grafana.com/${k}`, v]));
const pyroscope = (more) => Object.fromEntries(Object.entries(more).map(([k, v]) => [`pyroscope.io/${k}`, v]));
const profefe = (more) => Object.fromEntries(Object.entries(more).map(([k, v]) => [`profefe.com/${k}`, v]));

pod('plain', '10.0.0.1:80', {});
pod('cpu', '10.0.0.2:8080', grafana({ 'cpu.scrape': 'true' }));
pod('three', '10.0.0.3:8080', grafana({ 'cpu.scrape': 'true', 'memory.scrape': 'true', 'fgprof.scrape': 'true', 'mutex.scrape': 'false',
  'cpu.port': '6060', 'memory.port': '6061', 'memory.path': '/pprof/heap', 'fgprof.scheme': 'https', service_name: 'three-service' }));
// Two ports of one container: the annotation names one of them.
for (const [port, port_name] of [['8080', 'http'], ['6060', 'pprof']])
  pod('named', `10.0.0.4:${port}`, grafana({ 'goroutine.scrape': 'true', 'goroutine.port_name': 'pprof' }),
    { __meta_kubernetes_pod_container_port_name: port_name, __meta_kubernetes_pod_label_app: 'catalogue' });
pod('v6', '[2001:db8::5]:8080', grafana({ 'block.scrape': 'true', 'block.port': '6060' }),
  { __meta_kubernetes_pod_label_app_kubernetes_io_name: 'six', __meta_kubernetes_pod_label_app_kubernetes_io_version: '1.2.3' });
pod('over', '10.0.0.6:8080', grafana({ 'cpu.scrape': 'true' }), { __meta_kubernetes_pod_phase: 'Succeeded' });
pod('classic', '10.0.0.7', pyroscope({ scrape: 'true', 'application-name': 'classic-app', port: '4040', 'profile-mem-enabled': 'false',
  'profile-block-enabled': 'false', 'profile-mutex-enabled': 'false', 'profile-goroutine-enabled': 'true', 'profile-cpu-path': '/p/cpu' }));
pod('both', '10.0.0.8:8080', { ...pyroscope({ scrape: 'true' }), ...grafana({ 'mutex.scrape': 'true' }), ...profefe({ enable: 'true' }) });
pod('unasked', '10.0.0.9:8080', pyroscope({ scrape: 'false' }));
pod('fefe', '10.0.0.10', profefe({ enable: 'true' }));
pod('fefe-set', '10.0.0.11:80', profefe({ enable: 'true', port: '7070', path: '/x/pprof/', service: 'svc' }));
pod('fefe-pending', '10.0.0.12', profefe({ enable: 'true' }), { __meta_kubernetes_pod_phase: 'Pending' });

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
  ],
  'pyroscope-annotations': [
    ['classic-app', 'classic', 'http://10.0.0.7:4040/p/cpu'],
    ['classic-app', 'classic', 'http://10.0.0.7:4040/debug/pprof/goroutine'],
  ],
  'profefe-annotations': [
    ...fefe('10.0.0.10:6060', '/debug/pprof').map((url) => ['fefe', 'fefe', url]),
    ...fefe('10.0.0.11:7070', '/x/pprof').map((url) => ['svc', 'fefe-set', url]),
  ],
};

test('pods are scraped as their annotations say', { timeout: 60000 }, async (t) => {
  const dir = scratch(t);
  writeFileSync(join(dir, 'pods.json'), JSON.stringify(pods));
  const fromFile = example.replace(/kubernetes_sd_configs:\n +- role: pod\n/g, 'file_sd_configs: [{files: [pods.json]}]\n');
  const config = fromFile.replace(/ {2}# The API servers themselves[^]*?(?= {2}- job_name: epimetheus)/, '');
  assert.doesNotMatch(config, /kubernetes_sd|credentials/);
  const server = await startServer(t, { dir, config });
  const active = await until('targets', 20, async () => {
    const found = (await api(server, 'targets', { state: 'active' })).activeTargets;
    return found.length > 1 && found;
  });
  const got = {};
  for (const x of active)
    (got[x.scrapePool] ??= []).push([x.labels.job, x.labels.pod, x.scrapeUrl.replace(/\?.*/, '')]);
  delete got.epimetheus;
  for (const list of [...Object.values(got), ...Object.values(want)]) list.sort();
  assert.deepEqual(got, want);
  const six = active.find((x) => x.labels.pod === 'v6');
  assert.deepEqual(six.labels, { instance: '[2001:db8::5]:6060', job: 'shop/six', namespace: 'shop', node: 'n1', pod: 'v6', version: '1.2.3' });
});
