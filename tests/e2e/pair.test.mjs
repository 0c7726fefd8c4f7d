// Servers that profile the same Go process and do not know of each other: a pair, and one beside a collector that asks for
// as many seconds as its interval has, again and again.
import test from 'node:test';
import assert from 'node:assert/strict';
import { S3Fake } from '../s3_fake.mjs';
import { programEnds, scratch, sleep, startDemo, startServer, targets, until } from './lib.mjs';
import { collect, config, share } from './pairs.mjs';
import { bucketSection } from './shards.mjs';

const WINDOW = 60;

async function seesOthers(server) {
  const [target] = await targets(server);
  return target?.profilerShared;
}

async function pair(t) {
  const { address } = await startDemo(t, 'v1', 'none');
  const servers = await Promise.all([1, 2].map(() => startServer(t, { dir: scratch(t), config: config(address) })));
  let shares;
  await until('both have at least 45 %', 150, async () => {
    await sleep(1000);
    shares = await Promise.all(servers.map((server) => share(server, WINDOW)));
    return shares.every((s) => s >= 0.45) || void 0;
  }).catch((e) => { throw new Error(`${shares}`, { cause: e }); });
  t.diagnostic(`shares ${shares.map((s) => s.toFixed(3))}`);
  for (const server of servers) {
    assert.ok(await seesOthers(server));
    const [target] = await targets(server);
    assert.equal(target.health, 'up', target.lastError);
  }

  // The one that is left has all of it again.
  await servers[1].stop();
  await until('the other one is alone', 60, async () => !(await seesOthers(servers[0])));
}

async function besideCollector(t) {
  const { address } = await startDemo(t, 'v1', 'none');
  const collected = collect(t, address);
  const server = await startServer(t, { dir: scratch(t), config: config(address) });
  let shares;
  await until('both have a fair part', 200, async () => {
    await sleep(1000);
    shares = [await share(server, WINDOW), collected(WINDOW)];
    return (shares[0] >= 0.25 && shares[1] >= 0.3) || void 0;
  }).catch((e) => { throw new Error(`${shares}`, { cause: e }); });
  t.diagnostic(`shares ${shares.map((s) => s.toFixed(3))}`);
}

/** Two servers with one shard's name: the one that has the name scrapes, the other one waits for it. */
async function activeAndStandby(t) {
  const { address } = await startDemo(t, 'v1', 'none');
  const store = await new S3Fake().listen();
  t.after(() => store.close());
  const text = bucketSection(store) + config(address), dirs = [scratch(t), scratch(t)];
  const begin = (i, ready) => startServer(t, { dir: dirs[i], config: text, ready, seconds: 120,
    args: ['--shard.name=shop', '--shard.total=1', '--storage.bucket.segment-interval=2s'] });
  const active = await begin(0, true);
  await until('it scrapes', 60, async () => (await targets(active))[0]?.health === 'up');

  // What starts it again, a supervisor or Kubernetes, does so until the name is free.
  const refused = await begin(1, false);
  await programEnds(refused);
  assert.equal(refused.code, 1);
  assert.match(refused.err, /shard shop is in use by /);
  assert.ok(!(await seesOthers(active)), 'the standby asked for no profile');
  await active.stop('SIGKILL');
  const next = await begin(1, true);
  await until('the standby has it all', 60, async () => {
    const [target] = await targets(next);
    return target?.health === 'up' && !target.profilerShared;
  });
}

// At one time: they wait.
test('servers share a process', { concurrency: true }, async (t) => {
  await Promise.all([
    t.test('two servers have nearly half of the time each', pair),
    t.test('beside one that never leaves a gap', besideCollector),
    t.test('active and standby', activeAndStandby),
  ]);
});
