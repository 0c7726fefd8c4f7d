// Discovery in a cluster of 10,000 pods: how long from an event of the API server to the target, and what changes cost. The
// API server is that of the end-to-end tests (lists in pages, watches), in this process; pods are as large as real ones.
// Whether a change has arrived is read from the server's gauge of targets: in a round each change adds a target, or each
// takes one away, so the nth change has arrived when the gauge moved by n.
import http from 'node:http';
import { cpuOf, emptyDirectory, env, metrics } from './common.mjs';
import { count, note } from './report.mjs';
import { KubeApi, meta } from '../e2e/kube_api.mjs';
import { sleep, startServer, until } from '../e2e/lib.mjs';

const PROFILES = 5; // of a target, as many as are on by default
const POLL = 20; // ms between two looks at the gauge
const NODES = 200, PODS_OF_A_DEPLOYMENT = 20, NAMESPACES = 25;

/** A pod of about 6 kB of JSON: most of it is not used by discovery. */
function pod(i, on, port) {
  const app = `app-${Math.floor(i / PODS_OF_A_DEPLOYMENT)}`, name = `${app}-5f7c9d8b6-${i.toString(36).padStart(5, 'x')}`;
  const volume = (k) => ({ name: `config-${k}`, configMap: { name: `${app}-config-${k}`, defaultMode: 420 } });
  const field = (k) => [`k:{"name":"VARIABLE_${k}"}`, { '.': {}, 'f:name': {}, 'f:value': {} }];
  const times = (n, make) => Array.from({ length: n }, (_, k) => make(k));
  const status = (type) => ({ type, status: 'True', lastProbeTime: null, lastTransitionTime: '2026-01-02T03:04:05Z' });
  const m = meta(`team-${i % NAMESPACES}`, name, { app, on, version: 'v7', 'pod-template-hash': '5f7c9d8b6' });
  const probe = { httpGet: { path: '/-/healthy', port, scheme: 'HTTP' }, timeoutSeconds: 3, periodSeconds: 10, failureThreshold: 6 };
  return {
    metadata: { ...m, uid: `00000000-0000-4000-8000-${String(i).padStart(12, '0')}`, creationTimestamp: '2026-01-02T03:04:05Z',
      annotations: { 'profiles.grafana.com/cpu.scrape': 'true', 'checksum/config': 'a3f1'.repeat(16) },
      ownerReferences: [{ apiVersion: 'apps/v1', kind: 'ReplicaSet', name: `${app}-5f7c9d8b6`, uid: `rs-${app}`, controller: true }],
      managedFields: ['kube-controller-manager', 'kubelet'].map((manager) => ({ manager, operation: 'Update', apiVersion: 'v1',
        time: '2026-01-02T03:04:05Z', fieldsV1: { 'f:spec': { 'f:containers': { 'k:{"name":"main"}': { 'f:env': Object.fromEntries(times(12, field)) } } } } })) },
    spec: { nodeName: `node-${i % NODES}`, restartPolicy: 'Always', dnsPolicy: 'ClusterFirst', serviceAccountName: app,
      volumes: times(4, volume), tolerations: times(3, (k) => ({ key: `node.kubernetes.io/t${k}`, operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 300 })),
      containers: [{ name: 'main', image: `registry.example/${app}:v7`, imagePullPolicy: 'IfNotPresent', livenessProbe: probe, readinessProbe: probe,
        ports: [{ name: 'http', containerPort: port, protocol: 'TCP' }], resources: { requests: { cpu: '500m', memory: '1Gi' }, limits: { memory: '1Gi' } },
        env: times(12, (k) => ({ name: `VARIABLE_${k}`, value: `value of it, ${app} ${k}` })),
        volumeMounts: times(4, (k) => ({ name: `config-${k}`, mountPath: `/etc/config/${k}`, readOnly: true })) }] },
    status: { phase: 'Running', podIP: `127.${1 + (i >> 16)}.${(i >> 8) & 255}.${i & 255}`, hostIP: `10.0.0.${i % NODES}`, qosClass: 'Burstable',
      conditions: ['PodReadyToStartContainers', 'Initialized', 'Ready', 'ContainersReady', 'PodScheduled'].map(status),
      containerStatuses: [{ name: 'main', ready: true, started: true, restartCount: 0, image: `registry.example/${app}:v7`,
        containerID: `containerd://${i.toString(16).padStart(64, '0')}`, imageID: `registry.example/${app}@sha256:${'ab'.repeat(32)}`,
        state: { running: { startedAt: '2026-01-02T03:04:05Z' } } }] },
  };
}

const config = (kube) => `
global: {scrape_interval: 1h, scrape_timeout: 5s}
scrape_configs:
- job_name: pods
  kubernetes_sd_configs: [{role: pod, api_server: '${kube.url}'}]
  relabel_configs:
  - {action: keep, source_labels: [__meta_kubernetes_pod_label_on], regex: 'yes'}
  - {action: drop, source_labels: [__meta_kubernetes_pod_phase], regex: (Failed|Succeeded)}
  - {source_labels: [__meta_kubernetes_namespace], target_label: namespace}
  - {source_labels: [__meta_kubernetes_pod_name], target_label: pod}
  - {source_labels: [__meta_kubernetes_pod_label_app], target_label: job}
  - {source_labels: [__meta_kubernetes_pod_node_name], target_label: node}
`;

/** What pods answer: nothing that is stored. `first` is when the first one was asked. */
async function listenAsPods(t) {
  const seen = { first: undefined };
  const server = http.createServer((req, res) => {
    seen.first ??= performance.now();
    res.writeHead(404).end();
  });
  await new Promise((done) => server.listen(0, '0.0.0.0', done));
  t.after(() => { server.closeAllConnections(); server.close(); });
  seen.port = server.address().port;
  return seen;
}

/** The pods that changes concern: behind the others, in three states. */
class Changes {
  constructor(kube, n, port) {
    Object.assign(this, { kube, n, port, i: 0 });
    this.off = n / 20; // so many of the first ones are not selected: every second one
    for (let k = 0; k < n; k++) kube.put('pods', pod(k, k % 2 && k < 2 * this.off ? 'no' : 'yes', port));
  }

  targets() {
    return (this.n - this.off + this.i) * PROFILES;
  }

  /** up: a pod is added, or one that was not selected is; else the reverse. */
  one(up) {
    const k = up ? this.i++ : --this.i, at = this.n + k, key = (p) => `${p.metadata.namespace}/${p.metadata.name}`;
    if (k % 2) this.kube.put('pods', pod(k, up ? 'yes' : 'no', this.port)); // of the first ones, which are off when up
    else if (up) this.kube.put('pods', pod(at, 'yes', this.port));
    else this.kube.remove('pods', key(pod(at, 'yes', this.port)));
  }
}

const gauge = async (server) => (await metrics(server)).get('epimetheus_scrape_pool_targets{scrape_pool="pods"}') ?? 0;

/** All changes so far have arrived. */
const settled = (server, changes) => until('all changes', 60, async () => await gauge(server) === changes.targets());

/** Changes at this rate; milliseconds from each to its target, if `watched`. */
async function run(server, changes, up, rate, seconds, watched) {
  const before = changes.targets() / PROFILES, made = [], delays = [], began = performance.now(), all = rate * seconds;
  const making = (async () => {
    while (made.length < all) {
      changes.one(up);
      made.push(performance.now());
      await sleep(Math.max(0, began + made.length * 1000 / rate - performance.now()));
    }
  })();
  while (watched && delays.length < all) {
    const moved = Math.abs(await gauge(server) / PROFILES - before), now = performance.now();
    while (delays.length < moved && delays.length < made.length) delays.push(now - made[delays.length]);
    if (now - began > (seconds + 120) * 1000) throw new Error(`${all - delays.length} changes did not arrive`);
    await sleep(POLL);
  }
  await making;
  return delays;
}

const cpu = async (server, fn) => {
  const before = cpuOf(server.child.pid), began = performance.now();
  await fn();
  return (cpuOf(server.child.pid) - before) / ((performance.now() - began) / 1000);
};

const quantile = (list, q) => list.sort((a, b) => a - b)[Math.min(list.length - 1, Math.floor(q * list.length))] / 1000;

export async function kubernetes(t) {
  const n = env('BENCH_KUBE_PODS', 10000), seconds = env('BENCH_KUBE_SECONDS', 10);
  const named = (rest) => `Kubernetes, ${count(n)} pods${rest}`;
  const pods = await listenAsPods(t);
  const kube = await new KubeApi().listen(t);
  const changes = new Changes(kube, n, pods.port);
  const began = performance.now();
  const server = await startServer(t, { dir: emptyDirectory('kubernetes'), config: config(kube) });
  await settled(server, changes);
  const taken = (performance.now() - began) / 1000;
  await until('a scrape', 60, () => pods.first);
  note(named(': from start to first scrape'), { ours: (pods.first - began) / 1000, unit: 'seconds', of: { all_targets: taken } });
  note(named(': CPU of it'), { ours: cpuOf(server.child.pid), unit: 'seconds' });

  const idle = await cpu(server, () => sleep(seconds * 1000 / 2));
  for (const rate of [5, 50]) {
    const delays = [], cores = [];
    for (const up of [true, false]) delays.push(...await run(server, changes, up, rate, seconds, true));
    const at = (rest) => named(`, ${rate} changes/s: ${rest}`);
    note(at('event to target, p50'), { ours: quantile(delays, 0.5), unit: 'seconds' });
    note(at('event to target, p99'), { ours: quantile(delays, 0.99), unit: 'seconds' });
    for (const up of [true, false]) {
      cores.push(await cpu(server, () => run(server, changes, up, rate, seconds, false)) - idle);
      await settled(server, changes);
    }
    note(at('CPU'), { ours: cores, unit: 'cores', of: { idle } });
  }
  note(named(': resident memory of the server'), { ours: (await metrics(server)).get('process_resident_memory_bytes') / (1 << 20), unit: 'MiB' });
}
