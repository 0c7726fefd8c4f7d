// Discovery in a cluster: the real program against an API server whose every trouble is scripted.
import test from 'node:test';
import assert from 'node:assert/strict';
import { isDeepStrictEqual } from 'node:util';
import { epimetheus, finish, join, request, scratch, sleep, startServer, until, writeFileSync } from './lib.mjs';
import { KubeApi, groups, pod } from './kube_api.mjs';
import { AT_LAST, change, config, endsAs, follow, job, nodesAndOwners, random, shown, sixRoles, soon } from './kubernetes_cases.mjs';

/** A stream opens a little after the list it goes on from. */
async function streams(kube, want) {
  await until('streams', AT_LAST, () => isDeepStrictEqual(kube.open(), want)).catch(() => assert.deepEqual(kube.open(), want));
}

test('six roles follow their objects', async (t) => {
  const kube = await new KubeApi().listen(t);
  await sixRoles(t, kube);
  await streams(kube, { nodes: 1, namespaces: 1, pods: 1, services: 1, endpoints: 1, endpointslices: 1, ingresses: 1 });
});

test('node selectors select pods; deployments, jobs and cron jobs above them', async (t) => {
  await nodesAndOwners(t, await new KubeApi().listen(t));
});

test('ten jobs share the watches of each namespace; a reload keeps them', async (t) => {
  const dir = scratch(t);
  const kube = await new KubeApi().listen(t);
  for (const ns of ['a', 'b', 'c']) kube.put('pods', pod(ns, 'p', { ip: '10.1.0.1', labels: { app: ns } }));
  const jobs = Array.from({ length: 10 }, (_, i) => job(`j${i}`, kube,
    `role: ${i % 2 ? 'pod' : 'endpoints'}, namespaces: {names: [a, b]}`, `    params: {x: ['${i}']}\n`));
  const server = await startServer(t, { dir, config: config(...jobs), args: ['--web.enable-lifecycle'] });
  for (const i of [1, 3, 9]) await soon(server, `j${i}`, '10.1.0.1:6060 a, 10.1.0.1:6060 b', 'namespace');
  const want = { 'pods a': 1, 'pods b': 1, 'services a': 1, 'services b': 1, 'endpoints a': 1, 'endpoints b': 1 };
  await streams(kube, want);
  const before = kube.requests.length;
  writeFileSync(join(dir, 'epimetheus.yml'), config(...jobs.slice(3), job('new', kube, 'role: pod, selectors: [{role: pod, label: app=c}]')));
  assert.equal((await request(`${server.url}/-/reload`, { method: 'POST' })).status, 200);
  await soon(server, 'new', '10.1.0.1:6060 c', 'namespace');
  await soon(server, 'j9', '10.1.0.1:6060 a, 10.1.0.1:6060 b', 'namespace');
  await streams(kube, { ...want, pods: 1 });
  assert.equal(kube.requests.length, before + 2, 'a list and a watch for the new job alone');
  kube.put('pods', pod('c', 'p', { ip: '10.1.0.1', labels: { app: 'other' } }));
  kube.put('pods', pod('a', 'q', { ip: '10.1.0.2', labels: { app: 'c' } }));
  await soon(server, 'new', '10.1.0.2:6060 a', 'namespace');
});

test('a token that rotates, and one that is refused', async (t) => {
  const dir = scratch(t);
  const kube = await new KubeApi().listen(t);
  const file = join(dir, 'token');
  kube.token = 'one';
  kube.put('pods', pod('a', 'p', { ip: '10.1.0.1' }));
  writeFileSync(file, 'one\n');
  const server = await startServer(t, { dir, config: config(job('pods', kube, `role: pod, bearer_token_file: ${file}`)) });
  await soon(server, 'pods', '10.1.0.1:6060');
  kube.token = 'two';
  kube.close();
  await until('refused', AT_LAST, () => kube.count({ status: 401 }) > 0);
  kube.put('pods', pod('a', 'q', { ip: '10.1.0.2' }));
  assert.equal(await shown(server, 'pods'), '10.1.0.1:6060', 'what was known stays');
  await until('the log says so', AT_LAST, () => /401.*Unauthorized/.test(server.err));
  writeFileSync(file, 'two\n');
  await until('the new token', AT_LAST, async () => await shown(server, 'pods') === '10.1.0.1:6060, 10.1.0.2:6060');
});

test('check config names what is wrong', async (t) => {
  const dir = scratch(t);
  const file = join(dir, 'c.yml');
  const rows = [
    ['role: rod', /c\.yml:6:\d+: unknown Kubernetes SD role "rod"/],
    ['role: pod, kubeconfig_file: k', /cannot use 'kubeconfig_file' and 'api_server' simultaneously/],
    ['role: pod, bearer_token_file: /no/such/token', /\/no\/such\/token/],
  ];
  for (const [entry, want] of rows) {
    writeFileSync(file, config(job('x', { url: 'http://127.0.0.1:1' }, entry)));
    const run = await finish(t, epimetheus.replace(/epimetheus$/, 'epitool'), ['check', 'config', file], 20);
    assert.equal(run.code, 1);
    assert.match(run.err, want);
  }
});

// ---- churn

function trouble(kube, pick) {
  const resource = Object.keys(groups)[pick(7)];
  switch (pick(6)) {
  case 0: return kube.cut(resource);
  case 1: return kube.close();
  case 2: return kube.expire(resource);
  case 3: kube.fail[resource] = 1; return kube.cut(resource);
  case 4: kube.compact(); return kube.close(resource);
  default: kube.delay = pick(2) * 100; kube.page = pick(2) * 7; return kube.close(resource);
  }
}

test('churn and trouble end in what the cluster holds', async (t) => {
  const seed = Number(process.env.EPI_SEED || 1);
  const pick = random(seed);
  const kube = await new KubeApi().listen(t);
  for (let i = 0; i < 200; i++) change(kube, pick);
  const server = await follow(t, kube);
  const end = Date.now() + 15000;
  while (Date.now() < end) {
    for (let n = pick(60); n > 0; n--) {
      change(kube, pick);
      if (pick(10) === 0) await sleep(pick(20));
    }
    if (pick(3) === 0) trouble(kube, pick);
    await sleep(pick(300));
  }
  kube.delay = 0;
  kube.fail = {};
  await endsAs(server, kube, seed);
});
