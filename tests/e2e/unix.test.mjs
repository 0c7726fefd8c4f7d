// Targets on Unix sockets: plain, with TLS and a password, and what is shown of them.
import test from 'node:test';
import assert from 'node:assert/strict';
import http from 'node:http';
import https from 'node:https';
import { chmodSync, copyFileSync } from 'node:fs';
import { certificates } from './certificates.mjs';
import { api, epimetheus, join, oneSampleProfile, query, request, scratch, startServer, targets, until, writeFileSync } from './lib.mjs';

const heapOnly = '{process_cpu: {enabled: false}, block: {enabled: false}, mutex: {enabled: false}, goroutine: {enabled: false}, goroutineleak: {enabled: false}}';

/** A target on a socket. `seen` gets method, URL, Host and credentials of each request. */
async function listen(t, path, value, tls) {
  const seen = [];
  const server = (tls ? https : http).createServer(tls ?? {}, (req, res) => {
    seen.push([req.method, req.url, req.headers.host, req.headers.authorization]);
    req.resume().on('end', () => res.end(oneSampleProfile(value)));
  });
  await new Promise((done) => server.listen(path, done));
  t.after(() => { server.close(); server.closeAllConnections(); });
  return seen;
}

test('targets on Unix sockets', async (t) => {
  const dir = scratch(t);
  const file = certificates(dir);
  const at = (name) => join(dir, name);
  const seen = await listen(t, at('a.sock'), 10);
  await listen(t, at('b.sock'), 20);
  const safe = await listen(t, at('safe.sock'), 30, { cert: file('server.pem'), key: file('server.key') });
  writeFileSync(at('file'), '');
  const job = (name, rest) => `
  - job_name: ${name}
    profiling_config: {pprof_config: ${heapOnly}}
    ${rest}`;
  const server = await startServer(t, { dir, args: ['--web.enable-admin-api'], config: `
global: {scrape_interval: 1s}
scrape_configs:${job('two', `static_configs:
      - {targets: [app], labels: {__unix_socket__: "${at('a.sock')}", n: a}}
      - {targets: [app], labels: {__unix_socket__: "${at('b.sock')}", n: b}}`)}
${job('rule', `static_configs: [{targets: ["shop:80"]}]
    relabel_configs: [{target_label: __scrape_unix_socket__, replacement: "${at('a.sock')}"}]`)}
${job('safe', `scheme: https
    basic_auth: {username: u, password: p}
    tls_config: {ca_file: ca.pem}
    static_configs: [{targets: [profiles.example], labels: {__unix_socket__: "${at('safe.sock')}"}}]`)}
${job('wrong', `static_configs:
      - {targets: [gone], labels: {__unix_socket__: "${at('gone.sock')}"}}
      - {targets: [file], labels: {__unix_socket__: "${at('file')}"}}`)}
` });
  const url = (host, scheme = 'http') => `${scheme}://${host}/debug/pprof/allocs`;
  const up = (u, path) => ['up', u, u, at(path), ''];
  const down = (u, path, why) => ['down', u, u, at(path), `connect unix://${at(path)}: ${why}`];
  // Any scrape of a busy machine may be out of time: what is shown meanwhile is asked for anew.
  await until('a scrape of each', 30, async () => {
    const shown = Object.fromEntries((await targets(server)).map((x) => [`${x.scrapePool} ${x.labels.n ?? x.labels.instance}`,
      [x.health, x.scrapeUrl, x.globalUrl, x.scrapeUnixSocket, x.lastError]]));
    assert.deepEqual(shown, {
      'two a': up(url('app'), 'a.sock'),
      'two b': up(url('app'), 'b.sock'),
      'rule shop:80': up(url('shop:80'), 'a.sock'),
      'safe profiles.example': up(url('profiles.example', 'https'), 'safe.sock'),
      'wrong gone': down(url('gone'), 'gone.sock', 'No such file or directory'),
      'wrong file': down(url('file'), 'file', 'not a socket'),
    });
    return true;
  });
  assert.deepEqual([...new Set(seen.map((x) => x.slice(0, 3).join(' ')))].sort(),
    ['GET /debug/pprof/allocs app', 'GET /debug/pprof/allocs shop:80']);
  assert.deepEqual(safe[0], ['GET', '/debug/pprof/allocs', 'profiles.example', `Basic ${Buffer.from('u:p').toString('base64')}`]);

  // Each socket's profile is its own, though the addresses are equal.
  const counts = (await query(server, 'total(memory{job="two"})')).result;
  assert.deepEqual(counts.map((x) => [x.metric.n, Number(x.value[1])]).sort(), [['a', 10], ['b', 20]]);

  const order = async (params) => {
    const res = await request(`${server.url}/api/v1/targets/profile?${new URLSearchParams(params)}`, { method: 'POST' });
    return [res.status, JSON.parse(res.body)];
  };
  const which = { scrapePool: 'two', scrapeUrl: url('app') };
  assert.deepEqual((await order(which))[1].error, '2 targets match: name one');
  await until('a profile now', 30, async () => {
    const [status, answer] = await order({ ...which, scrapeUnixSocket: at('b.sock') });
    assert.equal(status, 200, JSON.stringify(answer));
    assert.equal(answer.data.labels.n, 'b');
    return true;
  });

  const { profiles } = await api(server, 'targets/relabel_steps', { scrapePool: 'two', labels: JSON.stringify({ __address__: 'x', __unix_socket__: '/run/x' }) });
  const memory = profiles.find((p) => p.profile === 'memory');
  assert.deepEqual([memory.scrapeUrl, memory.scrapeUnixSocket], [url('x'), '/run/x']);
});

test('names are asked for through the socket', async (t) => {
  const dir = scratch(t), path = join(dir, 'cpp.sock');
  const heap = `heap profile: 1: 256 [1: 256] @ heapprofile
     1:      256 [     1:      256] @ 0x00400a10

MAPPED_LIBRARIES:
00400000-00401000 r-xp 00000000 fe:00 123 /bin/x
`;
  const asked = [];
  const target = http.createServer((req, res) => {
    asked.push(`${req.method} ${req.url}`);
    req.resume().on('end', () => res.end(req.method === 'POST' ? '0x0000000000400a0f\tmain_work\n0x0000000000400a10\tmain_work\n' : heap));
  });
  await new Promise((done) => target.listen(path, done));
  t.after(() => { target.close(); target.closeAllConnections(); });
  const server = await startServer(t, { dir, config: `
global: {scrape_interval: 1s}
scrape_configs:
  - job_name: x
    profiling_config: {pprof_config: {process_cpu: {enabled: false}, memory: {path: /pprof/heap}, block: {enabled: false}, mutex: {enabled: false}, goroutine: {enabled: false}, goroutineleak: {enabled: false}}}
    static_configs: [{targets: [cpp], labels: {__unix_socket__: "${path}"}}]
` });
  await until('a name', 30, async () => (await query(server, 'flat(memory)')).result[0]?.metric.function === 'main_work');
  assert.deepEqual([...new Set(asked)].sort(), ['GET /pprof/heap', 'POST /pprof/symbol']);
});

test('a socket that the server may not use', { skip: process.getuid() !== 0 && 'only root can start a server as somebody else' }, async (t) => {
  const dir = scratch(t), path = join(dir, 'closed.sock'), program = join(dir, 'epimetheus');
  await listen(t, path, 1);
  chmodSync(path, 0o600);
  chmodSync(dir, 0o777);
  copyFileSync(epimetheus, program);
  const server = await startServer(t, { dir, program, by: ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups'], config: `
global: {scrape_interval: 1s}
scrape_configs:
  - job_name: x
    profiling_config: {pprof_config: ${heapOnly}}
    static_configs: [{targets: [app], labels: {__unix_socket__: "${path}"}}]
` });
  await until('the reason', 30, async () => (await targets(server))[0]?.lastError === `connect unix://${path}: Permission denied`);
});
