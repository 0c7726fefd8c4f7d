// The cases of discovery against a real API server: `make test-kubernetes`.
import test from 'node:test';
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { join, scratch, sleep, startServer, targets, until, writeFileSync } from '../e2e/lib.mjs';
import { change, config, endsAs, follow, job, nodesAndOwners, random, sixRoles } from '../e2e/kubernetes_cases.mjs';
import { meta, namespace, node, owned, pod, service, slice } from '../e2e/kube_api.mjs';
import { ApiServer } from './api_server.mjs';

const within = (kube, ...names) => Object.assign(Object.create(kube), { access: `${kube.access}, namespaces: {names: [${names.join(', ')}]}` });

// ---- Prometheus's discovery beside ours

async function fill(kube, pick) {
  for (let i = 0; i < 250; i++) await change(kube, pick);
  await kube.put('namespaces', namespace('shop', { team: 'red' }));
  for (const n of ['n1', 'n2']) await kube.put('nodes', node(n, '10.0.0.1', { zone: `zone-of-${n}` }));
  await kube.put('replicasets', owned({ metadata: meta('shop', 'web-5f') }, ['Deployment', 'web']));
  await kube.put('jobs', owned({ metadata: meta('shop', 'nightly-7') }, ['CronJob', 'nightly']));
  await kube.put('pods', owned(pod('shop', 'web-1', { ip: '10.1.0.1', node: 'n1', ports: [6060, 7070] }), ['ReplicaSet', 'web-5f']));
  await kube.put('pods', owned(pod('shop', 'night', { ip: '10.1.0.2', node: 'n2', ports: [] }), ['Job', 'nightly-7']));
  await kube.put('pods', pod('shop', 'lost', { ip: '10.1.0.3', node: 'n3' }));
  const web = service('shop', 'web', { labels: { tier: 'front' } });
  await kube.put('services', { ...web, spec: { ...web.spec, type: 'LoadBalancer' },
    status: { loadBalancer: { ingress: [{ ip: '192.0.2.7' }, { ip: '192.0.2.8' }] } } });
  await kube.put('endpointslices', slice('shop', 'web-x', 'web', [['10.1.0.1', 'web-1'], ['10.1.0.2', 'night']], 6060));
}

const ALL = 'attach_metadata: {node: true, namespace: true, deployment: true, job: true, cronjob: true}';
const entries = {
  node: 'role: node', pod: 'role: pod', 'pod, all attached': `role: pod, ${ALL}`,
  'pod of some nodes': "role: pod, attach_metadata: {node: true}, selectors: [{role: node, label: 'zone in (zone-of-n1, z1, z2)'}]",
  service: `role: service, ${ALL}`, endpoints: `role: endpoints, ${ALL}`, endpointslice: `role: endpointslice, ${ALL}`, ingress: `role: ingress, ${ALL}`,
};

/** The labels that discovery makes, of each target once. */
const labelsOf = (list) => [...new Set(list.map((l) => JSON.stringify(Object.entries(l).filter(([name, value]) =>
  value !== '' && /^(__address__|__meta_.*|instance)$/.test(name)).sort())))].sort();

async function asPrometheus(t, kube) {
  const dir = scratch(t);
  const server = await startServer(t, { dir, config: config(...Object.entries(entries).map(([name, entry]) => job(`'${name}'`, kube, entry))) });
  for (const [name, entry] of Object.entries(entries)) {
    const file = join(dir, 'entry.yml');
    writeFileSync(file, `{api_server: '${kube.url}'${kube.access}, ${entry}}\n`);
    const { stdout } = await promisify(execFile)(kube.prometheus, [file], { maxBuffer: 64 << 20 });
    const want = labelsOf(JSON.parse(stdout));
    assert.ok(want.length > 0, name);
    let got;
    await until(name, 10, async () => {
      got = labelsOf((await targets(server)).filter((x) => x.scrapePool === name).map((x) => x.discoveredLabels));
      return got.length === want.length;
    }).catch(() => {});
    assert.deepEqual(got, want, name);
  }
}

test('discovery and a real API server', async (t) => {
  const kube = await new ApiServer(t).listen();

  await t.test('six roles follow their objects', async (t) => {
    await sixRoles(t, within(kube, 'shop'));
    await kube.clear();
  });

  await t.test('node selectors select pods; deployments, jobs and cron jobs above them', async (t) => {
    await nodesAndOwners(t, within(kube, 'shop'));
    await kube.clear();
  });

  await t.test('targets are those of Prometheus', async (t) => {
    await fill(kube, random(5));
    await asPrometheus(t, within(kube, 'a', 'b', 'c', 'shop'));
    await kube.clear();
  });

  await t.test('changes, and a server that begins again, end in what the cluster holds', async (t) => {
    const seed = Number(process.env.EPI_SEED || 1), pick = random(seed), names = ['a', 'b', 'c'], scoped = within(kube, ...names);
    const settle = async () => {
      await kube.refresh(names);
      await endsAs(server, scoped, seed);
    };
    for (let i = 0; i < 100; i++) await change(kube, pick);
    const server = await follow(t, scoped);
    for (let round = 0; round < 3; round++) {
      for (let i = 0; i < 150; i++) await change(kube, pick);
      await settle();
      await kube.restart(pick(2000)); // etcd forgets versions meanwhile
      for (let i = 0; i < 50; i++) await change(kube, pick);
      await sleep(pick(6000));
    }
    await settle();
  });
});
