// The way to targets: proxies (plain, CONNECT, from the environment) and tokens of OAuth 2.0, before a real Go program.
import test from 'node:test';
import assert from 'node:assert/strict';
import http from 'node:http';
import https from 'node:https';
import net from 'node:net';
import { certificates } from './certificates.mjs';
import { api, join, request, scratch, startDemo, startServer, targets, until, writeFileSync } from './lib.mjs';

const SECRET = 'S3CRET';

async function listen(t, server) {
  server.keepAliveTimeout = 60000;
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  t.after(() => { server.closeAllConnections(); server.close(); });
  return server.address().port;
}

/** Answers as another server did. Whether that one keeps its connection is between it and us: Node 18 asks it not to. */
function relay(answer, res) {
  const { connection: _, ...headers } = answer.headers;
  res.writeHead(answer.statusCode, headers);
  answer.pipe(res);
}

/** A proxy. Names that end in .test exist behind it alone: `names` says where they are. */
async function openProxy(t, names) {
  const seen = [];
  const allowed = (req) => req.headers['proxy-authorization'] === `Basic ${Buffer.from('me:pw').toString('base64')}`;
  const place = (host) => names[host.split(':')[0]] || host;
  const server = http.createServer((req, res) => {
    seen.push({ method: req.method, url: req.url, headers: req.headers });
    if (!allowed(req)) return res.writeHead(407).end();
    const url = new URL(req.url), [host, port] = place(url.host).split(':');
    const { 'proxy-authorization': _, ...headers } = req.headers;
    req.pipe(http.request({ host, port, path: url.pathname + url.search, method: req.method, headers }, (answer) => relay(answer, res)).on('error', () => res.destroy()));
  });
  server.on('connect', (req, socket) => {
    seen.push({ method: 'CONNECT', url: req.url, headers: req.headers });
    socket.on('error', () => {});
    if (!allowed(req)) return socket.end('HTTP/1.1 407 Proxy Authentication Required\r\n\r\n');
    const [host, port] = place(req.url).split(':');
    const far = net.connect(port, host, () => {
      socket.write('HTTP/1.1 200 Connection established\r\n\r\n');
      socket.pipe(far).pipe(socket);
    });
    far.on('error', () => socket.destroy());
    socket.on('close', () => far.destroy());
    t.after(() => { far.destroy(); socket.destroy(); });
  });
  const port = await listen(t, server);
  return { seen, url: `http://me:pw@127.0.0.1:${port}`, bare: `http://127.0.0.1:${port}`, of: (re) => seen.filter((x) => re.test(`${x.method} ${x.url}`)) };
}

/** A token server over TLS. Its tokens are numbers with the scope behind; `valid` tells whether one is taken. */
async function openTokens(t, file) {
  const tokens = { given: [], expires: 3600, broken: false, revoked: 0 };
  const port = await listen(t, https.createServer({ cert: file('server.pem'), key: file('server.key') }, (req, res) => {
    let body = '';
    req.on('data', (d) => (body += d));
    req.on('end', () => {
      const form = new URLSearchParams(body);
      res.setHeader('Content-Type', 'application/json');
      const client = Buffer.from((req.headers.authorization || '').replace('Basic ', ''), 'base64').toString();
      if (tokens.broken || client !== `me:${SECRET}` || form.get('grant_type') !== 'client_credentials' || form.get('audience') !== 'profiles') {
        res.statusCode = 401;
        return res.end(JSON.stringify({ error: 'invalid_client', error_description: `no ${SECRET}` }));
      }
      const token = `${tokens.given.length + 1}.${form.get('scope')}`;
      tokens.given.push(token);
      res.end(JSON.stringify({ access_token: token, token_type: 'bearer', expires_in: tokens.expires }));
    });
  }));
  tokens.url = `https://127.0.0.1:${port}/token`;
  tokens.taken = (header) => tokens.given.slice(tokens.revoked).some((x) => header === `Bearer ${x}`);
  return tokens;
}

/** The demo behind TLS, for those who have a token. `busiest()` is the most requests that came over one connection. */
async function openFront(t, file, tokens, demo) {
  const seen = [], requests = new Map();
  const [host, port] = demo.split(':');
  const own = await listen(t, https.createServer({ cert: file('server.pem'), key: file('server.key') }, (req, res) => {
    seen.push(req.headers.authorization);
    requests.set(req.socket, (requests.get(req.socket) ?? 0) + 1);
    if (!tokens.taken(req.headers.authorization)) return res.writeHead(401).end('who are you?');
    http.get({ host, port, path: req.url }, (answer) => relay(answer, res)).on('error', () => res.destroy());
  }));
  return { seen, address: `127.0.0.1:${own}`, busiest: () => Math.max(0, ...requests.values()) };
}

const memory = 'profiling_config: {pprof_config: {process_cpu: {enabled: false}, block: {enabled: false}, mutex: {enabled: false}, goroutine: {enabled: false}, goroutineleak: {enabled: false}}}';

const pool = async (server, name) => (await targets(server)).filter((x) => x.scrapePool === name);

async function untilUp(server, name) {
  return until(`${name} is up`, 20, async () => {
    const list = await pool(server, name);
    if (list.length && list.every((x) => x.health === 'up')) return list;
    throw new Error(JSON.stringify(list.map((x) => [x.health, x.lastError])));
  });
}

/** Every target of the pool has this error. On a busy machine a scrape may run into its deadline before. */
async function untilError(server, name, want) {
  return until(`${name} fails`, 20, async () => {
    const list = await pool(server, name);
    if (list.length && list.every((x) => x.health === 'down' && want.test(x.lastError))) return list;
    throw new Error(JSON.stringify(list.map((x) => [x.health, x.lastError])));
  });
}

/** Two scrapes of every target of the pool that began after now. */
async function untilScraped(server, name) {
  for (let i = 0; i < 2; i++) {
    const from = Date.now();
    await until(`${name} is scraped again`, 20, async () => (await pool(server, name)).every((x) => Date.parse(x.lastScrape) > from));
  }
}

test('through proxies', async (t) => {
  const dir = scratch(t), file = certificates(dir);
  const demo = await startDemo(t, 'v1', 'none', 10);
  const tokens = { taken: () => true };
  const front = await openFront(t, file, tokens, demo.address);
  const names = { 'demo.test': demo.address, 'profiles.example': front.address };
  const alertmanager = [];
  names['sd.test'] = `127.0.0.1:${await listen(t, http.createServer((req, res) => {
    res.setHeader('Content-Type', 'application/json');
    res.end(JSON.stringify([{ targets: ['demo.test:6060'] }]));
  }))}`;
  names['am.test'] = `127.0.0.1:${await listen(t, http.createServer((req, res) => { alertmanager.push(req.url); req.resume(); res.end('{}'); }))}`;
  const proxy = await openProxy(t, names);
  process.env.HTTP_PROXY = proxy.url; // the server inherits them
  process.env.https_proxy = proxy.url.replace('http://', '');
  process.env.NO_PROXY = 'other.test, front.test';
  t.after(() => { for (const name of ['HTTP_PROXY', 'https_proxy', 'NO_PROXY']) delete process.env[name]; });
  writeFileSync(join(dir, 'rules.yml'), 'groups: [{name: a, rules: [{alert: Always, expr: vector(1)}]}]\n');
  const server = await startServer(t, { dir, config: `
global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: [rules.yml]
alerting:
  alertmanagers: [{proxy_url: '${proxy.url}', static_configs: [{targets: ['am.test']}]}]
scrape_configs:
- {job_name: plain, proxy_url: '${proxy.url}', static_configs: [{targets: ['demo.test:6060', '${demo.address}']}], ${memory}}
- {job_name: past, proxy_url: 'http://127.0.0.1:1', no_proxy: '127.0.0.0/8', static_configs: [{targets: ['${demo.address}']}], ${memory}}
- {job_name: found, proxy_url: '${proxy.url}', http_sd_configs: [{url: 'http://sd.test/list', proxy_url: '${proxy.url}', refresh_interval: 1s}], ${memory}}
- job_name: tunnel
  scheme: https
  proxy_url: '${proxy.url}'
  proxy_connect_header: {X-Tenant: [one, two]}
  tls_config: {ca_file: ca.pem}
  static_configs: [{targets: ['profiles.example:8443']}]
  ${memory}
- {job_name: env, proxy_from_environment: true, static_configs: [{targets: ['demo.test:6061', '${demo.address}']}], ${memory}}
- job_name: env-tunnel
  scheme: https
  proxy_from_environment: true
  tls_config: {ca_file: ca.pem}
  static_configs: [{targets: ['profiles.example:8444']}]
  ${memory}
- {job_name: refused, proxy_url: '${proxy.bare}', static_configs: [{targets: ['demo.test:6062']}], ${memory}}
- {job_name: refused-tunnel, scheme: https, proxy_url: '${proxy.bare}', static_configs: [{targets: ['profiles.example:8445']}], ${memory}}
- {job_name: gone, proxy_url: 'http://127.0.0.1:1', static_configs: [{targets: ['demo.test:6063']}], ${memory}}
` });
  for (const name of ['plain', 'past', 'found', 'tunnel', 'env', 'env-tunnel']) await untilUp(server, name);
  await untilError(server, 'refused', /^server returned HTTP status 407 Proxy Authentication Required$/);
  await untilError(server, 'refused-tunnel', /^proxy 127\.0\.0\.1:\d+: CONNECT to profiles\.example:8445: server returned HTTP status 407 Proxy Authentication Required$/);
  await untilError(server, 'gone', /^proxy connect 127\.0\.0\.1:1: Connection refused$/);
  await until('the alertmanager got alerts', 20, () => alertmanager.includes('/api/v2/alerts'));

  await untilScraped(server, 'tunnel');
  const profile = '/debug/pprof/allocs';
  assert.ok(proxy.of(/^GET http:\/\/demo\.test:6060\/debug/).every((x) => x.url === `http://demo.test:6060${profile}` && x.headers.host === 'demo.test:6060'));
  assert.ok(proxy.of(new RegExp(`^GET http://${demo.address}${profile}$`)).length > 0, 'a loopback address, with proxy_url alone');
  assert.ok(proxy.of(/^GET http:\/\/sd\.test\/list$/).length > 0);
  assert.ok(proxy.of(/^POST http:\/\/am\.test\/api\/v2\/alerts$/).length > 0);
  assert.ok(proxy.of(/^GET http:\/\/demo\.test:6061\//).length > 0, 'from the environment');
  const connects = proxy.of(/^CONNECT profiles\.example:8443$/);
  assert.ok(connects.length > 0 && connects.every((x) => x.headers['x-tenant'] === 'one, two'));
  assert.ok(proxy.of(/^CONNECT profiles\.example:8444$/).every((x) => x.headers['x-tenant'] === undefined));
  await until('a tunnel serves more than one scrape', 20, () => front.busiest() > 1);
});

test('with tokens', async (t) => {
  const dir = scratch(t), file = certificates(dir);
  const demo = await startDemo(t, 'v1', 'none', 10);
  const tokens = await openTokens(t, file);
  const front = await openFront(t, file, tokens, demo.address);
  const second = await openFront(t, file, tokens, demo.address);
  const proxy = await openProxy(t, {});
  writeFileSync(join(dir, 'secret'), `${SECRET}\n`);
  const config = ({ scope = 'read', interval = '1s', more = '' } = {}) => `
global: {scrape_interval: ${interval}}
scrape_configs:
- job_name: front
  scheme: https
  tls_config: {ca_file: ca.pem}
  oauth2:
    client_id: me
    client_secret_file: secret
    scopes: [${scope}, all]
    token_url: ${tokens.url}
    endpoint_params: {audience: profiles}
    tls_config: {ca_file: ca.pem}
    proxy_url: '${proxy.url}'
  static_configs: [{targets: ['${front.address}', '${second.address}']}]
  ${memory}
${more}`;
  const broken = `- job_name: broken
  oauth2: {client_id: you, client_secret: ${SECRET}, token_url: '${tokens.url}?key=${SECRET}', tls_config: {insecure_skip_verify: true}}
  static_configs: [{targets: ['${demo.address}']}]
  ${memory}
`;
  const server = await startServer(t, { dir, config: config({ more: broken }), args: ['--web.enable-lifecycle'] });
  const reload = async (what) => {
    writeFileSync(join(dir, 'epimetheus.yml'), config(what));
    const res = await request(`${server.url}/-/reload`, { method: 'POST' });
    assert.equal(res.status, 200, res.body.toString());
  };

  await t.test('one token serves all targets, through a proxy of its own', async () => {
    await untilUp(server, 'front');
    await untilScraped(server, 'front');
    assert.deepEqual(tokens.given, ['1.read all']);
    assert.ok(front.seen.length > 1 && second.seen.length > 1);
    assert.ok([...front.seen, ...second.seen].every((x) => x === 'Bearer 1.read all'));
    assert.equal(proxy.of(/^CONNECT/).every((x) => tokens.url.includes(x.url)), true);
    assert.ok(proxy.of(/^CONNECT/).length > 0);
  });

  await t.test('a refusal is the error of the target, without a secret', async () => {
    const [target] = await untilError(server, 'broken', /invalid_client$/);
    assert.equal(target.lastError, `oauth2: cannot fetch token from ${tokens.url}?key=xxxxx: server returned HTTP status 401 Unauthorized: invalid_client`);
    const shown = (await api(server, 'status/config')).yaml;
    assert.ok(!shown.includes(SECRET) && !server.err.includes(SECRET));
    assert.match(shown, /client_secret: <secret>/);
  });

  await t.test('a reload keeps the token of equal settings only', async () => {
    await reload({ interval: '2s' });
    await untilScraped(server, 'front');
    assert.deepEqual(tokens.given, ['1.read all']);
    await reload({ scope: 'write' });
    await until('the new token is used', 20, () => front.seen.includes('Bearer 2.write all') && second.seen.includes('Bearer 2.write all'));
    await untilUp(server, 'front');
    assert.deepEqual(tokens.given, ['1.read all', '2.write all']);
  });

  await t.test('a token that is refused is replaced within the scrape', async () => {
    await untilScraped(server, 'front'); // the token is older than a second
    tokens.revoked = 2;
    await until('another one is used', 20, () => front.seen.includes('Bearer 3.write all') && second.seen.includes('Bearer 3.write all'));
    for (const x of await untilUp(server, 'front')) assert.equal(x.lastError, '');
    assert.equal(tokens.given.length, 3);
  });

  await t.test('a token that ends is renewed before', async () => {
    tokens.expires = 3;
    tokens.revoked = 3;
    await until('three more were given', 20, () => tokens.given.length >= 6);
    tokens.expires = 3600;
    const n = tokens.given.length;
    await until('the last short one has ended', 20, () => tokens.given.length > n);
    await untilUp(server, 'front');
  });

  await t.test('a secret that changes in its file, a server that fails, and recovers', async () => {
    writeFileSync(join(dir, 'secret'), 'wrong');
    await untilError(server, 'front', /invalid_client$/);
    tokens.broken = true;
    writeFileSync(join(dir, 'secret'), SECRET);
    await untilUp(server, 'front'); // the former token is still there
    await reload({ scope: 'third' });
    await untilError(server, 'front', /invalid_client$/);
    tokens.broken = false;
    await untilUp(server, 'front');
  });
});
