// Users and their roles with the real server: passwords, tokens, a proxy's header, matchers, the audit log, a changed file.
import test from 'node:test';
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import zlib from 'node:zlib';
import { call, connect, grpcPort } from './otlp_requests.mjs';
import { epitool, finish, join, request, root, scratch, startDemo, startServer, until, writeFileSync } from './lib.mjs';

// bcrypt of "secret", cost 4, as `htpasswd -nbB -C 4` writes it.
const secretHash = '$2b$04$dmpZqExj/u8TGBoVsL10Z.nT5488xB4GECFwppKfqrg0hArqnCz/K';
const basic = (user) => ({ Authorization: `Basic ${Buffer.from(`${user}:secret`).toString('base64')}` });
const bearer = (token) => ({ Authorization: `Bearer ${token}` });
const ciToken = 'a-token-for-the-ci-jobs';

const webConfig = (more = '') => `
basic_auth_users: {root: "${secretHash}", shop: "${secretHash}", grafana: "${secretHash}"}
users:
  - {name: root, roles: [admin]}
  - {name: shop, roles: [read], matchers: '{namespace="shop"}'}
  - {name: grafana, roles: [read]}
  - {name: ci, token_file: ci.token, roles: [ingest]}
${more}`;

const proxied = `
trusted_proxy:
  addresses: [127.0.0.2]
  user_header: X-Forwarded-User
  groups_header: X-Forwarded-Groups
  groups:
    - {name: ops, roles: [admin]}
    - {name: bank, roles: [read], matchers: '{namespace="bank"}'}
`;

// A line of the log as an object; values in quotes lose them.
function fields(line) {
  const out = {};
  for (const [, key, quoted, bare] of line.matchAll(/(\w+)=(?:"((?:[^"\\]|\\.)*)"|(\S*))/g)) out[key] = quoted ?? bare;
  return out;
}
const audit = (server) => server.err.split('\n').filter((l) => / component=audit /.test(l)).map(fields);
// Until the log has been looked at, all refusals are so few that each has a line.
test('roles, matchers and the audit log', async (t) => {
  const dir = scratch(t);
  writeFileSync(join(dir, 'ci.token'), `${ciToken}\n`);
  writeFileSync(join(dir, 'web.yml'), webConfig(proxied));
  const check = await finish(t, epitool, ['check', 'web-config', join(dir, 'web.yml')]);
  assert.equal(check.code, 0, check.err);
  const demo = await startDemo(t, 'v1', 'none');
  const server = await startServer(t, { dir, config: 'scrape_configs: []\n', args: ['--web.config.file', join(dir, 'web.yml'),
    '--web.enable-ingest', '--web.enable-admin-api', '--web.enable-lifecycle', '--web.otlp-grpc-listen-address=127.0.0.1:0'] });
  const ask = (path, headers = {}, options = {}) => request(server.url + path, { headers, ...options });
  const heap = (await until('a heap profile', 20, () => request(`http://${demo.address}/debug/pprof/allocs`))).body;
  const push = (namespace, headers) => ask(`/api/v1/ingest?name=memory&job=api&namespace=${namespace}`, headers,
    { method: 'POST', body: heap });

  await t.test('who may push', async () => {
    for (const namespace of ['shop', 'bank']) assert.equal((await push(namespace, bearer(ciToken))).status, 200);
    const refused = await push('shop', basic('grafana'));
    assert.equal(refused.status, 403);
    assert.equal(JSON.parse(refused.body).error, 'user "grafana" lacks the role ingest; it has read');
    assert.equal((await push('shop', bearer(`${ciToken}x`))).status, 401);
  });

  const namespaces = async (headers, options) => {
    const res = await ask('/api/v1/label/namespace/values', headers, options);
    return res.status === 200 ? JSON.parse(res.body).data : res.status;
  };
  await t.test('who reads what', async () => {
    assert.deepEqual(await namespaces(basic('root')), ['bank', 'shop']);
    assert.deepEqual(await namespaces(basic('grafana')), ['bank', 'shop']);
    assert.deepEqual(await namespaces(basic('shop')), ['shop']);
    assert.equal(await namespaces(bearer(ciToken)), 403);
    assert.equal(await namespaces({}), 401);
    const query = '/api/v1/query?format=pprof&query=memory:inuse_space';
    const all = zlib.gunzipSync((await ask(query, basic('root'))).body).toString('latin1');
    const own = zlib.gunzipSync((await ask(query, basic('shop'))).body).toString('latin1');
    assert.ok(all.includes('bank') && all.includes('shop') && own.length && !own.includes('bank'));
    assert.equal((await ask('/api/v1/targets', basic('shop'))).status, 403);
    assert.equal((await ask('/', basic('shop'))).status, 200);
  });

  await t.test('a proxy says who it is, from its address only', async () => {
    const bob = { 'X-Forwarded-User': 'bob', 'X-Forwarded-Groups': 'bank,others' };
    assert.deepEqual(await namespaces(bob, { localAddress: '127.0.0.2' }), ['bank']);
    assert.equal(await namespaces(bob), 401);
    assert.equal(await namespaces({ 'X-Forwarded-User': 'root' }, { localAddress: '127.0.0.2' }), 403);
  });

  await t.test('admins alone administer', async () => {
    assert.equal((await ask('/-/quit', basic('grafana'), { method: 'POST' })).status, 403);
    assert.equal((await ask('/-/reload', basic('root'), { method: 'POST' })).status, 200);
    const ops = { 'X-Forwarded-User': 'alice', 'X-Forwarded-Groups': 'ops' };
    const deleted = await ask('/api/v1/admin/tsdb/delete_series?match[]={namespace="shop"}', ops,
      { method: 'POST', localAddress: '127.0.0.2' });
    assert.equal(deleted.status, 204, deleted.body.toString());
    assert.deepEqual(await namespaces(basic('root')), ['bank']);
  });

  await t.test('gRPC asks for the same', async (t) => {
    const session = connect(t, `http://127.0.0.1:${grpcPort(server)}`);
    const refused = async (headers) => {
      const { status, message } = await call(session, Buffer.alloc(0), { plain: true, headers });
      return [status, message];
    };
    const as = (h) => ({ authorization: h.Authorization });
    assert.deepEqual(await refused({}), [16, 'Unauthorized']);
    assert.deepEqual(await refused(as(basic('shop'))), [7,
      'Forbidden: user "shop" lacks the role ingest; it has read, and matchers that limit what it reads']);
    assert.equal((await refused(as(bearer(ciToken))))[0], 0);
    const health = await call(session, Buffer.alloc(0), { plain: true, headers: as(basic('shop')), path: '/grpc.health.v1.Health/Check' });
    assert.equal(health.status, 0);
  });

  await t.test('the log has them all', () => {
    const lines = audit(server);
    const of = (want) => lines.filter((l) => Object.entries(want).every(([k, v]) => l[k] === v));
    assert.equal(of({ level: 'warn', msg: 'request refused', user: 'grafana', sign_in: 'password', method: 'POST',
      path: '/api/v1/ingest', status: '403', needs: 'ingest' }).length, 1, server.err);
    assert.equal(of({ path: '/api/v1/ingest', status: '401', reason: "unknown token" }).length, 1, server.err);
    assert.equal(of({ status: '401', reason: "proxy header from an untrusted address" }).length, 1, server.err);
    assert.equal(of({ level: 'info', msg: 'admin request', user: 'root', path: '/-/reload', status: '200' }).length, 1, server.err);
    assert.equal(of({ msg: 'admin request', user: 'alice', sign_in: 'proxy', status: '204', params: 'match[]={namespace=\\"shop\\"}' })
      .length, 1, server.err);
    const grpc = '/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export';
    assert.equal(of({ path: grpc, status: '403', user: 'shop', needs: 'ingest' }).length, 1, server.err);
    assert.equal(of({ msg: 'request refused' }).length, 10, server.err);
    assert.ok(lines.every((l) => /^127\.0\.0\.\d:\d+$/.test(l.address)), server.err);
    assert.doesNotMatch(server.err, new RegExp(`secret|${ciToken}`));
  });

  await t.test('refusals that have no line of their own are counted', async () => {
    const metric = async (line) => {
      const text = (await ask('/metrics', basic('root'))).body.toString();
      return Number(text.split('\n').find((l) => l.startsWith(`${line} `)).slice(line.length));
    };
    await until('more refusals at once than have lines', 60, async () => {
      const all = await Promise.all(Array.from({ length: 30 }, (_, i) => ask(`/api/v1/labels?n=${i}`)));
      for (const { status } of all) assert.equal(status, 401);
      return await metric('epimetheus_audit_hidden_total') > 0;
    });
    const refused = await metric('epimetheus_audit_events_total{kind="refused"}');
    await until('each is in a line or in a count', 30, () => {
      const lines = audit(server);
      const shown = lines.filter((l) => l.msg === 'request refused').length;
      return lines.reduce((n, l) => n + (l.msg === 'more requests refused' ? Number(l.requests) : 0), shown) === refused;
    });
    assert.ok(audit(server).some((l) => l.msg === 'more requests refused'));
  });

  await t.test('a changed file counts without a restart', async () => {
    writeFileSync(join(dir, 'web.yml'), webConfig('  - {name: dev, token_file: ci.token, roles: [reader]}\n'));
    await until('the wrong file is told', 20, async () => (await namespaces(basic('root')), /web configuration is wrong/.test(server.err)));
    assert.match(server.err, /web\.yml:8:\d+: unknown role/);
    assert.deepEqual(await namespaces(basic('shop')), []);
    writeFileSync(join(dir, 'web.yml'), webConfig().replace('namespace="shop"', 'namespace=~".*k"'));
    await until('the new matchers count', 20, async () => (await namespaces(basic('shop'))).length === 1);
    assert.deepEqual(await namespaces(basic('shop')), ['bank']);
    writeFileSync(join(dir, 'ci.token'), 'another-token-of-ci-jobs\n');
    await until('the new token counts', 20, async () => (await push('shop', bearer('another-token-of-ci-jobs'))).status !== 401);
    assert.equal((await push('shop', bearer(ciToken))).status, 401);
    assert.equal(await namespaces({ 'X-Forwarded-User': 'bob', 'X-Forwarded-Groups': 'bank' }, { localAddress: '127.0.0.2' }), 401);
  });
});

test('the example in examples/ is one that the server takes', async (t) => {
  const dir = scratch(t);
  const text = readFileSync(join(root, 'examples/web.yml'), 'utf8');
  writeFileSync(join(dir, 'ci.token'), 'a-token-for-the-example\n');
  writeFileSync(join(dir, 'web.yml'), text);
  const check = await finish(t, epitool, ['check', 'web-config', join(dir, 'web.yml')]);
  assert.equal(check.code, 0, check.err);
  const server = await startServer(t, { dir, config: 'scrape_configs: []\n', args: ['--web.config.file', join(dir, 'web.yml')] });
  for (const path of ['/-/healthy', '/-/ready']) assert.equal((await request(server.url + path)).status, 200, path);
});
