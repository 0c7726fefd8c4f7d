// A push belongs to one shard of a cluster, whichever shard gets it: each form at both doors, twins, an owner that is away,
// an owner that is killed in a crowd.
import test from 'node:test';
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { S3Fake } from '../s3_fake.mjs';
import { freePort, join, request, root, scratch, sleep, startServer, until } from './lib.mjs';
import { call, connect, grpcPort, recorded, varint } from './otlp_requests.mjs';
import { Cluster, profile, stored, sums } from './shards.mjs';

const SHARDS = [0, 1];
const AWAY = /shard shard-\d, which keeps these profiles, cannot be reached at http:\/\/127\.0\.0\.1:\d+/;

/** Two shards that joined, each with a port for its life, and a query node. */
async function startCluster(t) {
  const fake = await new S3Fake().listen();
  t.after(() => fake.close());
  const cluster = new Cluster(t, { dir: scratch(t), store: fake });
  cluster.ports = [await freePort(), await freePort()];
  cluster.join = (i) => cluster.start(`shard-${i}`, { port: cluster.ports[i], args: ['--web.enable-ingest',
    `--shard.name=shard-${i}`, '--shard.join', '--shard.total=2', `--shard.address=http://127.0.0.1:${cluster.ports[i]}`,
    '--web.otlp-grpc-listen-address=127.0.0.1:0', '--storage.bucket.segment-interval=1s'] });
  await Promise.all(SHARDS.map((i) => cluster.join(i)));
  await cluster.node(0);
  // Until both know both, a push is refused.
  for (const i of SHARDS)
    await until(`shard-${i} takes pushes of both`, 120, async () => {
      for (let k = 0; k < 16; k++) {
        const res = await send(cluster.get(`shard-${i}`), { job: `warm-${k}`, at: Date.now() / 1000, name: 'main.warm', value: 1 });
        assert.equal(res.status, 200, res.body.toString());
      }
      return true;
    });
  return cluster;
}

const send = (server, { job, at, name, value }) => request(
  `${server.url}/api/v1/ingest?name=process_cpu&job=${job}&time=${at.toFixed(3)}`, { method: 'POST', body: profile(name, value) });

const names = async (server, selector) => Object.keys((await stored(server, selector)).functions);

/** Which shard has the job's profiles on its own disk. */
async function ownerOf(cluster, job) {
  const has = await Promise.all(SHARDS.map(async (i) => (await names(cluster.get(`shard-${i}`), `{job="${job}"}`)).length > 0));
  assert.equal(has.filter(Boolean).length, 1, `${job}: ${has}`);
  return has.indexOf(true);
}

/** One job of each shard. */
async function jobsOf(cluster) {
  const jobs = [];
  for (let k = 0; jobs.filter(Boolean).length < 2; k++) {
    assert.ok(k < 16, 'all jobs have one owner');
    jobs[await ownerOf(cluster, `warm-${k}`)] ??= `warm-${k}`;
  }
  return jobs;
}

/** What a query node counts: profiles and their total, by job. */
async function counted(node, selector, at) {
  const out = {};
  for (const text of [`count_over_time(${selector}[1h])`, `total(${selector}[1h])`]) {
    const res = await request(`${node.url}/api/v1/query?${new URLSearchParams({ query: text, time: at })}`);
    const answer = JSON.parse(res.body);
    assert.equal(answer.status, 'success', res.body.toString());
    for (const one of answer.data.result) (out[one.metric.job] ??= []).push(Number(one.value[1]));
  }
  return out;
}

test('each form is counted once, whatever shards it is sent to', async (t) => {
  const cluster = await startCluster(t);
  const now = Math.floor(Date.now() / 1000) - 60;
  const pprof = readFileSync(join(root, 'tests/proto/testdata/go_cpu.pb.gz'));
  const java = readFileSync(join(root, 'tests/proto/jfr/recordings/agent.jfr.gz'));
  const otlp = recorded('p4-standalone-20hz-tiny').at(now * 1000);
  const post = (path, body, headers = {}) => async (server) => {
    const res = await request(server.url + path, { method: 'POST', body, headers });
    return [res.status, res.body.toString()];
  };
  const spoken = (body) => async (server) => {
    const session = connect(t, `http://127.0.0.1:${grpcPort(server)}`);
    const answer = await call(session, body);
    return [answer.status, answer.message ?? ''];
  };
  // push.v1 says no time: the profile does, in its field 9.
  const timed = Buffer.concat([profile('main.sdk', 3), Buffer.from([72]), varint(now * 1e9)]);
  const series = Buffer.from(JSON.stringify({ series: [{ labels: [{ name: '__name__', value: 'process_cpu' },
    { name: 'service_name', value: 'sdk' }], samples: [{ rawProfile: timed.toString('base64') }] }] }));
  const forms = {
    ingest: post(`/api/v1/ingest?name=cpu&job=one&time=${now}`, pprof),
    jfr: post(`/api/v1/ingest?job=java&time=${now}`, java),
    pyroscope: post(`/ingest?name=shop%7Bregion%3Deu%7D&from=${now - 10}&until=${now}&format=pprof`, pprof),
    folded: post(`/ingest?name=py.cpu&from=${now - 10}&until=${now}&format=folded`, 'main;work 3\nmain 1\n'),
    push: post('/push.v1.PusherService/Push', series, { 'Content-Type': 'application/json' }),
    otlp: post('/v1development/profiles', otlp, { 'Content-Type': 'application/x-protobuf' }),
    grpc: spoken(recorded('p5-collector-49hz').at(now * 1000)),
    profefe: post(`/api/0/profiles?service=old&type=cpu&created_at=${new Date(now * 1000).toISOString().slice(0, 19)}`, pprof),
  };
  for (const [what, push] of Object.entries(forms)) {
    const answers = [];
    for (const i of [0, 1, 1, 0]) answers.push(await push(cluster.get(`shard-${i}`)));
    assert.ok([0, 200].includes(answers[0][0]), `${what}: ${answers[0]}`);
    if (what === 'profefe') for (const a of answers) a[1] = a[1].replace(/"id":"[^"]*"/, '');
    for (const a of answers) assert.deepEqual(a, answers[0], what);
  }
  // A server alone that gets each once has the truth.
  const alone = await startServer(t, { dir: scratch(t), config: 'scrape_configs: []\n',
    args: ['--web.enable-ingest', '--web.otlp-grpc-listen-address=127.0.0.1:0'] });
  for (const push of Object.values(forms)) await push(alone);
  const selector = '{__name__="process_cpu",job!~"warm-.*",__type__="samples"}', at = now + 120;
  const want = await counted(alone, selector, at);
  assert.ok(Object.keys(want).length > 8, Object.keys(want).join());
  const sum = {};
  for (const i of SHARDS)
    for (const [job, values] of Object.entries(await counted(cluster.get(`shard-${i}`), selector, at))) {
      assert.ok(!sum[job], `${job} is at both`);
      sum[job] = values;
    }
  assert.deepEqual(sum, want);
});

test('a query node counts a push once that both shards got', async (t) => {
  const cluster = await startCluster(t);
  const list = [], at = Date.now() / 1000;
  for (let k = 0; k < 16; k++) {
    const one = { job: `calls-${k}`, at, name: 'main.f', value: 7 + k };
    for (const i of [k % 2, 1 - k % 2, k % 2])
      assert.equal((await send(cluster.get(`shard-${i}`), one)).status, 200);
    list.push(one);
  }
  await until('all is there, once', 60, async () => {
    const { functions } = await stored(cluster.get('query-0'), '{job=~"calls-.*"}');
    assert.deepEqual(functions, sums(list));
    return true;
  });
});

test('another profile of the same series and time is answered alike at both doors', async (t) => {
  const cluster = await startCluster(t);
  const at = Math.floor(Date.now() / 1000) - 10;
  for (const job of await jobsOf(cluster)) {
    const put = (i, value) => send(cluster.get(`shard-${i}`), { job, at, name: 'main.twin', value });
    for (let value = 1; value <= 64; value++)
      for (const i of [value % 2, 1 - value % 2]) {
        const res = await put(i, value);
        assert.equal(res.status, 200, `${job} ${value}: ${res.body}`);
      }
    const refused = await Promise.all(SHARDS.map((i) => put(i, 1000)));
    assert.deepEqual(refused.map((res) => res.status), [409, 409]);
    assert.equal(refused[0].body.toString(), refused[1].body.toString());
    const has = await Promise.all(SHARDS.map((i) => stored(cluster.get(`shard-${i}`), `{job="${job}"}`)));
    assert.deepEqual(has.map((x) => x.functions['main.twin'] ?? 0).sort(), [0, 65 * 32].sort());
  }
});

test('an owner that is away: refused, stored nowhere, and taken when it is back', async (t) => {
  const cluster = await startCluster(t);
  const jobs = await jobsOf(cluster);
  await cluster.kill('shard-1', 'SIGTERM');
  const door = cluster.get('shard-0');
  const one = { job: jobs[1], at: Date.now() / 1000, name: 'main.late', value: 5 };
  const refused = await send(door, one);
  assert.equal(refused.status, 503, refused.body.toString());
  assert.match(refused.body.toString(), AWAY);
  assert.ok(Number(refused.headers['retry-after']) > 0);
  assert.equal((await send(door, { ...one, job: jobs[0], name: 'main.own' })).status, 200);
  assert.deepEqual(await names(door, `{job="${jobs[1]}"}`), []);
  const metrics = (await request(`${door.url}/metrics`)).body.toString();
  assert.match(metrics, /^epimetheus_forward_unreached_profiles_total\{shard="shard-1"\} [1-9]/m);
  await cluster.join(1);
  await until('it is taken', 120, async () => {
    const res = await send(door, one);
    assert.equal(res.status, 200, res.body.toString());
    return true;
  });
  assert.equal((await stored(cluster.get('shard-1'), `{job="${jobs[1]}"}`)).functions['main.late'], 5);
  assert.equal((await stored(door, `{job="${jobs[1]}"}`)).functions['main.late'], undefined);
  assert.match(door.err, /msg="shard cannot be reached, pushes that it keeps are refused" shard=shard-1/);
});

test('an owner that is killed in a crowd: what was acknowledged is answered once', async (t) => {
  const cluster = await startCluster(t);
  const jobs = await jobsOf(cluster);
  const acknowledged = [];
  let stopped = false, repeats = 0;
  // Each sender repeats a profile until it is acknowledged, at another door each time, as a balancer does.
  const sender = async (seed) => {
    for (let n = 0; !stopped; n++) {
      const one = { job: jobs[(n + seed) % 2], at: Date.now() / 1000 + seed / 1000, name: `main.f${seed}`, value: 1 + n % 997 };
      for (let door = n; ; door++) {
        const res = await send(cluster.get(`shard-${door % 2}`), one).catch(() => ({ status: 0 }));
        if (res.status === 200) break;
        assert.ok([0, 503].includes(res.status), `${res.status} ${res.body}`);
        repeats++;
        await sleep(20);
      }
      acknowledged.push(one);
    }
  };
  const senders = Array.from({ length: 8 }, (_, seed) => sender(seed));
  for (const i of [1, 0, 1]) {
    const n = acknowledged.length;
    await until('more is acknowledged', 60, () => acknowledged.length > n + 100);
    await cluster.kill(`shard-${i}`);
    const before = acknowledged.length;
    await until('the other one goes on, or all wait', 60, () => acknowledged.length > before || repeats > 50);
    await cluster.join(i);
  }
  const n = acknowledged.length;
  await until('both go on', 120, () => acknowledged.length > n + 100);
  stopped = true;
  await Promise.all(senders);
  assert.ok(repeats > 0);
  await until('all is there, once', 120, async () => {
    const { functions } = await stored(cluster.get('query-0'), `{job=~"${jobs.join('|')}"}`);
    delete functions['main.warm'];
    assert.deepEqual(functions, sums(acknowledged));
    return true;
  });
  t.diagnostic(`${acknowledged.length} acknowledged, ${repeats} repeated`);
});
