// Kept files of a cluster: what is kept at one member opens at all, also after that member's disk is lost, and is removed for all.
import test from 'node:test';
import assert from 'node:assert/strict';
import { mkdirSync, readdirSync } from 'node:fs';
import { S3Fake } from '../s3_fake.mjs';
import { join, query, request, scratch, startServer, until, writeFileSync } from './lib.mjs';
import { bucketSection, Cluster } from './shards.mjs';

const ADMIN = '--web.enable-admin-api';
const FILES = ['--web.enable-files', ADMIN];
const folded = 'main;f 30\nmain;g 10\n';
const NEVER = '0'.repeat(32);

async function call(server, method, path, { body, headers } = {}) {
  const res = await request(`${server.url}/api/v1/${path}`, { method, body, headers });
  const text = res.body.toString();
  return { status: res.status, text, answer: text.startsWith('{') ? JSON.parse(text) : null };
}

async function keep(server, name, body = folded, time = '7d') {
  const { status, text, answer } = await call(server, 'POST', `files?name=${name}&keep=${time}`, { body });
  assert.equal(status, 200, text);
  return answer.data;
}

const total = async (server, id) => Number((await query(server, `total(file("${id}"))`)).result[0].value[1]);

async function list(server) {
  const { status, text, answer } = await call(server, 'GET', 'files');
  assert.equal(status, 200, text);
  return { files: answer.data.files.map((f) => f.name).sort(), bytes: answer.data.bytes, warnings: answer.warnings ?? [] };
}

async function start(t, { args = FILES } = {}) {
  const fake = await new S3Fake().listen();
  t.after(() => fake.close());
  const dir = scratch(t);
  const cluster = new Cluster(t, { dir, store: fake, total: 1 });
  const onShard = { args: args.filter((a) => a !== ADMIN) };
  const members = [await cluster.shard(0, onShard), await cluster.node(0, { args }), await cluster.node(1, { args })];
  const keys = () => fake.touch('GET', '').map((o) => o.key).filter((k) => k.startsWith('epi/files/'));
  return { fake, cluster, members, keys, onShard };
}

test('what one member keeps opens at all', async (t) => {
  const { fake, cluster, members, keys, onShard } = await start(t);
  const [shard, first, second] = members;
  const kept = [];

  await t.test('at once, wherever it was dropped', async () => {
    for (const [i, server] of members.entries()) {
      const { id } = await keep(server, `cpu${i}.folded`);
      kept.push(id);
      assert.deepEqual(keys().filter((k) => k.startsWith(`epi/files/${id}-`)).length, 1);
      for (const other of members) {
        assert.equal(await total(other, id), 40);
        assert.equal((await call(other, 'GET', `files/${id}?content=true`)).text, folded);
      }
    }
    for (const server of members)
      assert.deepEqual(await list(server), { files: ['cpu0.folded', 'cpu1.folded', 'cpu2.folded'], bytes: 60, warnings: [] });
  });

  await t.test('what another member removed is gone, cached or not', async () => {
    const id = kept.shift();
    assert.equal((await call(second, 'DELETE', `files/${id}`)).status, 200);
    for (const server of members) {
      assert.equal((await call(server, 'GET', `files/${id}`)).status, 404);
      assert.equal((await call(server, 'DELETE', `files/${id}`)).status, 404);
      assert.deepEqual((await list(server)).files, ['cpu1.folded', 'cpu2.folded']);
    }
  });

  await t.test('an answer outlives kill -9 and a lost disk', async () => {
    const { id } = await keep(shard, 'last.folded');
    await cluster.kill('shard-0');
    cluster.wipe('shard-0');
    assert.equal(await total(first, id), 40);
    members[0] = await cluster.shard(0, onShard);
    assert.equal(await total(members[0], id), 40);
    kept.push(id);
  });

  await t.test('an expired file is gone for all', async () => {
    const { id } = await keep(first, 'short.folded', folded, '1s');
    for (const server of members)
      await until('it is over', 20, async () => (await call(server, 'GET', `files/${id}`)).status === 404);
    assert.deepEqual((await list(second)).files, ['cpu1.folded', 'cpu2.folded', 'last.folded']);
  });

  await t.test('a damaged object is named', async () => {
    const key = keys().find((k) => k.startsWith(`epi/files/${kept.at(-1)}-`));
    const fresh = await cluster.node(2);
    fake.touch('PUT', key, Buffer.from('epimetheus-file-1 1 2 3 4 x\n'));
    const { status, text } = await call(fresh, 'GET', `files/${kept.at(-1)}`);
    assert.equal(status, 500, text);
    assert.match(text, new RegExp(`the kept file ${key.slice(4).replaceAll('.', '\\.')} of .* is damaged`));
    assert.equal(await total(first, kept.at(-1)), 40, 'a member that has a sound copy shows it');
    assert.equal((await call(fresh, 'GET', `files/${kept[0]}`)).status, 200);
    assert.equal((await call(fresh, 'DELETE', `files/${kept[0]}`)).status, 404, 'a member without the flag removes nothing');
  });

  await t.test('the bucket is away', async () => {
    const none = await cluster.node(3, { args: FILES });
    for (const server of members) assert.equal(await total(server, kept[0]), 40);
    fake.close();
    for (const server of members) assert.equal(await total(server, kept[0]), 40);
    const refused = await call(second, 'POST', 'files?name=x&keep=1d', { body: folded });
    assert.equal(refused.status, 503);
    assert.match(refused.text, /the file cannot be kept in the bucket: /);
    const known = await list(first);
    assert.ok(known.files.includes('cpu2.folded'));
    assert.match(known.warnings[0], /^the bucket of kept files cannot be listed \(.*\): the files as of \d{4}-\d\d-\d\dT/);
    const unknown = await call(none, 'GET', `files/${kept[0]}`);
    assert.equal(unknown.status, 503);
    assert.match(unknown.text, /the bucket of kept files cannot be used: /);
  });
});

test('limits are those of the cluster', async (t) => {
  const { members } = await start(t, { args: [...FILES, '--storage.files.max-size=30B', '--storage.files.max-time=1d'] });
  const [shard, node] = members;
  const { id } = await keep(shard, 'a.folded', folded, '1d');
  const full = await call(node, 'POST', 'files?name=b&keep=1h', { body: folded });
  assert.equal(full.status, 422);
  assert.match(full.text, /the file has 20 bytes and 20 are kept already, limit 30 \(--storage\.files\.max-size\)/);
  assert.match((await call(node, 'POST', 'files?name=b&keep=2d', { body: folded })).text, /1s to 1d \(--storage\.files\.max-time\)/);
  assert.equal((await call(node, 'DELETE', `files/${id}`)).status, 200);
  await keep(node, 'b.folded', folded, '1d');
  assert.deepEqual((await list(shard)).files, ['b.folded']);
});

test('a server that gets a bucket puts its files there', async (t) => {
  const fake = await new S3Fake().listen();
  t.after(() => fake.close());
  const dir = scratch(t), at = join(dir, 'shard-0');
  const cluster = new Cluster(t, { dir, store: fake, total: 1 });
  mkdirSync(at);
  const alone = await startServer(t, { dir: at, config: 'scrape_configs: []\n', args: FILES });
  const { id } = await keep(alone, 'old.folded');
  await alone.stop('SIGKILL');
  await cluster.shard(0);
  const node = await cluster.node(0, { args: [ADMIN] });
  await until('it is in the bucket', 60, async () => (await call(node, 'GET', `files/${id}`)).status === 200);
  assert.equal(await total(node, id), 40);
  await until('what the shard has is a copy', 60, () => readdirSync(join(at, 'data/files'))[0] === `${id}.cached`);
  assert.deepEqual((await list(node)).files, ['old.folded']);
});

test('rights are as without a bucket', async (t) => {
  const fake = await new S3Fake().listen();
  t.after(() => fake.close());
  const dir = scratch(t), web = join(dir, 'web.yml');
  // bcrypt of "secret", cost 4.
  const hash = '$2b$04$dmpZqExj/u8TGBoVsL10Z.nT5488xB4GECFwppKfqrg0hArqnCz/K';
  const user = (name) => ({ Authorization: `Basic ${Buffer.from(`${name}:secret`).toString('base64')}` });
  writeFileSync(web, `basic_auth_users: {root: "${hash}", shop: "${hash}", ci: "${hash}"}
users:
  - {name: root, roles: [admin]}
  - {name: shop, roles: [read], matchers: '{namespace="shop"}'}
  - {name: ci, roles: [ingest]}
`);
  const config = bucketSection(fake), args = ['--mode=query', `--web.config.file=${web}`, ...FILES];
  const nodes = [];
  for (const name of ['a', 'b']) {
    mkdirSync(join(dir, name));
    nodes.push(await startServer(t, { dir: join(dir, name), config, args, seconds: 60 }));
  }
  const kept = await call(nodes[0], 'POST', 'files?name=a.folded&keep=1d', { body: folded, headers: user('shop') });
  assert.equal(kept.status, 200, kept.text);
  const { id } = kept.answer.data;
  assert.equal((await call(nodes[1], 'GET', `files/${id}`, { headers: user('shop') })).status, 200);
  assert.equal((await call(nodes[1], 'GET', `files/${NEVER}`, { headers: user('shop') })).status, 404);
  assert.equal((await call(nodes[1], 'GET', 'files', { headers: user('shop') })).status, 403);
  assert.equal((await call(nodes[1], 'GET', 'files', { headers: user('root') })).status, 200);
  assert.equal((await call(nodes[1], 'GET', `files/${id}`, { headers: user('ci') })).status, 403);
  assert.equal((await call(nodes[1], 'DELETE', `files/${id}`, { headers: user('ci') })).status, 403);
  assert.equal((await call(nodes[1], 'GET', `files/${id}`)).status, 401);
});
