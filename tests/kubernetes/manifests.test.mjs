// The manifests of examples/kubernetes, by kubectl's kustomize, in a real API server: it takes every object, and they fit each other.
import test from 'node:test';
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { copyFileSync, mkdirSync } from 'node:fs';
import { relative } from 'node:path';
import { promisify } from 'node:util';
import { checkFlags, fit, named, of, selected, workloads } from '../charts/manifests.mjs';
import { epitool, finish, join, root, scratch, writeFileSync } from '../e2e/lib.mjs';
import { ApiServer } from './api_server.mjs';

const run = promisify(execFile);
const lists = ['services', 'configmaps', 'serviceaccounts', 'statefulsets', 'deployments', 'daemonsets', 'poddisruptionbudgets', 'roles', 'rolebindings', 'clusterroles', 'clusterrolebindings'];

/** All objects of a variant, as the API server has them. */
async function applied(kube, variant) {
  const folder = join(kube.dir, variant);
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'kustomization.yaml'), JSON.stringify({ namespace: 'profiling', resources: [relative(folder, join(root, 'examples/kubernetes', variant))] }));
  const kubectl = (...args) => run(kube.kubectl, [`--server=${kube.url}`, '--token=a-token-of-an-administrator',
    `--certificate-authority=${join(kube.dir, 'certs/apiserver.crt')}`, '--namespace=profiling', ...args], { env: { ...process.env, HOME: kube.dir }, maxBuffer: 1 << 24 });
  await kube.need('profiling');
  const { stdout, stderr } = await kubectl('apply', '-k', folder, '--validate=strict');
  assert.equal(stderr, '');
  assert.match(stdout, /created/);
  const got = JSON.parse((await kubectl('get', lists.join(','), '-o', 'json')).stdout);
  await kubectl('delete', '-k', folder, '--wait=false');
  return got.items.filter((o) => !/^(system:|kube-|default$|cluster-admin|admin$|edit$|view$)/.test(o.metadata.name));
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

  for (const [folder, kinds] of [['server', 'StatefulSet'], ['namespaced', 'StatefulSet'], ['profiler', 'DaemonSet,StatefulSet'], ['cluster', 'Deployment,Deployment,StatefulSet']]) {
    await t.test(folder, async (t) => {
      const objects = await applied(kube, folder);
      assert.equal(workloads(objects).map((o) => o.kind).sort().join(), kinds);
      fit(objects);
      await checkFlags(t, objects);
      await checkConfig(t, objects, kube);
    });
  }

  await t.test('of a cluster', async () => {
    const objects = await applied(kube, 'cluster');
    assert.ok(named(objects, 'StatefulSet', 'epimetheus-shard').spec.template.spec.containers[0].args.includes('--shard.join'));
    // Dashboards ask query nodes, under the name of one server; SDKs push to shards.
    for (const [name, component] of [['epimetheus', 'query'], ['epimetheus-push', 'shard'], ['epimetheus-shard', 'shard']])
      assert.deepEqual(selected(objects, named(objects, 'Service', name)).map((pod) => pod.metadata.labels['app.kubernetes.io/component']), [component], name);
    assert.equal(of(objects, 'PodDisruptionBudget').length, 2);
  });
});
