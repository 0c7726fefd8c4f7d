// Targets that speak only HTTP/2: Go's and Node's servers, with TLS and without.
import test from 'node:test';
import assert from 'node:assert/strict';
import http2 from 'node:http2';
import { certificates } from './certificates.mjs';
import { finish, join, oneSampleProfile, query, request, root, scratch, start, startServer, targets, until } from './lib.mjs';

const heapOnly = '{process_cpu: {enabled: false}, block: {enabled: false}, mutex: {enabled: false}, goroutine: {enabled: false}, goroutineleak: {enabled: false}}';

/** Node 20 sends an alert to a client that does not offer h2; Node 18 closes the connection without a word. */
const NO_HTTP1 = ['tlsv1 alert no application protocol: the target speaks only HTTP/2, remove "enable_http2: false"', 'connection closed'];

/** A server of Node. Answers a profile to GET, and what it got to others. */
async function listen(t, server) {
  const seen = { requests: [], sessions: 0 };
  const sessions = new Set();
  server.on('session', (session) => {
    seen.sessions++;
    sessions.add(session);
  });
  server.on('stream', (stream, headers) => {
    seen.requests.push(headers);
    stream.on('error', () => {});
    stream.respond({ ':status': 200, 'content-type': 'application/octet-stream' });
    stream.resume().on('end', () => stream.end(oneSampleProfile(10)));
  });
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  t.after(() => { server.close(); sessions.forEach((s) => s.destroy()); });
  return { ...server.address(), seen };
}

test('targets that speak only HTTP/2', async (t) => {
  const dir = scratch(t);
  const file = certificates(dir);
  const safe = await listen(t, http2.createSecureServer({ cert: file('server.pem'), key: file('server.key') }));
  const plain = await listen(t, http2.createServer());
  const program = join(dir, 'http2');
  const built = await finish(t, 'go', ['build', '-o', program, '.'], 120, { cwd: join(root, 'tests/e2e/http2') });
  assert.equal(built.code, 0, built.err);
  const go = start(t, program, [join(dir, 'server.pem'), join(dir, 'server.key')]);
  const address = await until('an address', 20, () => go.out.trim());
  const job = (name, scheme, at, rest = '', profiles = heapOnly) => `
  - job_name: ${name}
    scheme: ${scheme}
    ${scheme === 'https' ? 'tls_config: {ca_file: ca.pem}' : ''}
    ${rest}
    profiling_config: {pprof_config: ${profiles}}
    static_configs: [{targets: ["${at}"]}]`;
  const server = await startServer(t, { dir, args: ['--web.enable-admin-api'], config: `
global: {scrape_interval: 2s, scrape_timeout: 2s}
scrape_configs:
${job('node', 'https', `127.0.0.1:${safe.port}`, 'basic_auth: {username: u, password: p}')}
${job('go', 'https', address, '', '{process_cpu: {seconds: 1}}')}
${job('plain', 'http', `127.0.0.1:${plain.port}`)}
${job('off', 'https', `127.0.0.1:${safe.port}`, 'enable_http2: false')}
` });
  // Any scrape of a busy machine may be out of time: what is shown meanwhile is asked for anew.
  await until('scrapes of all', 60, async () => {
    const all = await targets(server);
    assert.ok(all.length === 8 && all.every((x) => x.scrapes >= 2), JSON.stringify(all));
    const errors = (pool) => [...new Set(all.filter((x) => x.scrapePool === pool).map((x) => x.lastError))];
    assert.deepEqual(errors('node'), ['']);
    assert.deepEqual(errors('go'), ['']);
    assert.deepEqual(errors('plain'), ['malformed HTTP response: the server speaks HTTP/2: set "scheme: https" if it has TLS, else let it serve HTTP/1.1 too']);
    const off = errors('off').map((text) => text.replace(`tls 127.0.0.1:${safe.port}: `, ''));
    assert.ok(off.length === 1 && NO_HTTP1.includes(off[0]), JSON.stringify(off));
    return true;
  });
  await until('its work', 60, async () => (await query(server, 'top(20, cpu{job="go"})')).result[0]?.rows?.some((r) => r.function === 'main.work')
    || JSON.stringify((await query(server, 'flat(cpu{job="go"})')).result).includes('main.work'));
  assert.match(go.err, /^HTTP\/2\.0 \/debug\/pprof\/profile \d+$/m);
  assert.doesNotMatch(go.err, /HTTP\/1/);

  // The head is as in HTTP/1.1, and a connection serves again.
  const [head] = safe.seen.requests;
  assert.deepEqual([head[':method'], head[':scheme'], head[':authority'], head[':path'], head['accept-encoding'], head.authorization],
    ['GET', 'https', `127.0.0.1:${safe.port}`, '/debug/pprof/allocs', 'gzip', `Basic ${Buffer.from('u:p').toString('base64')}`]);
  assert.ok(safe.seen.sessions < safe.seen.requests.length);

  await until('a profile now', 30, async () => {
    const order = await request(`${server.url}/api/v1/targets/profile?${new URLSearchParams({ 'match[]': 'memory{job="node"}' })}`, { method: 'POST' });
    assert.equal(order.status, 200, order.body.toString());
    return true;
  });
});
