// The manifests of examples/kubernetes, by kubectl's kustomize, in a real API server: it takes every object, and they fit each other.
import test from 'node:test';
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { copyFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { epimetheus, epitool, finish, helpFlags, join, root, scratch, writeFileSync } from '../e2e/lib.mjs';
import { ApiServer } from './api_server.mjs';

const run = promisify(execFile);
const lists = ['services', 'configmaps', 'serviceaccounts', 'statefulsets', 'deployments', 'daemonsets', 'poddisruptionbudgets', 'clusterroles', 'clusterrolebindings'];

/** All objects of a folder, as the API server has them. */
async function applied(kube, folder) {
  const kubectl = (...args) => run(kube.kubectl, [`--server=${kube.url}`, '--token=a-token-of-an-administrator',
    `--certificate-authority=${join(kube.dir, 'certs/apiserver.crt')}`, '--namespace=profiling', ...args], { env: { ...process.env, HOME: kube.dir }, maxBuffer: 1 << 24 });
  await kube.need('profiling');
  const { stdout, stderr } = await kubectl('apply', '-k', join(root, 'examples/kubernetes', folder), '--validate=strict');
  assert.equal(stderr, '');
  assert.match(stdout, /created/);
  const got = JSON.parse((await kubectl('get', lists.join(','), '-o', 'json')).stdout);
  await kubectl('delete', '-k', join(root, 'examples/kubernetes', folder), '--wait=false');
  return got.items.filter((o) => !/^(system:|kube-|default$|cluster-admin|admin$|edit$|view$)/.test(o.metadata.name));
}

const of = (objects, kind) => objects.filter((o) => o.kind === kind);
const named = (objects, kind, name) => of(objects, kind).find((o) => o.metadata.name === name) ?? assert.fail(`${kind} ${name} is missing`);
const workloads = (objects) => objects.filter((o) => o.spec?.template);
const selects = (selector, pod) => Object.entries(selector).every(([key, value]) => pod.metadata.labels[key] === value);

/** Selectors find pods, ports have names that these pods have, accounts and configurations exist. */
function check(objects) {
  const pods = workloads(objects).map((o) => o.spec.template);
  for (const o of [...of(objects, 'Service'), ...of(objects, 'PodDisruptionBudget')]) {
    const selector = o.spec.selector.matchLabels ?? o.spec.selector;
    const found = pods.filter((pod) => selects(selector, pod));
    assert.ok(found.length, `${o.kind} ${o.metadata.name} selects no pod`);
    for (const { targetPort } of o.spec.ports ?? [])
      for (const pod of found) assert.ok(pod.spec.containers.some((c) => c.ports.some((p) => p.name === targetPort)), `${o.metadata.name} ${targetPort}`);
  }
  for (const { metadata, spec } of workloads(objects)) {
    const pod = spec.template.spec;
    named(objects, 'ServiceAccount', pod.serviceAccountName);
    for (const v of pod.volumes ?? []) if (v.configMap) named(objects, 'ConfigMap', v.configMap.name);
    for (const c of pod.topologySpreadConstraints ?? []) assert.ok(selects(c.labelSelector.matchLabels, spec.template), `${metadata.name} spreads others`);
    if (spec.serviceName) named(objects, 'Service', spec.serviceName);
  }
}

/** The program takes these flags. */
async function checkFlags(t, objects) {
  const known = helpFlags((await finish(t, epimetheus, ['--help'])).out);
  for (const o of workloads(objects))
    for (const c of o.spec.template.spec.containers.filter((one) => one.name === 'epimetheus'))
      for (const arg of c.args) assert.ok(known.some((flag) => arg.replace(/=.*/, '') === `--${flag.replace('[no-]', '')}`), arg);
}

async function checkConfig(t, objects, kube) {
  const dir = scratch(t); // with what a pod has of its account
  writeFileSync(join(dir, 'token'), 'x');
  copyFileSync(join(kube.dir, 'certs/apiserver.crt'), join(dir, 'ca.crt'));
  for (const [file, text] of Object.entries(named(objects, 'ConfigMap', 'epimetheus').data))
    writeFileSync(join(dir, file), text.replaceAll('/var/run/secrets/kubernetes.io/serviceaccount', dir));
  const checked = await finish(t, epitool, ['check', 'config', join(dir, 'epimetheus.yml')]);
  assert.equal(checked.code, 0, checked.out + checked.err);
}

test('manifests', async (t) => {
  const kube = await new ApiServer(t).listen();

  for (const [folder, kinds] of [['.', 'StatefulSet'], ['profiler', 'DaemonSet,StatefulSet'], ['cluster', 'Deployment,Deployment,StatefulSet']]) {
    await t.test(folder, async (t) => {
      const objects = await applied(kube, folder);
      assert.equal(workloads(objects).map((o) => o.kind).sort().join(), kinds);
      check(objects);
      await checkFlags(t, objects);
      await checkConfig(t, objects, kube);
    });
  }

  await t.test('of a cluster', async () => {
    const objects = await applied(kube, 'cluster');
    const shards = named(objects, 'StatefulSet', 'epimetheus-shard');
    assert.ok(shards.spec.template.spec.containers[0].args.includes(`--shard.total=${shards.spec.replicas}`));
    // Dashboards ask query nodes, under the name of one server; SDKs push to shards.
    const pods = workloads(objects).map((o) => o.spec.template);
    for (const [name, component] of [['epimetheus', 'query'], ['epimetheus-push', 'shard'], ['epimetheus-shard', 'shard']]) {
      const found = pods.filter((pod) => selects(named(objects, 'Service', name).spec.selector, pod));
      assert.deepEqual(found.map((pod) => pod.metadata.labels['app.kubernetes.io/component']), [component], name);
    }
    assert.equal(of(objects, 'PodDisruptionBudget').length, 2);
  });
});
