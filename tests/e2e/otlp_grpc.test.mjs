// OTLP over gRPC with node's http2 as the sender: equal to HTTP, over TLS with users, and through a stop of the server.
import test from 'node:test';
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { execFileSync, join, programEnds, query, request, scratch, sleep, startServer, writeFileSync } from './lib.mjs';
import { call, connect, grpcPort, recorded } from './otlp_requests.mjs';

const FILES = ['p2-standalone-99hz-steady', 'p4-standalone-20hz-tiny', 'p5-collector-49hz'];
const GRPC = ['--web.enable-ingest', '--web.otlp-grpc-listen-address=127.0.0.1:0'];
const config = 'scrape_configs: []\n';

test('what gRPC brings equals what HTTP brings', async (t) => {
  const dirs = [scratch(t), scratch(t)];
  const servers = await Promise.all(dirs.map((dir) => startServer(t, { dir, config, args: GRPC })));
  const session = connect(t, `http://127.0.0.1:${grpcPort(servers[1])}`);
  const now = Date.now() - 60000; // a profile may end a little after its last sample
  for (const name of FILES) {
    const body = recorded(name).at(now);
    const res = await request(`${servers[0].url}/v1development/profiles`,
      { method: 'POST', headers: { 'Content-Type': 'application/x-protobuf' }, body });
    assert.equal(res.status, 200, res.body.toString());
    for (const plain of [false, true]) { // the second one is the same again
      const answer = await call(session, body, { plain });
      assert.equal(answer.status, 0, answer.message);
      assert.deepEqual(answer.body, Buffer.alloc(5));
    }
  }
  const time = now / 1000 + 30;
  for (const text of ['sort_desc(total(merge by (job) (process_cpu:samples[1h])))', 'total(process_cpu[1h])',
    'top(1000, merge by (job) (process_cpu[1h]))', 'merge(process_cpu:samples[1h])']) {
    const [byHttp, byGrpc] = await Promise.all(servers.map((s) => query(s, text, { time })));
    assert.ok(JSON.stringify(byHttp).includes('"metric"'), text);
    assert.deepEqual(byGrpc, byHttp, text);
  }
});

test('TLS, users and health', async (t) => {
  const dir = scratch(t);
  execFileSync('openssl', ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2', '-keyout',
    'server.key', '-out', 'server.pem', '-subj', '/CN=test', '-addext', 'subjectAltName=IP:127.0.0.1'], { cwd: dir, stdio: 'pipe' });
  writeFileSync(join(dir, 'web.yml'), `
tls_server_config: {cert_file: server.pem, key_file: server.key}
basic_auth_users: {alice: "$2b$04$dmpZqExj/u8TGBoVsL10Z.nT5488xB4GECFwppKfqrg0hArqnCz/K"} # secret
`);
  const server = await startServer(t, { dir, config, scheme: 'https', args: [...GRPC, `--web.config.file=${join(dir, 'web.yml')}`] });
  const url = `https://127.0.0.1:${grpcPort(server)}`, ca = readFileSync(join(dir, 'server.pem'));
  const authorization = (user) => ({ authorization: `Basic ${Buffer.from(user).toString('base64')}` });
  const session = connect(t, url, { ca });
  const body = recorded(FILES[0]).at(Date.now());
  assert.equal((await call(session, body)).status, 16);
  assert.equal((await call(session, body, { headers: authorization('alice:wrong') })).status, 16);
  const stored = await call(session, body, { headers: authorization('alice:secret') });
  assert.equal(stored.status, 0, stored.message);
  const health = await call(session, Buffer.alloc(0), { path: '/grpc.health.v1.Health/Check', plain: true,
    headers: authorization('alice:secret') });
  assert.deepEqual([health.status, [...health.body]], [0, [0, 0, 0, 0, 2, 8, 1]]);
  const plain = connect(t, `http://127.0.0.1:${grpcPort(server)}`);
  assert.equal((await call(plain, body)).status, -1);
});

test('what was acknowledged before a stop is there afterwards, all else is to come again', async (t) => {
  const dir = scratch(t);
  let server = await startServer(t, { dir, config, args: GRPC });
  const session = connect(t, `http://127.0.0.1:${grpcPort(server)}`);
  const answers = [], sent = [];
  const now = Date.now() - 60000; // a profile may end a little after its last sample
  for (let i = 0; i < 60; i++) {
    const pod = `pod-${i}`;
    sent.push(call(session, recorded(FILES[1], { 'k8s.pod.name': pod }).at(now)).then((a) => answers.push([pod, a])));
  }
  while (answers.length < 3) await sleep(1);
  await server.stop();
  assert.equal(server.code, 0);
  await Promise.all(sent);
  const stored = answers.filter(([, a]) => a.status === 0).map(([pod]) => pod).sort();
  for (const [pod, a] of answers) if (a.status !== 0) assert.ok(a.status === 14 || a.status === -1, `${pod}: ${a.status} ${a.message}`);
  server = await startServer(t, { dir, config, args: GRPC });
  const got = await query(server, 'total(merge by (pod) (process_cpu:samples[1h]))', { time: now / 1000 + 30 });
const pods = new Set(got.result.map((r) => r.metric.pod));
  for (const pod of stored) assert.ok(pods.has(pod), `${pod} was acknowledged`);
  const again = connect(t, `http://127.0.0.1:${grpcPort(server)}`);
  for (const [pod] of answers) {
    const a = await call(again, recorded(FILES[1], { 'k8s.pod.name': pod }).at(now));
    assert.equal(a.status, 0, a.message);
  }
  const all = await query(server, 'total(merge by (pod) (process_cpu:samples[1h]))', { time: now / 1000 + 30 });
  assert.equal(all.result.length, 60);
  assert.deepEqual([...new Set(all.result.map((r) => r.value[1]))], ['1']); // none is doubled
});

test('the port needs --web.enable-ingest', async (t) => {
  const dir = scratch(t);
  const run = await startServer(t, { dir, config, args: [GRPC[1]], ready: false });
  await programEnds(run);
  assert.equal(run.code, 2);
  assert.match(run.err, /--web\.otlp-grpc-listen-address needs --web\.enable-ingest/);
});
