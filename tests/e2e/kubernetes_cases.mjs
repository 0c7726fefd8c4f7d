// What discovery in a cluster must do, whichever API server it talks to: the one of kube_api.mjs, or a real one
// (tests/kubernetes). `kube` has the server's url, what else an entry needs to reach it (`access`), and puts and removes objects.
import assert from 'node:assert/strict';
import { scratch, sleep, startServer, targets, until } from './lib.mjs';
import { endpoints, groups, ingress, meta, namespace, node, owned, pod, service, slice } from './kube_api.mjs';

export const SOON = 2; // seconds from a change to /api/v1/targets, by the median: a machine may have other work for a while
export const AT_LAST = 30;
export const profiles = 'profiling_config: {pprof_config: {process_cpu: {enabled: false}, block: {enabled: false}, mutex: {enabled: false}, goroutine: {enabled: false}, goroutineleak: {enabled: false}}}';

// Two objects may have one address; as labels of their own they stay two targets.
export function job(name, kube, entry, rest = '') {
  return `  - job_name: ${name}
    scrape_interval: 1h
    scrape_timeout: 1s
    ${profiles}
    kubernetes_sd_configs: [{api_server: '${kube.url}'${kube.access ?? ''}, ${entry}}]
    relabel_configs: [{action: labelmap, regex: __meta_kubernetes_(.+)}]
${rest}`;
}

export const config = (...jobs) => `scrape_configs:\n${jobs.join('')}`;

/** One target is in the list once for each of its profiles. */
export async function found(server, pool) {
  const seen = new Map();
  for (const t of await targets(server))
    if (t.scrapePool === pool) {
      const l = Object.fromEntries(Object.entries(t.discoveredLabels).filter(([k]) => k === '__address__' || k.startsWith('__meta_')));
      seen.set(JSON.stringify(Object.entries(l).sort()), l);
    }
  return [...seen.values()];
}

/** Addresses, and with them the labels named, as sorted text. */
export async function shown(server, pool, ...labels) {
  const all = await found(server, pool);
  return all.map((l) => [l.__address__, ...labels.map((k) => l[`__meta_kubernetes_${k}`] ?? '-')].join(' ')).sort().join(', ');
}

/** Waits for it, and notes how long that took. */
export async function soon(server, pool, want, ...labels) {
  let got;
  const began = Date.now();
  do {
    got = await shown(server, pool, ...labels);
    if (got === want) return (server.delays ??= []).push(Date.now() - began);
    await sleep(50);
  } while (Date.now() - began < 4 * AT_LAST * 1000);
  assert.equal(got, want, `${pool} after ${4 * AT_LAST} s`);
}

export function assertSoon(server) {
  const sorted = server.delays.sort((a, b) => a - b);
  assert.ok(sorted[sorted.length >> 1] < SOON * 1000, `milliseconds from changes to targets: ${sorted}`);
}

/** Six roles follow their objects. */
export async function sixRoles(t, kube) {
  await kube.put('namespaces', namespace('shop', { team: 'red' }));
  await kube.put('nodes', node('n1', '10.0.0.1', { zone: 'a' }));
  await kube.put('pods', pod('shop', 'web-1', { ip: '10.1.0.1', node: 'n1', labels: { app: 'web' } }));
  await kube.put('services', service('shop', 'web'));
  await kube.put('endpoints', endpoints('shop', 'web', [['10.1.0.1', 'web-1']], 8080));
  await kube.put('endpointslices', slice('shop', 'web-x', 'web', [['10.1.0.1', 'web-1']], 8080));
  await kube.put('ingresses', ingress('shop', 'front', ['shop.example']));
  const roles = ['node', 'pod', 'service', 'endpoints', 'endpointslice', 'ingress'];
  const server = await startServer(t, { dir: scratch(t), config: config(...roles.map((r) =>
    job(r, kube, `role: ${r}, attach_metadata: {node: true, namespace: true}`))) });

  await soon(server, 'node', '10.0.0.1:10250 n1 a true', 'node_name', 'node_label_zone', 'node_condition_ready');
  await soon(server, 'pod', '10.1.0.1:6060 shop web a red', 'namespace', 'pod_label_app', 'node_label_zone', 'namespace_label_team');
  await soon(server, 'service', 'web.shop.svc:80 web red', 'service_name', 'namespace_label_team');
  await soon(server, 'endpoints', '10.1.0.1:6060 web - web-1, 10.1.0.1:8080 web true web-1', 'service_name', 'endpoint_ready', 'pod_name');
  await soon(server, 'endpointslice', '10.1.0.1:6060 - web-1, 10.1.0.1:8080 true web-1', 'endpointslice_endpoint_conditions_ready', 'pod_name');
  await soon(server, 'ingress', 'shop.example shop.example http /', 'ingress_host', 'ingress_scheme', 'ingress_path');

  await kube.put('pods', pod('shop', 'web-1', { ip: '10.1.0.1', node: 'n1', labels: { app: 'next' } }));
  await soon(server, 'pod', '10.1.0.1:6060 next', 'pod_label_app');
  await soon(server, 'endpoints', '10.1.0.1:6060 next, 10.1.0.1:8080 next', 'pod_label_app');
  await soon(server, 'endpointslice', '10.1.0.1:6060 next, 10.1.0.1:8080 next', 'pod_label_app');
  await kube.put('services', service('shop', 'web', { ports: [80, 443], labels: { tier: 'front' } }));
  await soon(server, 'service', 'web.shop.svc:443 front, web.shop.svc:80 front', 'service_label_tier');
  await soon(server, 'endpoints', '10.1.0.1:6060 front, 10.1.0.1:8080 front', 'service_label_tier');
  await kube.put('nodes', node('n1', '10.0.0.1', { zone: 'b' }));
  await soon(server, 'node', '10.0.0.1:10250 b', 'node_label_zone');
  await soon(server, 'pod', '10.1.0.1:6060 b', 'node_label_zone');
  await kube.put('namespaces', namespace('shop', { team: 'blue' }));
  for (const r of ['pod', 'service', 'endpoints', 'endpointslice', 'ingress'])
    await until(`${r} of team blue`, AT_LAST, async () =>
      (await found(server, r)).every((l) => l.__meta_kubernetes_namespace_label_team === 'blue'));
  await kube.remove('pods', 'shop/web-1');
  await soon(server, 'pod', '');
  await soon(server, 'endpoints', '10.1.0.1:8080 -', 'pod_name');
  await kube.remove('endpoints', 'shop/web');
  await kube.remove('services', 'shop/web');
  await kube.remove('nodes', 'n1');
  for (const r of ['service', 'endpoints', 'node']) await soon(server, r, '');
  assertSoon(server);
}

/** Node selectors select pods; names of deployments, jobs and cron jobs; addresses of load balancers. */
export async function nodesAndOwners(t, kube) {
  const above = ['pod_deployment_name', 'pod_job_name', 'pod_cronjob_name'];
  for (const n of ['n1', 'n2'])
    await kube.put('nodes', node(n, '10.0.0.1', { pool: n === 'n1' ? 'hot' : 'cold' }));
  await kube.put('replicasets', owned({ metadata: meta('shop', 'web-5f') }, ['Deployment', 'web']));
  await kube.put('jobs', owned({ metadata: meta('shop', 'nightly-7') }, ['CronJob', 'nightly']));
  await kube.put('pods', owned(pod('shop', 'web-1', { ip: '10.1.0.1', node: 'n1' }), ['ReplicaSet', 'web-5f']));
  await kube.put('pods', owned(pod('shop', 'night', { ip: '10.1.0.2', node: 'n2' }), ['Job', 'nightly-7']));
  await kube.put('pods', pod('shop', 'lost', { ip: '10.1.0.3', node: 'n3' }));
  await kube.put('services', { ...service('shop', 'web'), spec: { ...service('shop', 'web').spec, type: 'LoadBalancer' },
    status: { loadBalancer: { ingress: [{ ip: '192.0.2.7' }, { ip: '192.0.2.8' }] } } });
  await kube.put('endpointslices', slice('shop', 'web-x', 'web', [['10.1.0.1', 'web-1']], 6060));
  const attach = 'attach_metadata: {deployment: true, job: true, cronjob: true';
  const server = await startServer(t, { dir: scratch(t), config: config(
    job('all', kube, `role: pod, ${attach}}`), job('known', kube, `role: pod, ${attach}, node: true}`),
    job('hot', kube, "role: pod, attach_metadata: {node: true}, selectors: [{role: node, label: pool=hot}]"),
    job('slices', kube, `role: endpointslice, ${attach}}`), job('service', kube, 'role: service')) });

  await soon(server, 'all', '10.1.0.1:6060 web - -, 10.1.0.2:6060 - nightly-7 nightly, 10.1.0.3:6060 - - -', ...above);
  await soon(server, 'known', '10.1.0.1:6060 web - -, 10.1.0.2:6060 - nightly-7 nightly', ...above);
  await soon(server, 'hot', '10.1.0.1:6060 hot', 'node_label_pool');
  await soon(server, 'slices', '10.1.0.1:6060 web - -', ...above);
  await soon(server, 'service', 'web.shop.svc:80 192.0.2.7,192.0.2.8', 'service_loadbalancer_ip');

  await kube.put('nodes', node('n2', '10.0.0.1', { pool: 'hot' }));
  await soon(server, 'hot', '10.1.0.1:6060 hot, 10.1.0.2:6060 hot', 'node_label_pool');
  await kube.put('nodes', node('n1', '10.0.0.1', { pool: 'cold' }));
  await soon(server, 'hot', '10.1.0.2:6060 hot', 'node_label_pool');
  await kube.put('nodes', node('n3', '10.0.0.1'));
  await soon(server, 'known', '10.1.0.1:6060 web - -, 10.1.0.2:6060 - nightly-7 nightly, 10.1.0.3:6060 - - -', ...above);
  await kube.remove('replicasets', 'shop/web-5f');
  await kube.remove('jobs', 'shop/nightly-7');
  await soon(server, 'all', '10.1.0.1:6060 - - -, 10.1.0.2:6060 - nightly-7 -, 10.1.0.3:6060 - - -', ...above);
  assertSoon(server);
}

// ---- churn

/** A small generator, so that a seed says everything. */
export function random(seed) {
  let s = BigInt(seed);
  return (n) => {
    s = (s * 6364136223846793005n + 1442695040888963407n) & 0xffffffffffffffffn;
    return Number((s >> 33n) % BigInt(n));
  };
}

/** The expected targets, computed in another way than the program's: straight from all objects. */
export function model(kube) {
  const o = Object.fromEntries(Object.keys(groups).map((r) => [r, [...kube.objects[r].values()]]));
  const one = (r, key) => kube.objects[r].get(key);
  const line = (...v) => v.map((x) => x ?? '-').join(' ');
  const rev = (x) => x?.metadata.labels.rev;
  const zone = (name) => one('nodes', name)?.metadata.labels.zone;
  const behind = (ns, list, port, first) => {
    const out = [], seen = new Set();
    for (const [ip, name] of list) {
      const p = name && one('pods', `${ns}/${name}`);
      out.push(first(ip, port, p));
      if (!p || seen.has(name)) continue;
      seen.add(name);
      if (p.status.podIP)
        for (const c of p.spec.containers[0].ports)
          if (c.containerPort !== port) out.push(first(p.status.podIP, c.containerPort, p));
    }
    return out;
  };
  return {
    node: o.nodes.map((n) => line(`${n.status.addresses[0].address}:10250`, n.metadata.labels.zone)),
    pod: o.pods.filter((p) => p.status.podIP && one('nodes', p.spec.nodeName)).flatMap((p) => p.spec.containers[0].ports.map((c) =>
      line(`${p.status.podIP}:${c.containerPort}`, rev(p), zone(p.spec.nodeName)))),
    service: o.services.flatMap((s) => s.spec.ports.map((p) => line(`${s.metadata.name}.${s.metadata.namespace}.svc:${p.port}`, rev(s)))),
    endpoints: o.endpoints.flatMap((e) => behind(e.metadata.namespace,
      e.subsets[0].addresses.map((a) => [a.ip, a.targetRef?.name]), e.subsets[0].ports[0].port,
      (ip, port, p) => line(`${ip}:${port}`, rev(p), rev(one('services', `${e.metadata.namespace}/${e.metadata.name}`))))),
    endpointslice: o.endpointslices.flatMap((e) => behind(e.metadata.namespace,
      e.endpoints.map((a) => [a.addresses[0], a.targetRef?.name]), e.ports[0].port,
      (ip, port, p) => line(`${ip}:${port}`, rev(p),
        rev(one('services', `${e.metadata.namespace}/${e.metadata.labels['kubernetes.io/service-name']}`))))),
    ingress: o.ingresses.flatMap((i) => i.spec.rules.map((r) => line(r.host, i.metadata.name))),
  };
}

export const labelsOf = { node: ['node_label_zone'], pod: ['pod_label_rev', 'node_label_zone'], service: ['service_label_rev'],
  endpoints: ['pod_label_rev', 'service_label_rev'], endpointslice: ['pod_label_rev', 'service_label_rev'], ingress: ['ingress_name'] };

/** Sorted, each once: targets that are equal in every label are one. */
export const sorted = (lines) => [...new Set(lines)].sort().join('\n');

export function change(kube, pick) {
  const ns = 'abc'[pick(3)], name = `o${pick(12)}`, rev = { rev: `r${pick(1000)}` };
  const ip = `10.1.${pick(4)}.${1 + pick(200)}`;
  const list = () => Array.from({ length: 1 + pick(4) }, () => [`10.1.${pick(4)}.${1 + pick(200)}`, pick(3) ? `o${pick(12)}` : undefined]);
  const resource = Object.keys(groups)[pick(7)]; // the first seven
  if (pick(4) === 0) return kube.remove(resource, resource === 'nodes' || resource === 'namespaces' ? name : `${ns}/${name}`);
  switch (resource) {
  case 'nodes': return kube.put('nodes', node(name, ip, { zone: `z${pick(9)}` }));
  case 'namespaces': return kube.put('namespaces', namespace(name));
  case 'pods': return kube.put('pods', pod(ns, name, { ip: pick(5) ? ip : '', node: `o${pick(12)}`, labels: rev, ports: pick(2) ? [6060] : [6060, 80] }));
  case 'services': return kube.put('services', service(ns, name, { ports: pick(2) ? [80] : [80, 81], labels: rev }));
  case 'endpoints': return kube.put('endpoints', endpoints(ns, name, list(), 6060 + pick(2)));
  case 'endpointslices': return kube.put('endpointslices', slice(ns, name, `o${pick(12)}`, list(), 6060 + pick(2)));
  default: return kube.put('ingresses', ingress(ns, name, [`h${pick(50)}.example`]));
  }
}

/** A server with a job for each role. */
export const follow = (t, kube) => startServer(t, { dir: scratch(t), config: config(...Object.keys(labelsOf).map((r) =>
  job(r, kube, `role: ${r}, attach_metadata: {node: true}`))) });

/** In the end the server has the targets of what the cluster holds. */
export async function endsAs(server, kube, seed) {
  const want = model(kube);
  for (const [role, labels] of Object.entries(labelsOf)) {
    const wanted = sorted(want[role]);
    let got;
    await until(`${role} (seed ${seed})`, AT_LAST, async () => {
      got = sorted((await found(server, role)).map((l) =>
        [l.__address__, ...labels.map((k) => l[`__meta_kubernetes_${k}`] ?? '-')].join(' ')));
      return got === wanted;
    }).catch(() => assert.equal(got, wanted, `${role}, seed ${seed}; streams ${JSON.stringify(kube.open?.())}; ${server.err.slice(-2000)}`));
  }
}
