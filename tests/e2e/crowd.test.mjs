// Thousands of connections that never send a whole request. All timeouts are an hour: who is answered did not wait for one.
import test from 'node:test';
import assert from 'node:assert/strict';
import { certificates } from './certificates.mjs';
import { join, request, root, scratch, start, startServer, until, writeFileSync } from './lib.mjs';

const REQUESTS = 50;
const PATIENT = ['--web.read-timeout=1h', '--web.body-timeout=1h'];

/** Each one that the server ends is opened again at once, so that this server never has room. */
async function crowd(t, server, count, say) {
  const run = start(t, process.execPath, [join(root, 'tests/e2e/silent.mjs'), server.port, count, say]);
  await until(`${count} connections are open`, 60, () => /open/.test(run.out));
  return run;
}

async function askBeside(server, crowds) {
  for (const localAddress of ['127.0.0.1', '127.0.0.2']) { // the second is the address of those that are silent, as behind a proxy
    for (let i = 0; i < REQUESTS; i++) {
      const res = await request(`${server.url}/-/healthy`, { localAddress, rejectUnauthorized: false });
      assert.equal(res.status, 200, res.body.toString());
    }
  }
  for (const run of crowds) assert.equal(run.code, undefined);
  const metrics = (await request(`${server.url}/metrics`, { rejectUnauthorized: false })).body.toString();
  const dropped = Object.fromEntries([...metrics.matchAll(/^epimetheus_http_connections_dropped_total\{reason="(\w+)"\} (\d+)/mg)]
    .map(([, reason, n]) => [reason, Number(n)]));
  assert.ok(dropped.crowded > 1000, metrics);
  assert.equal(dropped.head, undefined);
  await until('the log says it', 20, () =>
    /level=warn component=web msg="connections dropped to make room for others" dropped=\d+ web\.max-connections=512/.test(server.err));
}

test('thousands of connections without a head do not keep out a request', async (t) => {
  const server = await startServer(t, { dir: scratch(t), config: 'scrape_configs: []\n', args: PATIENT });
  await askBeside(server, [await crowd(t, server, 2000, 'nothing'), await crowd(t, server, 1000, 'head')]);
});

test('nor do handshakes that do not end', async (t) => {
  const dir = scratch(t);
  certificates(dir);
  writeFileSync(join(dir, 'web.yml'), 'tls_server_config: {cert_file: server.pem, key_file: server.key}\n');
  const server = await startServer(t, { dir, config: 'scrape_configs: []\n', scheme: 'https',
    args: [...PATIENT, `--web.config.file=${join(dir, 'web.yml')}`] });
  await askBeside(server, [await crowd(t, server, 2000, 'hello'), await crowd(t, server, 500, 'nothing')]);
});
