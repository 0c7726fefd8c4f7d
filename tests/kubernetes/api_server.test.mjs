// The cases of discovery against a real API server: `make test-kubernetes`.
import test from 'node:test';
import { sleep } from '../e2e/lib.mjs';
import { change, endsAs, follow, nodesAndOwners, random, sixRoles } from '../e2e/kubernetes_cases.mjs';
import { ApiServer } from './api_server.mjs';

const within = (kube, ...names) => Object.assign(Object.create(kube), { access: `${kube.access}, namespaces: {names: [${names.join(', ')}]}` });

test('discovery and a real API server', { timeout: 7200000 }, async (t) => {
  const kube = await new ApiServer(t).listen();

  await t.test('six roles follow their objects', async (t) => {
    await sixRoles(t, within(kube, 'shop'));
    await kube.clear();
  });

  await t.test('node selectors select pods; deployments, jobs and cron jobs above them', async (t) => {
    await nodesAndOwners(t, within(kube, 'shop'));
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
