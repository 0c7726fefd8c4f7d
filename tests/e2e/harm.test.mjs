// People who mean harm: bodies that never end, passwords guessed, pages of other sites that send requests.
import test from 'node:test';
import assert from 'node:assert/strict';
import net from 'node:net';
import { join, oneSampleProfile, request, scratch, sleep, startServer, until, writeFileSync } from './lib.mjs';

const CONFIG = 'scrape_configs: []\n';
// Of "secret", at a cost that takes about a tenth of a second.
const HASH = '$2b$10$abcdefghijklmnopqrstuuqflPDzB6gcMhKa1rZqKiun2YGL5sa2u';
const BODY = 16 * 1024 * 1024 - 1;

function basic(user, password) {
  return `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`;
}

/** From 127.0.0.2: a body that is sent but for its end. Resolves once all of it was taken or the server ended it. */
function hold(t, server, path, headers = []) {
  const part = Buffer.alloc(1024 * 1024);
  return new Promise((done) => {
    const socket = net.connect({ port: server.port, host: '127.0.0.1', localAddress: '127.0.0.2' });
    let left = BODY - 1;
    const send = () => {
      while (left > 0) {
        const n = Math.min(left, part.length);
        left -= n;
        if (!socket.write(part.subarray(0, n))) return void socket.once('drain', send);
      }
      done(socket);
    };
    socket.on('error', () => done(socket));
    socket.on('close', () => done(socket));
    socket.on('connect', () => {
      socket.write([`POST ${path} HTTP/1.1`, 'Host: x', `Content-Length: ${BODY}`, ...headers, '', ''].join('\r\n'));
      send();
    });
    t.after(() => socket.destroy());
  });
}

function push(server, n, headers = {}) {
  return request(`${server.url}/api/v1/ingest?name=things&job=a&n=${n}`, { method: 'POST', body: oneSampleProfile(7), headers });
}

async function resident(server) {
  const { readFileSync } = await import('node:fs');
  return Number(readFileSync(`/proc/${server.child.pid}/status`, 'utf8').match(/VmRSS:\s+(\d+)/)[1]) * 1024;
}

test('who may not sign in cannot stop ingest with bodies that never end', async (t) => {
  const dir = scratch(t);
  writeFileSync(join(dir, 'web.yml'), `basic_auth_users: {alice: '${HASH}'}\n`);
  const server = await startServer(t, { dir, config: CONFIG,
    args: ['--web.enable-ingest', `--web.config.file=${join(dir, 'web.yml')}`] });
  const before = await resident(server);
  for (let i = 0; i < 18; i++)
    await hold(t, server, '/api/v1/ingest?name=x', i % 2 ? [`Authorization: ${basic('alice', `wrong${i % 4}`)}`] : []);
  const grown = await resident(server) - before;
  assert.ok(grown < 64e6, `18 bodies of people not known took ${grown} bytes`);
  for (let i = 0; i < 5; i++) {
    const res = await push(server, i, { Authorization: basic('alice', 'secret') });
    assert.equal(res.status, 200, res.body.toString());
  }
});

test('without users, an address has a share of what bodies may hold', async (t) => {
  const dir = scratch(t);
  const server = await startServer(t, { dir, config: CONFIG, args: ['--web.enable-ingest'] });
  for (let i = 0; i < 18; i++) await hold(t, server, '/api/v1/ingest?name=x'); // one by one: 16 fit to the last byte
  for (let i = 0; i < 5; i++) {
    const res = await push(server, i);
    assert.equal(res.status, 200, res.body.toString());
  }
  const metrics = (await request(`${server.url}/metrics`)).body.toString();
  assert.ok(Number(metrics.match(/^epimetheus_http_bodies_refused_total\{limit="address"\} (\d+)/m)?.[1]) >= 14, metrics);
});

test('guessing passwords does not keep out who signs in for the first time', async (t) => {
  const dir = scratch(t);
  writeFileSync(join(dir, 'web.yml'), `basic_auth_users:\n${
    Array.from({ length: 8 }, (_, i) => `  user${i}: '${HASH}'\n`).join('')}`);
  const server = await startServer(t, { dir, config: CONFIG, args: [`--web.config.file=${join(dir, 'web.yml')}`] });
  const statuses = new Map();
  let stop = false;
  const flood = Array.from({ length: 40 }, async (_, k) => {
    for (let i = 0; !stop; i++) {
      const res = await request(`${server.url}/api/v1/labels`, { localAddress: '127.0.0.2',
        headers: { Authorization: basic(`user${k % 10}`, `guess ${k} ${i}`) } });
      statuses.set(res.status, (statuses.get(res.status) || 0) + 1);
      if (res.status === 429) await sleep(5);
    }
  });
  t.after(() => { stop = true; });
  await until('the flood is refused', 20, () => statuses.get(429) > 40 || statuses.get(503) > 40);
  for (let i = 0; i < 8; i++) {
    const res = await request(`${server.url}/api/v1/labels`, { headers: { Authorization: basic(`user${i}`, 'secret') } });
    assert.equal(res.status, 200, res.body.toString());
  }
  stop = true;
  await Promise.all(flood);
  assert.deepEqual([...statuses.keys()].filter((s) => s !== 401 && s !== 429), []);
});

test('pages of other sites neither change nor read anything, and foreign names are refused where ours are listed', async (t) => {
  const dir = scratch(t);
  const server = await startServer(t, { dir, config: CONFIG,
    args: ['--web.enable-ingest', '--web.enable-lifecycle', '--web.allowed-host=epi.example', '--web.allowed-host=other:1'] });
  const evil = { Origin: 'https://evil.example' };
  for (const path of ['/api/v1/ingest?name=things&job=a', '/-/reload', '/-/quit']) {
    const res = await request(server.url + path, { method: 'POST', body: oneSampleProfile(7), headers: evil });
    assert.equal(res.status, 403, path);
    assert.match(res.body.toString(), /another site's page .*evil\.example/);
  }
  assert.equal((await request(`${server.url}/-/reload`, { method: 'POST', headers: { Origin: server.url } })).status, 200);
  assert.equal((await push(server, 1)).status, 200);
  for (const origin of ['https://evil.example', 'null']) {
    const res = await request(`${server.url}/api/v1/labels`, { headers: { Origin: origin } });
    assert.equal(res.status, 200);
    assert.equal(res.headers['access-control-allow-origin'], undefined);
  }
  for (const [host, path, status] of [['evil.example', '/api/v1/labels', 421], ['evil.example', '/', 421],
    ['evil.example', '/-/healthy', 200], ['epi.example:80', '/api/v1/labels', 200], ['other:1', '/', 200], ['other', '/', 421]]) {
    const res = await request(server.url + path, { headers: { Host: host } });
    assert.equal(res.status, status, `${host} ${path}`);
    if (status === 421) assert.match(res.body.toString(), /--web\.allowed-host/);
  }
  assert.equal((await request(`${server.url}/api/v1/labels`)).status, 200);
});
