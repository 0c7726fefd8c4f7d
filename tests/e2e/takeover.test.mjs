// Who owns a shard: servers that are taken over, copies of a data directory, a bucket that is away at the start.
import test from 'node:test';
import assert from 'node:assert/strict';
import { cpSync, existsSync, mkdirSync, readdirSync } from 'node:fs';
import { S3 } from '../s3_client.mjs';
import { S3Fake } from '../s3_fake.mjs';
import { epitool, finish, freePort, join, programEnds, query, request, scratch, sleep, startServer, until, writeFileSync } from './lib.mjs';
import { call, connect, grpcPort, recorded } from './otlp_requests.mjs';
import { bucketSection, Cluster, profile, Pusher, stored, sums, UNSENT } from './shards.mjs';

async function startFake(t) {
  const fake = await new S3Fake().listen();
  t.after(() => fake.close());
  const tell = async (method, path, value) => {
    const answer = await request(fake.control + path, { method, body: value && JSON.stringify(value) });
    assert.equal(answer.status, 200, answer.body.toString());
    return JSON.parse(answer.body);
  };
  return { fake, tell, s3: new S3(fake) };
}

const manifest = async (s3, shard) => JSON.parse(await s3.get(`epi/shards/${shard}/manifest`));

async function push(cluster, name, n) {
  const pusher = new Pusher(() => cluster.get(name), { seed: n });
  for (let i = 0; i < n; i++) await pusher.push();
  return pusher.acknowledged;
}

/** The manifest says what the store has once all is in it. */
const published = (s3, shard, after) => until(`${shard} has published`, 60, async () =>
  (await manifest(s3, shard)).through_ns / 1e9 > after);

test('of a data directory and its copy one publishes', async (t) => {
  const { fake, s3 } = await startFake(t);
  const cluster = new Cluster(t, { dir: scratch(t), store: fake });
  const first = await cluster.shard(0);
  const list = await push(cluster, 'shard-0', 5);
  await published(s3, 'shard-0', Date.now() / 1000);
  mkdirSync(join(cluster.dir, 'copy'));
  await first.child.kill('SIGSTOP'); // so that the copy is one of a moment
  cpSync(join(first.dir, 'data'), join(cluster.dir, 'copy/data'), { recursive: true });
  await first.child.kill('SIGCONT');
  assert.ok(existsSync(join(cluster.dir, 'copy/data/bucket.owner')));
  const copy = await startServer(t, { dir: join(cluster.dir, 'copy'), config: bucketSection(fake), ready: false,
    args: ['--web.enable-ingest', '--shard.name=shard-0', '--shard.total=3', '--storage.bucket.segment-interval=1s'] });
  // One of the two ends, and the other one goes on alone.
  await until('one of them ends', 120, () => first.code !== undefined || copy.code !== undefined);
  const [loser, winner] = first.code !== undefined ? [first, copy] : [copy, first];
  assert.equal(loser.code, 1);
  assert.match(loser.err, /another server took our name: this one ends" shard=shard-0|shard shard-0 is in use by /);
  const { session } = await manifest(s3, 'shard-0');
  await published(s3, 'shard-0', Date.now() / 1000);
  assert.equal(winner.code, undefined);
  assert.equal((await manifest(s3, 'shard-0')).session, session);
  await cluster.node(0);
  await until('a query node has each profile once', 60, async () => {
    const { functions, warnings } = await stored(cluster.get('query-0'));
    assert.deepEqual([functions, warnings], [sums(list), []]);
    return true;
  });
});

test('two servers with a disk each take turns: all that was put is answered, by either of them and a query node', async (t) => {
  const { fake, s3 } = await startFake(t);
  const cluster = new Cluster(t, { dir: scratch(t), store: fake, args: ['--shard.lease=4s'] });
  const list = [];
  const turn = async (place, n) => {
    cluster.places.set('shard-0', place);
    const server = await cluster.shard(0);
    list.push(...await push(cluster, 'shard-0', n));
    await published(s3, 'shard-0', Date.now() / 1000);
    return server;
  };
  await turn('one', 5);
  await cluster.kill('shard-0');
  await turn('other', 6);
  await cluster.kill('shard-0');
  const back = await turn('one', 7);
  assert.match(back.err, /the data directory is not the one that published last: its data was set aside" folder=\S+\/replaced-\d{8}T\d{6}Z /);
  const folders = readdirSync(join(back.dir, 'data')).filter((name) => name.startsWith('replaced-'));
  assert.equal(folders.length, 1);
  const inside = await finish(t, epitool, ['query', `--data=${join(back.dir, 'data', folders[0])}`, '--start=-1h',
    'total(process_cpu:samples{job="calls"})']);
  assert.equal(inside.code, 0, inside.err);
  assert.ok(inside.out.includes('shard-0-0'), inside.out);
  await cluster.node(0);
  for (const name of ['shard-0', 'query-0'])
    await until(`${name} has each profile once`, 60, async () => {
      const { functions, warnings } = await stored(cluster.get(name));
      assert.deepEqual(functions, sums(list));
      assert.ok(warnings.every((warning) => UNSENT.test(warning)), warnings.join('\n'));
      return true;
    });
  // It goes on as the same directory.
  await cluster.kill('shard-0');
  const again = await turn('one', 3);
  assert.doesNotMatch(again.err, /set aside/);
});

/** Pushes a profile to one server after the other until one of them acknowledges it; each is a series of its own. */
class Sender extends Pusher {
  constructor(servers) {
    super();
    this.servers = servers;
  }

  async push() {
    const one = { pod: `p${this.n}`, at: Date.now(), value: 1 + this.n++ };
    const body = profile('main.f', one.value);
    while (!this.stopped) {
      for (const server of this.servers) {
        if (!server.url) continue;
        const url = `${server.url}/api/v1/ingest?name=process_cpu&job=calls&pod=${one.pod}&time=${(one.at / 1000).toFixed(3)}`;
        const answer = await fetch(url, { method: 'POST', body, signal: AbortSignal.timeout(500) }).catch(() => undefined);
        const text = await answer?.text().catch(() => undefined);
        if (!answer || text === undefined) continue;
        if (answer.status === 200) {
          this.acknowledged.push({ ...one, by: server, acked: Date.now() });
          return;
        }
        assert.equal(answer.status, 503, text);
      }
      await sleep(20);
    }
  }
}

/** Times of losses that an answer warns of, in ms. */
const lossesOf = (warnings) => warnings.filter((w) => UNSENT.test(w)).map((w) => {
  const [, from, to] = /between (\S+) and (\S+) \(/.exec(w);
  assert.ok(Date.parse(from) < Date.parse(to), w);
  return [Date.parse(from), Date.parse(to)];
});

test('what an owner acknowledged that was paused for longer than its lease is answered or named', async (t) => {
  const { fake, s3 } = await startFake(t);
  const cluster = new Cluster(t, { dir: scratch(t), store: fake });
  const active = await cluster.shard(0, { args: ['--shard.lease=4s'] });
  mkdirSync(join(cluster.dir, 'spare'));
  const spare = { url: undefined };
  const sender = new Sender([active, spare]);
  t.after(() => { sender.stopped = true; });
  sender.begin(20);
  await until('the active one acknowledges', 60, () => sender.acknowledged.length >= 20);
  await published(s3, 'shard-0', Date.now() / 1000);
  active.child.kill('SIGSTOP');
  const next = await startServer(t, { dir: join(cluster.dir, 'spare'), config: bucketSection(fake), seconds: 60,
    args: ['--web.enable-ingest', '--shard.name=shard-0', '--shard.total=3', '--storage.bucket.segment-interval=1s', '--shard.lease=4s'] });
  spare.url = next.url;
  await until('the spare acknowledges', 60, () => sender.acknowledged.some((one) => one.by === spare));
  active.child.kill('SIGCONT');
  const woken = Date.now();
  await programEnds(active);
  assert.equal(active.code, 1);
  assert.match(active.err, /another server took our name: this one ends" shard=shard-0/);
  await published(s3, 'shard-0', Date.now() / 1000);
  const list = await sender.stop();
  assert.deepEqual(list.filter((one) => one.by === active && one.acked > woken), [], 'the active server acknowledged after its pause');
  assert.ok(list.some((one) => one.by === active) && list.some((one) => one.by === spare));
  await published(s3, 'shard-0', Date.now() / 1000);
  await cluster.node(0);
  const ask = async (server) => {
    const params = new URLSearchParams({ query: 'total(merge by (pod) (process_cpu:samples{job="calls"}))', start: list[0].at / 1000 - 60, end: Date.now() / 1000 + 60 });
    return JSON.parse((await request(`${server.url}/api/v1/query?${params}`)).body);
  };
  // A query node that just started has yet to read what is not in a block, and its answers say so.
  for (const server of [next, cluster.get('query-0')])
    await until('the answer has or names all', 60, async () => {
      const { status, error, data, warnings } = await ask(server);
      assert.equal(status, 'success', error);
      const has = new Map(data.result.map((one) => [one.metric.pod, Number(one.value[1])]));
      const losses = lossesOf(warnings ?? []);
      assert.equal(losses.length, 1, JSON.stringify(warnings));
      const named = (one) => losses.some(([from, to]) => from < one.at && one.at <= to);
      const wrong = list.filter((one) => (has.has(one.pod) ? has.get(one.pod) !== one.value : !named(one)));
      assert.deepEqual(wrong.map(({ pod, at, value }) => [pod, at, value, has.get(pod)]), [], `${list.length} acknowledged, ${has.size} answered`);
      assert.deepEqual(list.filter((one) => one.by === spare && !has.has(one.pod)), [], 'what the spare acknowledged');
      return true;
    });
});

/** Every way to push; a status of its own for each: 503, and 14 of gRPC. */
async function pushAll(t, server, seconds) {
  const body = profile('main.f', 1);
  const http = (path, type = 'application/octet-stream', bytes = body) => request(`${server.url}${path}`,
    { method: 'POST', body: bytes, headers: { 'Content-Type': type } });
  const otlp = recorded('p4-standalone-20hz-tiny').at(seconds * 1000);
  return {
    ingest: await http(`/api/v1/ingest?name=process_cpu&job=all&time=${seconds}`),
    pyroscope: await http(`/ingest?name=all&format=pprof&until=${seconds}`),
    profefe: await http('/api/0/profiles?service=all&type=cpu&labels=id%3D1'),
    connect: await http('/push.v1.PusherService/Push', 'application/json', JSON.stringify({ series: [{
      labels: [{ name: '__name__', value: 'process_cpu' }, { name: 'service_name', value: 'all' }],
      samples: [{ ID: '1', rawProfile: body.toString('base64') }] }] })),
    otlp: await http('/v1development/profiles', 'application/x-protobuf', otlp),
    grpc: await call(connect(t, `http://127.0.0.1:${grpcPort(server)}`), otlp),
  };
}

const scrapes = async (server) => Number((await query(server, 'count_over_time(up{job="self"}[1h])')).result[0]?.value[1] ?? 0);

test('while the store is away for longer than the lease nothing is acknowledged, and nothing is lost', async (t) => {
  const { fake, tell, s3 } = await startFake(t);
  const cluster = new Cluster(t, { dir: scratch(t), store: fake, total: 1 });
  const port = await freePort();
  const server = await cluster.shard(0, { port, args: ['--shard.lease=2s', '--web.otlp-grpc-listen-address=127.0.0.1:0'],
    config: `scrape_configs: [{ job_name: self, scrape_interval: 1s, scrape_timeout: 1s, static_configs: [{ targets: ['127.0.0.1:${port}'] }] }]\n` });
  const patient = await cluster.shard(1, { args: ['--shard.lease=1h'] });
  const pusher = new Pusher(() => server);
  t.after(() => { pusher.stopped = true; });
  for (let i = 0; i < 5; i++) await pusher.push();
  await published(s3, 'shard-0', Date.now() / 1000);
  await tell('POST', '/fault', { count: -1, drop: 'before' });
  const probe = (one) => request(`${one.url}/api/v1/ingest?name=process_cpu&job=probe&time=${Math.floor(Date.now() / 1000)}`,
    { method: 'POST', body: profile('main.p', 1) });
  const refused = await until('a push is refused', 60, async () => {
    const answer = await probe(server);
    return answer.status === 503 && answer;
  });
  assert.match(refused.headers['retry-after'], /^\d+$/);
  assert.match(refused.body.toString(), /shard shard-0 has not confirmed its lease for \d+\.\d s, limit 2 s: another server may have its name/);
  pusher.begin();
  const second = Math.floor(Date.now() / 1000);
  for (const [route, { status, message, headers, body }] of Object.entries(await pushAll(t, server, second))) {
    assert.equal(status, route === 'grpc' ? 14 : 503, `${route}: ${message ?? body}`);
    assert.match(message ?? body.toString(), /has not confirmed its lease/, route);
    if (route !== 'grpc') assert.match(headers['retry-after'], /^\d+$/, route);
  }
  const { shard } = JSON.parse((await request(`${server.url}/api/v1/status/cluster`)).body).data;
  assert.match(shard.refuses_pushes, /shard shard-0 has not confirmed its lease/);
  const metrics = (await request(`${server.url}/metrics`)).body.toString();
  assert.ok(Number(/^epimetheus_lease_refused_pushes_total\{stored="no"\} (\d+)$/m.exec(metrics)[1]) >= 6);
  const acknowledged = pusher.acknowledged.length;
  const before = await scrapes(server);
  await until('scrapes go on', 60, async () => await scrapes(server) > before + 2);
  assert.equal(pusher.acknowledged.length, acknowledged);
  // Whoever runs one server alone may have more patience.
  assert.equal((await probe(patient)).status, 200);
  const { shard: other } = JSON.parse((await request(`${patient.url}/api/v1/status/cluster`)).body).data;
  assert.equal(other.refuses_pushes, undefined);
  const scraped = await scrapes(server);
  await tell('DELETE', '/faults');
  await until('pushes are acknowledged again', 60, () => pusher.acknowledged.length > acknowledged + 3);
  const list = await pusher.stop();
  for (const [route, { status, message, body }] of Object.entries(await pushAll(t, server, second)))
    assert.equal(status, route === 'grpc' ? 0 : 200, `${route}: ${message ?? body}`);
  await published(s3, 'shard-0', Date.now() / 1000);
  await published(s3, 'shard-1', Date.now() / 1000);
  const node = await cluster.node(0);
  await until('a query node has all', 60, async () => {
    const { functions, warnings } = await stored(node);
    assert.deepEqual([functions, warnings], [sums(list), []]);
    return true;
  });
  assert.ok(await scrapes(node) >= scraped, 'scrapes of the time without a store are put later');
  assert.deepEqual((await stored(node, '{job="all"}')).warnings, []);
});

test('a shard starts while the bucket is away, and publishes when it is back', async (t) => {
  const { fake, tell, s3 } = await startFake(t);
  const cluster = new Cluster(t, { dir: scratch(t), store: fake });
  await cluster.shard(0);
  const list = await push(cluster, 'shard-0', 5);
  await published(s3, 'shard-0', Date.now() / 1000);
  await cluster.kill('shard-0');
  await tell('POST', '/fault', { count: -1, drop: 'before' });
  const server = await cluster.shard(0);
  assert.match(server.err, /the bucket is away: nothing is published until it is back/);
  // Another server may have the name.
  const pusher = new Pusher(() => server, { seed: 7 }).begin();
  t.after(() => { pusher.stopped = true; });
  const refused = await until('a push is refused', 60, async () => pusher.failures > 2
    && request(`${server.url}/api/v1/ingest?name=process_cpu&job=probe`, { method: 'POST', body: profile('main.f', 1) }));
  assert.equal(refused.status, 503, refused.body.toString());
  assert.match(refused.body.toString(), /shard shard-0 has no lease yet, as the bucket was away at its start/);
  assert.equal(pusher.acknowledged.length, 0);
  const later = Date.now() / 1000;
  await tell('DELETE', '/faults');
  await until('pushes are acknowledged', 60, () => pusher.acknowledged.length > 3);
  list.push(...await pusher.stop());
  await published(s3, 'shard-0', later);
  await published(s3, 'shard-0', Date.now() / 1000);
  await cluster.node(0);
  await until('a query node has all', 60, async () => {
    assert.deepEqual((await stored(cluster.get('query-0'))).functions, sums(list));
    return true;
  });
});

test('a query node that waits for the lease of rules probes the bucket once', async (t) => {
  const { fake, tell } = await startFake(t);
  const dir = scratch(t), rules = join(dir, 'rules.yml');
  writeFileSync(rules, 'groups: [{ name: a, interval: 1s, rules: [{ record: "one:total", expr: "1" }] }]\n');
  const cluster = new Cluster(t, { dir, store: fake, config: `rule_files: [${rules}]\n` });
  await cluster.node(0);
  await until('it evaluates', 60, () => /rules are evaluated here/.test(cluster.get('query-0').err));
  await tell('DELETE', '/requests');
  await cluster.node(1);
  const looks = async () => (await tell('GET', '/requests')).filter((r) => r.method === 'GET' && /shards\/rules\/manifest$/.test(r.key));
  const probes = async () => (await tell('GET', '/requests')).filter((r) => r.method === 'PUT' && /probe/.test(r.key)).length;
  await until('it found the lease taken', 60, () => /rules are evaluated elsewhere/.test(cluster.get('query-1').err));
  const first = await probes();
  assert.ok(first > 0, JSON.stringify((await tell('GET', '/requests')).filter((r) => r.method === 'PUT').map((r) => r.key)));
  const before = (await looks()).length;
  await until('it tried again', 90, async () => (await looks()).length > before + 2);
  assert.equal(await probes(), first);
});

test('the cache of a bucket is outside the data directory, and the sandbox allows it', async (t) => {
  const { fake, s3 } = await startFake(t);
  const dir = scratch(t), cache = join(dir, 'elsewhere/cache');
  const cluster = new Cluster(t, { dir, store: fake, args: ['--storage.tsdb.window=2s', '--storage.tsdb.out-of-order-time-window=1s',
    `--storage.bucket.cache-path=${cache}`] });
  await cluster.shard(0);
  await until('a block is in the bucket', 120, async () => {
    await push(cluster, 'shard-0', 1); // a window ends by what comes after it
    return (await s3.keys({ prefix: 'epi/shards/' })).some((k) => k.endsWith('/meta.json'));
  });
  const node = await cluster.node(0, { args: [`--storage.bucket.cache-path=${cache}-of-node`] });
  await until('the node has pages', 60, async () => {
    await stored(node);
    return existsSync(`${cache}-of-node`) && !/no cache on disk/.test(node.err);
  });
  assert.doesNotMatch(node.err, /Permission denied|level=warn component=sandbox/);
  const text = (await request(`${node.url}/metrics`)).body.toString();
  assert.match(text, /epimetheus_sandbox_in_force\{part="files"\} 1/);
  const { data } = JSON.parse((await request(`${node.url}/api/v1/status/cluster`)).body);
  assert.equal(data.cache.off ?? '', '', JSON.stringify(data.cache));
});
