// Shards that join and are drained while they run: each target is scraped by one of them, and none of them is restarted. Each
// answer of a target has a number of its own as a sample's label, so the shards' databases say who stored which scrape.
import test from 'node:test';
import assert from 'node:assert/strict';
import http from 'node:http';
import { S3 } from '../s3_client.mjs';
import { S3Fake } from '../s3_fake.mjs';
import { api, epitool, finish, join, query, request, scratch, until } from './lib.mjs';
import { Cluster } from './shards.mjs';

const TARGETS = 40;
const INTERVAL = 2; // seconds
// Two intervals, the look, the write of the manifest and a second: while a target moves, one that stays is scraped so often at most.
const SCRAPES_IN_A_MOVE = 4;

const varint = (n) => n < 128 ? [n] : [n & 127 | 128, ...varint(n >>> 7)];
const field = (n, bytes) => [n * 8 + 2, ...varint(bytes.length), ...bytes];
const number = (n, v) => [n * 8, ...varint(v)];

/** A pprof profile of one sample with the label n. */
const numbered = (n) => Buffer.from([
  ...field(1, [...number(1, 1), ...number(2, 2)]),
  ...field(2, [...field(1, [1]), ...field(2, varint(1)), ...field(3, [...number(1, 4), ...number(2, 5)])]),
  ...field(4, [...number(1, 1), ...field(4, number(1, 1))]),
  ...field(5, [...number(1, 1), ...number(2, 3)]),
  ...['', 'goroutine', 'count', 'main.f', 'n', String(n)].flatMap((s) => field(6, [...Buffer.from(s)])),
]);

/** One server with an address for each target, 127.0.0.1 and on. */
async function startTargets(t) {
  const log = []; // the nth answer: its target
  const server = http.createServer((req, res) => {
    res.end(numbered(log.push(req.socket.localAddress.replace('::ffff:', '')) - 1));
  });
  await new Promise((done) => server.listen(0, '0.0.0.0', done));
  t.after(() => { server.closeAllConnections(); server.close(); });
  const { port } = server.address();
  const addresses = Array.from({ length: TARGETS }, (_, i) => `127.0.0.${i + 1}:${port}`);
  const others = ['process_cpu', 'memory', 'block', 'mutex', 'goroutineleak'];
  const config = `scrape_configs:
- job_name: fleet
  scrape_interval: ${INTERVAL}s
  profiling_config:
    pprof_config: {${others.map((p) => `${p}: {enabled: false}`).join(', ')}}
  static_configs: [{targets: [${addresses.map((a) => `"${a}"`).join(', ')}]}]
`;
  return { log, addresses, config };
}

/** For each target, who stored which of its answers, in their order: [{n, shard}]. */
async function stored(log, members) {
  const out = new Map();
  for (const server of members) {
    const { result } = await query(server, 'total(merge by (n) (goroutine{job="fleet"}[1h]))');
    for (const { metric } of result) {
      const target = log[Number(metric.n)];
      if (!out.has(target)) out.set(target, []);
      out.get(target).push({ n: Number(metric.n), shard: server.name });
    }
  }
  for (const list of out.values()) list.sort((a, b) => a.n - b.n);
  return out;
}

const hosts = (addresses) => addresses.map((a) => a.split(':')[0]);

/** Who has which target, by its last scrapes. */
const ownerOf = async (members) => {
  const owners = new Map();
  for (const server of members)
    for (const x of (await api(server, 'targets')).activeTargets) {
      assert.ok(!owners.has(x.discoveredLabels.__address__), `${x.discoveredLabels.__address__} is scraped twice`);
      owners.set(x.discoveredLabels.__address__, server.name);
    }
  return owners;
};

/** All members follow the number, and each target is scraped by one of them. */
const settled = (what, members, addresses, number) => until(what, 90, async () => {
  for (const server of members) {
    const metrics = (await request(`${server.url}/metrics`)).body.toString();
    if (!metrics.includes(`\nepimetheus_shard_assignment ${number}\n`) || !metrics.includes('\nepimetheus_shard_targets_waiting 0\n'))
      return false;
  }
  const owners = await ownerOf(members);
  return owners.size === addresses.length && owners;
});

/** Each target was scraped n more times from now on. */
const scraped = (log, addresses, n) => {
  const from = log.length;
  return until(`${n} more scrapes of each`, 120, () =>
    hosts(addresses).every((host) => log.slice(from).filter((target) => target === host).length >= n));
};

/** Each target changes hands at most once for each change; returns how many did. */
function checkOwners(lists, addresses, changes) {
  let moved = 0;
  for (const host of hosts(addresses)) {
    const list = lists.get(host) ?? [];
    const runs = list.filter((x, i) => i === 0 || list[i - 1].shard !== x.shard);
    assert.ok(list.length > 0, host);
    assert.ok(runs.length - 1 <= changes, `${host}: ${runs.map((x) => `${x.n} ${x.shard}`)}`);
    assert.equal(new Set(list.map((x) => x.n)).size, list.length, `${host} is stored twice`);
    moved += runs.length > 1;
  }
  return moved;
}

/** While a target moves, how often one that stays is scraped: the median of those. */
function checkGaps(log, lists, addresses, from) {
  const still = hosts(addresses).filter((host) => new Set(lists.get(host).map((x) => x.shard)).size === 1);
  let worst = 0;
  for (const host of hosts(addresses)) {
    const list = lists.get(host).filter((x) => x.n >= from);
    for (let i = 1; i < list.length; i++) {
      const between = log.slice(list[i - 1].n + 1, list[i].n);
      const counts = still.filter((x) => x !== host).map((x) => between.filter((y) => y === x).length).sort((a, b) => a - b);
      worst = Math.max(worst, counts[counts.length >> 1]);
    }
  }
  assert.ok(worst <= SCRAPES_IN_A_MOVE, `a target was not scraped while others were scraped ${worst} times`);
  return worst;
}

const assignmentOf = async (s3) => JSON.parse((await s3.get('epi/assignment')).toString());

async function startCluster(t, total = 1, args = ['--shard.join', '--shard.lease=4s']) {
  const fake = await new S3Fake().listen();
  t.after(() => fake.close());
  const { log, addresses, config } = await startTargets(t);
  const cluster = new Cluster(t, { dir: scratch(t), store: fake, total, config, args });
  const tool = (...args) => finish(t, epitool, ['bucket', ...args, `--config.file=${join(cluster.place('shard-0'), 'epimetheus.yml')}`], 120);
  return { fake, s3: new S3(fake), log, addresses, cluster, tool };
}

test('a third shard joins and is drained again, without a restart of the others', async (t) => {
  const { s3, log, addresses, cluster, tool } = await startCluster(t);
  const members = [await cluster.shard(0), await cluster.shard(1)];
  await settled('two share the targets', members, addresses, 2);
  await scraped(log, addresses, 2);
  const from = log.length;
  const third = await cluster.shard(2);
  members.push(third);
  const owners = await settled('three share the targets', members, addresses, 3);
  await scraped(log, addresses, 2);
  let lists = await stored(log, members);
  const moved = checkOwners(lists, addresses, 1 + 1); // the second one's coming, and the third one's
  const gained = [...owners.values()].filter((name) => name === 'shard-2').length;
  assert.ok(gained > 0 && gained < 0.75 * TARGETS, `the third one has ${gained}`);
  const worst = checkGaps(log, lists, addresses, from);
  t.diagnostic(`${moved} moved, ${gained} to the third; others were scraped ${worst} times at most meanwhile`);

  const dropped = (await api(members[0], 'targets')).droppedTargets;
  assert.equal(dropped.length, TARGETS - [...owners.values()].filter((name) => name === 'shard-0').length);
  for (const d of dropped) assert.equal(d.reason, `shard ${owners.get(d.discoveredLabels.__address__)} scrapes it (assignment 3, 3 shards)`);
  const steps = await api(members[0], 'targets/relabel_steps', { scrapePool: 'fleet', labels: JSON.stringify(dropped[0].discoveredLabels) });
  assert.ok(steps.profiles.every((p) => !p.keep && p.reason === dropped[0].reason));

  const drained = await tool('drain', 'shard-2');
  assert.equal(drained.code, 0, drained.err);
  assert.match(drained.out, /shard shard-2 has no targets any more: it may be stopped/);
  const left = await settled('two share the targets again', members, addresses, 4);
  assert.ok(![...left.values()].includes('shard-2'));
  await scraped(log, addresses, 2);
  lists = await stored(log, members);
  checkOwners(lists, addresses, 1 + 2);
  checkGaps(log, lists, addresses, from);
  // It does not join by itself.
  await cluster.kill('shard-2', 'SIGTERM');
  members[2] = await cluster.shard(2);
  const object = await assignmentOf(s3);
  assert.deepEqual([object.number, object.versions.at(-1).shards, object.drained], [4, ['shard-0', 'shard-1'], ['shard-2']]);
  const shown = await tool('shards');
  assert.equal(shown.code, 0, shown.err);
  assert.match(shown.out, /^assignment 4: 2 shards, keeps pushes from /);
  const admitted = await tool('admit', 'shard-2');
  assert.equal(admitted.code, 0, admitted.err);
  await settled('three share the targets again', members, addresses, 5);
  for (const server of members.slice(0, 2)) assert.equal(server.code, undefined);
});

test('a shard that is paused during a change stores nothing that another one stores by then', async (t) => {
  const { log, addresses, cluster } = await startCluster(t);
  const members = [await cluster.shard(0), await cluster.shard(1)];
  await settled('two share the targets', members, addresses, 2);
  await scraped(log, addresses, 2);
  members[1].child.kill('SIGSTOP');
  const third = await cluster.shard(2);
  const free = await until('the others have what was the paused one\'s and is theirs', 90, async () => {
    const metrics = await Promise.all([members[0], third].map(async (s) => (await request(`${s.url}/metrics`)).body.toString()));
    return metrics.every((text) => text.includes('\nepimetheus_shard_assignment 3\n') && text.includes('\nepimetheus_shard_targets_waiting 0\n'));
  });
  assert.ok(free);
  const theirs = hosts([...(await ownerOf([members[0], third])).keys()]);
  await scraped(log, theirs.map((host) => `${host}:0`), 2);
  members[1].child.kill('SIGCONT');
  await settled('three share the targets', [...members, third], addresses, 3);
  await scraped(log, addresses, 2);
  const lists = await stored(log, [...members, third]);
  const moved = checkOwners(lists, addresses, 2);
  t.diagnostic(`${moved} moved`);
  assert.match(third.err, /msg="a shard is dead: its targets are free" shard=shard-1/);
  assert.equal(members[1].code, undefined, 'the paused one goes on');
});

test('shards with a fixed total join one after the other', async (t) => {
  const { log, addresses, cluster, s3 } = await startCluster(t, 2, ['--shard.lease=4s']);
  await cluster.shard(0);
  await cluster.shard(1);
  await scraped(log, addresses, 2);
  await cluster.kill('shard-1', 'SIGTERM');
  const second = await cluster.shard(1, { args: ['--shard.join'] });
  const waits = async () => (await api(second, 'targets')).droppedTargets.filter((d) => /may still scrape it, until it follows assignment 1/.test(d.reason));
  await until('what the fixed total gives shard-0 waits for it', 60, async () => {
    const list = await waits();
    return list.length > 0 && list.every((d) => d.reason.startsWith('shard shard-0 '));
  });
  await cluster.kill('shard-0', 'SIGTERM');
  const first = await cluster.shard(0, { args: ['--shard.join'] });
  await settled('both follow', [first, second], addresses, 1);
  const { number, total, versions } = await assignmentOf(s3);
  assert.deepEqual([number, total, versions[0].shards], [1, 2, ['shard-0', 'shard-1']]);
  await scraped(log, addresses, 2);
  checkOwners(await stored(log, [first, second]), addresses, 1);
});
