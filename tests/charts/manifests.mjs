// What any set of manifests must hold, whoever made it: kubectl, kustomize or helm.
import assert from 'node:assert/strict';
import { epimetheus, finish, helpFlags } from '../e2e/lib.mjs';

export const of = (objects, kind) => objects.filter((o) => o.kind === kind);
export const named = (objects, kind, name) => of(objects, kind).find((o) => o.metadata.name === name) ?? assert.fail(`${kind} ${name} is missing`);
export const workloads = (objects) => objects.filter((o) => o.spec?.template);
export const selects = (selector, pod) => Object.entries(selector).every(([key, value]) => pod.metadata.labels[key] === value);
const templates = (objects) => workloads(objects).map((o) => o.spec.template);
const portNames = (pod) => pod.spec.containers.flatMap((c) => (c.ports ?? []).map((p) => p.name));

/** The pods that a service, a budget or a policy selects. */
export function selected(objects, o) {
  const selector = o.spec.podSelector?.matchLabels ?? o.spec.selector.matchLabels ?? o.spec.selector;
  const found = templates(objects).filter((pod) => selects(selector, pod));
  assert.ok(found.length, `${o.kind} ${o.metadata.name} selects no pod`);
  return found;
}

/** Selectors find pods, ports have names that these pods have, accounts, rights and configurations exist. */
export function fit(objects) {
  for (const o of [...of(objects, 'Service'), ...of(objects, 'PodDisruptionBudget')])
    for (const pod of selected(objects, o))
      for (const { targetPort } of o.spec.ports ?? []) assert.ok(portNames(pod).includes(targetPort), `${o.metadata.name} ${targetPort}`);
  for (const { metadata, spec } of workloads(objects)) {
    const pod = spec.template.spec;
    assert.ok(selects(spec.selector.matchLabels, spec.template), `${metadata.name} selects others`);
    named(objects, 'ServiceAccount', pod.serviceAccountName);
    for (const v of pod.volumes ?? []) if (v.configMap) named(objects, 'ConfigMap', v.configMap.name);
    for (const c of pod.topologySpreadConstraints ?? []) assert.ok(selects(c.labelSelector.matchLabels, spec.template), `${metadata.name} spreads others`);
    if (spec.serviceName) assert.ok(selected(objects, named(objects, 'Service', spec.serviceName)).includes(spec.template), metadata.name);
    const mounted = pod.containers.flatMap((c) => c.volumeMounts.map((m) => m.name)).sort();
    const there = [...(pod.volumes ?? []), ...(spec.volumeClaimTemplates ?? []).map((c) => c.metadata)].map((v) => v.name).sort();
    assert.deepEqual(mounted, there, `volumes of ${metadata.name}`);
  }
  for (const binding of [...of(objects, 'ClusterRoleBinding'), ...of(objects, 'RoleBinding')]) {
    named(objects, binding.roleRef.kind, binding.roleRef.name);
    for (const s of binding.subjects)
      assert.equal(named(objects, 'ServiceAccount', s.name).metadata.namespace, s.namespace, `${binding.metadata.name} is of another namespace`);
  }
}

/** The containers of the program, each once. */
export const members = (objects) => workloads(objects).flatMap((o) =>
  o.spec.template.spec.containers.filter((c) => c.name === 'epimetheus').map((container) => ({ name: o.metadata.name, container })));

/** The program has these flags. */
export async function checkFlags(t, objects) {
  const known = helpFlags((await finish(t, epimetheus, ['--help'])).out);
  for (const { container } of members(objects))
    for (const arg of container.args) assert.ok(known.some((flag) => arg.replace(/=.*/, '') === `--${flag.replace('[no-]', '')}`), arg);
}
