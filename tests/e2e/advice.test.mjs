// What a server refuses: each flag that the answer names is one with which this server starts.
import test from 'node:test';
import assert from 'node:assert/strict';
import { S3Fake } from '../s3_fake.mjs';
import { epimetheus, finish, request, scratch, startServer } from './lib.mjs';
import { bucketSection } from './shards.mjs';

const modes = [
  { name: 'a server without a bucket', args: [], bucket: false },
  { name: 'one of several shards', args: ['--shard.name=shard-1', '--shard.total=3'], bucket: true },
  { name: 'a query node', args: ['--mode=query'], bucket: true, elsewhere: /shard/,
    takes: ['POST /api/v1/symbols/upload', 'POST /api/v1/files?name=x&keep=1h', 'GET /api/v1/files'] },
  { name: 'a caretaker', args: ['--mode=compact'], bucket: true, elsewhere: /shard/ },
];

/** The flags in an answer that switch something on; others limit it, and every server has them. */
const switches = (text) => [...new Set(text.match(/--web\.enable-[a-z-]*[a-z]/g))];

/** Each operation of the API once, without parameters; and wrong paths that senders are given. */
async function refusals(server) {
  const { paths } = JSON.parse((await request(`${server.url}/api/v1/openapi.json`)).body);
  const asks = Object.entries(paths).flatMap(([path, methods]) => Object.keys(methods)
    .filter((m) => ['get', 'post', 'put', 'delete'].includes(m)).map((m) => [m.toUpperCase(), path.replace(/\{[^}]*\}/g, 'x')]));
  asks.push(['POST', '/v1/profiles'], ['POST', '/api/v1/files?name=x&keep=1h'], ['GET', '/api/v1/files']);
  const out = [];
  for (const [method, path] of asks.filter(([, p]) => !/debug\/pprof|-\/healthy/.test(p))) {
    const res = await request(`${server.url}${path}`, { method, body: method === 'GET' ? undefined : 'x' });
    if (res.status >= 400) out.push({ ask: `${method} ${path}`, text: res.body.toString() });
  }
  return out;
}

for (const { name, args, bucket, elsewhere, takes = [] } of modes)
  test(`${name} names only flags that it takes`, async (t) => {
    const fake = await new S3Fake().listen();
    t.after(() => fake.close());
    const dir = scratch(t), config = bucket ? bucketSection(fake) : 'scrape_configs: []\n';
    const list = await refusals(await startServer(t, { dir, config, args, seconds: 60 }));
    const named = new Map(list.flatMap(({ ask, text }) => switches(text).map((flag) => [flag, ask])));
    const of = (ask) => list.find((r) => r.ask === ask)?.text ?? assert.fail(`${ask} is not refused`);
    const asked = ['POST /api/v1/ingest', 'POST /v1development/profiles', 'POST /ingest', 'POST /api/0/profiles',
      'POST /push.v1.PusherService/Push', 'POST /api/v1/symbols/upload', 'POST /api/v1/files?name=x&keep=1h', 'GET /api/v1/files',
      'POST /api/v1/admin/tsdb/snapshot', 'POST /api/v1/admin/tsdb/delete_series', 'POST /api/v1/admin/tsdb/accept_losses',
      'POST /api/v1/targets/profile'];
    for (const ask of asked) assert.match(of(ask), (!takes.includes(ask) && elsewhere) || /start with --web\.enable-/, ask);
    assert.match(of('POST /v1/profiles'), elsewhere ?? /send to \/api\/v1\/ingest/);
    assert.match(of('POST /mcp'), /start with --web\.enable-mcp/);
    assert.ok(named.has('--web.enable-lifecycle'));
    if (!elsewhere) assert.deepEqual([...named.keys()].sort(), ['--web.enable-admin-api', '--web.enable-files', '--web.enable-ingest',
      '--web.enable-lifecycle', '--web.enable-mcp', ...(bucket ? [] : ['--web.enable-rules'])]);
    for (const [flag, ask] of named) {
      const run = await finish(t, epimetheus, [...args, flag, '--version']);
      assert.equal(run.code, 0, `${ask}: ${flag}: ${run.err}`);
    }
  });
