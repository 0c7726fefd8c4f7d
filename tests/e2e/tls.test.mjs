// TLS, client certificates and users on every path; and the server's profile of itself under that load.
import test from 'node:test';
import assert from 'node:assert/strict';
import { Agent } from 'node:https';
import zlib from 'node:zlib';
import { certificates } from './certificates.mjs';
import { execFileSync, finish, epitool, join, request, scratch, startDemo, startServer, targets, until, writeFileSync } from './lib.mjs';

// bcrypt of "secret", cost 4, as `htpasswd -nbB -C 4` writes it.
const secretHash = '$2b$04$dmpZqExj/u8TGBoVsL10Z.nT5488xB4GECFwppKfqrg0hArqnCz/K';
const basic = (user, password) => ({ Authorization: `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}` });
const open = ['/-/healthy', '/-/ready']; // to whoever asks without credentials
const paths = ['/', ...open, '/metrics', '/api/v1/query?query=1', '/api/v1/targets', '/debug/pprof/profile?seconds=1', '/nowhere'];

test('users are asked for on every path', async (t) => {
  const dir = scratch(t);
  writeFileSync(join(dir, 'web.yml'), `basic_auth_users: {alice: "${secretHash}"}\n`);
  const server = await startServer(t, { dir, config: 'scrape_configs: []\n', args: ['--web.config.file', join(dir, 'web.yml')] });
  for (const path of paths) {
    const none = await request(server.url + path);
    assert.equal(none.status, open.includes(path) ? 200 : 401, path);
    if (none.status === 401) assert.match(none.headers['www-authenticate'], /^Basic/);
    assert.equal((await request(server.url + path, { headers: basic('alice', 'wrong') })).status, 401, path);
    assert.equal((await request(server.url + path, { headers: basic('bob', 'secret') })).status, 401, path);
    assert.notEqual((await request(server.url + path, { headers: basic('alice', 'secret') })).status, 401, path);
  }
});

test('TLS with client certificates, a self-scrape through them, and a profile under load', async (t) => {
  const dir = scratch(t);
  const file = certificates(dir);
  writeFileSync(join(dir, 'web.yml'), `
tls_server_config:
  cert_file: server.pem
  key_file: server.key
  client_auth_type: RequireAndVerifyClientCert
  client_ca_file: ca.pem
basic_auth_users: {alice: "${secretHash}"}
`);
  const demo = await startDemo(t, 'v1', 'none', 50);
  const config = (port) => `
global: {scrape_interval: 3s}
scrape_configs:
  - job_name: self
    scheme: https
    basic_auth: {username: alice, password: secret}
    tls_config: {ca_file: ca.pem, cert_file: client.pem, key_file: client.key, server_name: profiles.example}
    profiling_config: {pprof_config: {memory: {enabled: false}, block: {enabled: false}, mutex: {enabled: false}, goroutine: {enabled: false}, goroutineleak: {enabled: false}}}
    static_configs: [{targets: ["127.0.0.1:${port}"]}]
  - job_name: wrong-name
    scheme: https
    basic_auth: {username: alice, password: secret}
    tls_config: {ca_file: ca.pem, cert_file: client.pem, key_file: client.key, server_name: other.example}
    static_configs: [{targets: ["127.0.0.1:${port}"]}]
  - job_name: no-ca
    scheme: https
    static_configs: [{targets: ["127.0.0.1:${port}"]}]
`;
  const server = await startServer(t, { dir, scheme: 'https', config: 'scrape_configs: []\n',
    args: ['--web.config.file', join(dir, 'web.yml'), '--web.enable-ingest', '--web.enable-lifecycle'] });
  const tls = { ca: file('ca.pem'), cert: file('client.pem'), key: file('client.key'), headers: basic('alice', 'secret') };

  await t.test('no certificate, no answer', async () => {
    for (const path of paths) {
      const bare = await request(server.url + path, { ca: tls.ca, headers: tls.headers }).then((r) => r.status, () => 403);
      assert.equal(bare, 403, path);
      assert.equal((await request(server.url + path, { ...tls, headers: {} })).status, open.includes(path) ? 200 : 401, path);
    }
    assert.equal((await request(`${server.url}/-/healthy`, tls)).status, 200);
    await assert.rejects(request(`http://127.0.0.1:${server.port}/-/healthy`));
    await assert.rejects(request(`${server.url}/-/healthy`, { ...tls, maxVersion: 'TLSv1.1' }));
  });

  await t.test('the scraper speaks TLS, checks names and authorities', async () => {
    writeFileSync(join(dir, 'epimetheus.yml'), config(server.port));
    const reload = await request(`${server.url}/-/reload`, { ...tls, method: 'POST' });
    assert.equal(reload.status, 200, reload.body.toString());
    await until('each is up or has its error', 30, async () => {
      const res = JSON.parse((await request(`${server.url}/api/v1/targets`, tls)).body);
      const of = (pool) => res.data.activeTargets.filter((x) => x.scrapePool === pool);
      assert.deepEqual(of('self').map((x) => [x.health, x.lastError]), [['up', '']]);
      for (const [pool, want] of [['wrong-name', /tls .*(certificate verify failed|hostname mismatch)/i], ['no-ca', /tls .*certificate verify failed/]]) {
        assert.equal(of(pool).length, 5);
        for (const x of of(pool)) assert.match(x.lastError, want, pool);
      }
      return true;
    });
  });

  await t.test('epitool comes in with the same settings', async () => {
    writeFileSync(join(dir, 'client.yml'), `
basic_auth: {username: alice, password: secret}
tls_config: {ca_file: ca.pem, cert_file: client.pem, key_file: client.key}
`);
    const run = await finish(t, epitool, ['query', `--server=${server.url}`, `--http.config.file=${join(dir, 'client.yml')}`, '2 * 3']);
    assert.equal(run.out.trim(), '6', run.err);
  });

  await t.test('its profile names functions below TLS, LevelDB and compression', async () => {
    const heap = (await until('a heap profile', 20, () => request(`http://${demo.address}/debug/pprof/allocs`))).body;
    let stop = false, pushed = 0;
    // Kept connections, so that the load is on storing: 500 series a pusher, until LevelDB flushes and compacts.
    const agent = new Agent({ keepAlive: true });
    const push = async (k) => {
      for (let i = 0; !stop; i++) {
        const res = await request(`${server.url}/api/v1/ingest?name=memory&job=load${k}&n=${i % 500}`, { ...tls, agent, method: 'POST', body: heap });
        if (res.status !== 200) throw new Error(`${res.status} ${res.body}`);
        pushed++;
      }
    };
    const wanted = [
      // Stacks through libraries built without frame pointers reach our own callers.
      [/gnutls|nettle|_gnutls|ecc_|sha|aes/i, /MHD_/],
      [/leveldb::/, /thread_main|StartThread|BackgroundThread/],
      [/libdeflate|pprof_decode|inflate/, /pool_worker/],
    ];
    const load = [0, 1, 2, 3].map(push);
    const file = join(dir, 'self.pb.gz');
    let stacks = [], missing = wanted;
    try {
      // On a crowded machine a capture may see too little CPU time of some part: then one more is taken. The limit only ends a
      // test that has failed.
      for (const began = Date.now(); missing.length && Date.now() - began < 600_000;) {
        const res = await until('a capture', 30, async () => {
          const r = await request(`${server.url}/debug/pprof/profile?seconds=5`, tls);
          return r.status === 200 && r; // another capture may run: the server scrapes itself
        });
        assert.ok(zlib.gunzipSync(res.body).length > 1000);
        writeFileSync(file, res.body);
        const traces = (await finish(t, 'go', ['tool', 'pprof', '-traces', file])).out;
        stacks = stacks.concat(traces.split(/-{11}\+-+/).slice(1));
        missing = wanted.filter((all) => !stacks.some((s) => all.every((r) => r.test(s))));
      }
    } finally {
      stop = true;
      await Promise.all(load);
      agent.destroy();
    }
    assert.ok(pushed > 0);
    assert.deepEqual(missing, [], stacks.join('\n').slice(0, 6000));
    const top = (await finish(t, 'go', ['tool', 'pprof', '-top', '-nodecount=1000', file])).out;
    const unnamed = top.split('\n').filter((l) => /0x[0-9a-f]{6,}|\[epimetheus\]$/.test(l));
    assert.ok(unnamed.length <= 3, unnamed.join('\n'));
  });

  await t.test('a renewed certificate is served without a restart', async () => {
    const before = (await new Promise((done, fail) => {
      import('node:tls').then(({ connect }) => {
        const s = connect({ host: '127.0.0.1', port: server.port, ...tls }, () => { done(s.getPeerCertificate().serialNumber); s.destroy(); });
        s.on('error', fail);
      });
    }));
    execFileSync('openssl', ['x509', '-req', '-in', 'server.csr', '-CA', 'ca.pem', '-CAkey', 'ca.key', '-CAcreateserial', '-days', '2',
      '-extfile', 'server.ext', '-out', 'server.pem'], { cwd: dir, stdio: 'pipe' });
    const { connect } = await import('node:tls');
    await until('the new serial', 15, () => new Promise((done, fail) => {
      const s = connect({ host: '127.0.0.1', port: server.port, ...tls }, () => { done(s.getPeerCertificate().serialNumber !== before); s.destroy(); });
      s.on('error', fail);
    }));
  });
});
