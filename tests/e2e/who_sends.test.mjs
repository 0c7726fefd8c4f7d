// The list of senders: who pushes what, each refusal by any path, and what is left of it after a restart.
import test from 'node:test';
import assert from 'node:assert/strict';
import { sendersAt } from '../browser/senders_answer.mjs';
import { api, join, recordedCpu, request, scratch, startServer, writeFileSync } from './lib.mjs';
import { call, connect, grpcPort, recorded } from './otlp_requests.mjs';

const PUSH = '/push.v1.PusherService/Push', EXPORT = '/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export';
// bcrypt of "secret", cost 4, as `htpasswd -nbB -C 4` writes it.
const HASH = '$2b$04$dmpZqExj/u8TGBoVsL10Z.nT5488xB4GECFwppKfqrg0hArqnCz/K';
const WEB = `basic_auth_users: {root: "${HASH}", ci: "${HASH}", viewer: "${HASH}"}
users: [{name: ci, roles: [ingest]}, {name: viewer, roles: [read]}, {name: root, roles: [admin]}]
`;
const as = (user) => ({ Authorization: `Basic ${Buffer.from(`${user}:secret`).toString('base64')}` });
const wrong = { Authorization: `Basic ${Buffer.from('ci:wrong').toString('base64')}` };

const post = (server, path, { headers = as('ci'), body = recordedCpu(), type = 'application/octet-stream' } = {}) =>
  request(`${server.url}${path}`, { method: 'POST', headers: { 'User-Agent': 'sdk/1.0', 'Content-Type': type, ...headers }, body });

/** The status of a call whose message is longer than the server takes, by its prefix. */
const callTooLong = (session, headers) => new Promise((done, fail) => {
  const req = session.request({ ':method': 'POST', ':path': EXPORT, 'content-type': 'application/grpc', ...headers });
  req.on('response', (h) => done(h['grpc-status']));
  req.on('error', fail);
  req.write(Buffer.from([0, 2, 0, 0, 0]));
});

const senders = async (server, headers = as('root')) => (await api(server, 'senders', {}, { headers })).senders;
/** "path user job": what the list says of it. */
const byName = (list) => Object.fromEntries(list.map((s) => [[s.path, s.user ?? '-', s.job ?? '-'].join(' '), s]));

test('each sender and each refusal has a row', async (t) => {
  const dir = scratch(t);
  writeFileSync(join(dir, 'web.yml'), WEB);
  const args = ['--web.enable-ingest', '--web.otlp-grpc-listen-address=127.0.0.1:0', `--web.config.file=${join(dir, 'web.yml')}`];
  const options = { dir, config: 'scrape_configs: []\n', args };
  const server = await startServer(t, options);
  const began = new Date().toISOString();
  assert.deepEqual(await senders(server), []);

  const body = recordedCpu(), time = Math.floor(Date.now() / 1000);
  const now = (name, job) => `/api/v1/ingest?name=${name}&job=${job}&time=${time}&interval=10s`;
  for (const [what, status, path, more] of [
    ['stored', 200, now('process_cpu', 'shop')],
    ['the same job, refused', 400, '/api/v1/ingest?name=process_cpu&job=shop&time=1&interval=-1s'],
    ['of another name', 200, `/ingest?name=cart&format=pprof&until=${time}`],
    ['no profile', 422, '/ingest?name=cart&format=pprof', { body: 'garbage' }],
    ['no name', 400, '/ingest', {}],
    ['connect', 400, PUSH, { type: 'application/json', body: '{"series":[{"samples":[{"rawProfile":""}]}]}' }],
    ['no user', 401, '/ingest?name=a', { headers: {} }],
    ['a wrong password', 401, '/ingest?name=a', { headers: wrong }],
    ['not the role', 403, '/ingest?name=a', { headers: as('viewer') }],
    ['a wrong address', 404, '/v1/profiles'],
    ['another type', 415, '/v1development/profiles', { type: 'text/plain' }],
    ['too long', 413, '/ingest?name=long', { body: Buffer.alloc(17 << 20) }],
  ]) {
    const res = await post(server, path, more);
    assert.equal(res.status, status, `${what}: ${res.body}`);
  }
  await request(`${server.url}/ingest?name=a`, { headers: as('ci') }); // no push
  const session = connect(t, `http://127.0.0.1:${grpcPort(server)}`);
  const otlp = recorded('async-profiler-4.6').at(Date.now() - 60000), ci = { authorization: as('ci').Authorization };
  for (const [what, status, bytes, more] of [
    ['no user', 16, otlp, {}],
    ['stored', 0, otlp, { headers: { ...ci, 'user-agent': 'otlp/2' } }],
    ['another service', 12, otlp, { headers: ci, path: '/a.B/C' }],
    ['no health', 16, Buffer.alloc(0), { plain: true, path: '/grpc.health.v1.Health/Check' }],
  ])
    assert.equal((await call(session, bytes, more)).status, status, what);
  assert.equal(await callTooLong(session, ci), '8');

  const check = (list) => {
    const is = byName(list);
    const shown = Object.fromEntries(Object.entries(is).map(([k, s]) => [k, { state: s.state, profiles: s.profiles, ...s.refused }]));
    assert.deepEqual(shown, {
      '/api/v1/ingest ci shop': { state: 'in part', profiles: 1, 'invalid input': 1 },
      '/ingest ci cart': { state: 'in part', profiles: 1, 'invalid input': 1 },
      '/ingest ci -': { state: 'refused', profiles: 0, 'invalid input': 1, 'limit exceeded': 1 },
      '/ingest - -': { state: 'refused', profiles: 0, unauthorized: 2 },
      '/ingest viewer -': { state: 'refused', profiles: 0, forbidden: 1 },
      [`${PUSH} ci -`]: { state: 'refused', profiles: 0, 'invalid input': 1 },
      '/v1/profiles ci -': { state: 'refused', profiles: 0, 'not found': 1 },
      '/v1development/profiles ci -': { state: 'refused', profiles: 0, unsupported: 1 },
      [`${EXPORT} - -`]: { state: 'refused', profiles: 0, unauthorized: 1 },
      [`${EXPORT} ci -`]: { state: 'refused', profiles: 0, 'limit exceeded': 1 },
      [`${EXPORT} ci unknown_service`]: { state: 'sending', profiles: 1 },
      '/a.B/C - -': { state: 'refused', profiles: 0, unsupported: 1 },
    });
    const shop = is['/api/v1/ingest ci shop'];
    assert.deepEqual([shop.address, shop.client, shop.types, shop.bytes], ['127.0.0.1', 'sdk/1.0', ['process_cpu'], body.length]);
    assert.ok(shop.samples > 0 && shop.firstSeen >= began && shop.lastStored >= began);
    assert.match(shop.lastError.message, /interval/);
    const example = sendersAt(Date.now() / 1000).senders.find((s) => s.state === 'in part'); // as the page's tests have it
    for (const key of Object.keys(example).filter((k) => k !== 'intervalSeconds')) assert.ok(key in shop, key);
    assert.deepEqual(Object.keys(shop.lastError), Object.keys(example.lastError));
    assert.equal(is[`${EXPORT} ci unknown_service`].client, 'otlp/2');
    assert.equal(is['/ingest viewer -'].lastError.message, 'user "viewer" lacks the role ingest; it has read');
    assert.match(is['/v1/profiles ci -'].lastError.message, /^no profiles accepted at "\/v1\/profiles"; send to /);
  };
  check(await senders(server));
  const text = (await request(`${server.url}/metrics`, { headers: as('root') })).body.toString();
  assert.match(text, /^epimetheus_ingest_refused_profiles_total\{reason="unauthorized"\} 3$/m);
  assert.match(text, /^epimetheus_ingest_senders 12$/m);
  for (const user of ['ci', 'viewer']) { // the list needs the role read
    const res = await request(`${server.url}/api/v1/senders`, { headers: as(user) });
    assert.equal(res.status, user === 'ci' ? 403 : 200);
  }

  await server.stop('SIGTERM');
  const again = await startServer(t, options);
  check(await senders(again));
  assert.equal((await post(again, now('process_cpu', 'shop'))).status, 200);
  assert.equal(byName(await senders(again))['/api/v1/ingest ci shop'].profiles, 2);
});

test('a file of senders that is no list begins anew', async (t) => {
  const dir = scratch(t), options = { dir, config: 'scrape_configs: []\n', args: ['--web.enable-ingest'] };
  const server = await startServer(t, options);
  assert.equal((await post(server, '/ingest?name=a&format=pprof', { headers: {} })).status, 200);
  await server.stop('SIGTERM');
  writeFileSync(join(dir, 'data', 'senders.json'), '{"senders":[');
  const again = await startServer(t, options);
  assert.match(again.err, /level=warn component=receive msg="the list of senders begins anew" path=\S*senders\.json err="senders: line 1: /);
  assert.deepEqual(await senders(again, {}), []);
  assert.equal((await post(again, '/ingest?name=a&format=pprof', { headers: {} })).status, 200);
  assert.equal((await senders(again, {})).length, 1);
});
