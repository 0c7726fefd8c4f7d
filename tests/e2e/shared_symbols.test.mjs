// Symbols of a cluster: what is sent to one member names addresses at all, also after that member's disk is lost; a better file
// that comes later, and to another member, takes its place.
import test from 'node:test';
import assert from 'node:assert/strict';
import { S3Fake } from '../s3_fake.mjs';
import { api, epitool, execFileSync, finish, join, request, scratch, until, writeFileSync } from './lib.mjs';
import { Cluster } from './shards.mjs';

const varint = (n) => {
  const out = [];
  for (let v = BigInt(n); ; v >>= 7n) {
    if (v < 128n) return [...out, Number(v)];
    out.push(Number(v & 127n) | 128);
  }
};
const message = (n, ...parts) => [...varint(n * 8 + 2), ...varint(parts.flat().length), ...parts.flat()];
const number = (n, v) => [...varint(n * 8), ...varint(v)];

/** A program: with debug data, with symbols alone; its build id, and a profile of `work` without names. */
function compile(dir) {
  const path = (name) => join(dir, name);
  writeFileSync(path('shop.c'), 'int work(int n)\n{\n\tint s = 0;\n\tfor (int i = 0; i < n; i++)\n\t\ts += i * i;\n\treturn s;\n}\nint main(int argc, char **argv) { return work(argc); }\n');
  execFileSync('gcc', ['-g', '-O0', '-Wl,--build-id=sha1', '-o', path('shop'), path('shop.c')]);
  execFileSync('strip', ['-g', '-o', path('shop.symbols'), path('shop')]);
  const id = execFileSync('readelf', ['-n', path('shop')]).toString().match(/Build ID: ([0-9a-f]+)/)[1];
  const [, offset, address, bytes] = /^ +LOAD +0x(\w+) 0x(\w+) 0x\w+ 0x(\w+) .* R E /m.exec(execFileSync('readelf', ['-lW', path('shop')]))
    .map((x) => parseInt(x, 16));
  const work = parseInt(/^(\w+) T work$/m.exec(execFileSync('nm', [path('shop')]))[1], 16);
  const base = 0x555555000000;
  const profile = Buffer.from([
    ...message(1, number(1, 1), number(2, 2)),
    ...message(2, message(1, varint(1)), message(2, varint(7))),
    ...message(3, number(1, 1), number(2, base + address), number(3, base + address + bytes), number(4, offset), number(5, 3), number(6, 4)),
    ...message(4, number(1, 1), number(2, 1), number(3, base + work + 4)),
    ...['', 'samples', 'count', '/opt/shop', id].flatMap((s) => message(6, [...Buffer.from(s)])),
  ]);
  return { id, profile, full: path('shop'), symbols: path('shop.symbols') };
}

test('a file that is sent to one member names addresses at all', async (t) => {
  const fake = await new S3Fake().listen();
  t.after(() => fake.close());
  const dir = scratch(t), { id, profile, full, symbols } = compile(dir);
  const cluster = new Cluster(t, { dir, store: fake, total: 2 });
  const ingest = { args: ['--web.enable-ingest'] };
  let shard = await cluster.shard(0);
  await cluster.shard(1);
  const nodes = [await cluster.node(0), await cluster.node(1, ingest)];

  const push = async (server) => {
    const res = await request(`${server.url}/api/v1/ingest?name=process_cpu&job=shop`, { method: 'POST', body: profile });
    assert.equal(res.status, 200, res.body.toString());
  };
  const upload = async (server, file) => {
    const run = await finish(t, epitool, ['debuginfo', 'upload', `--server=${server.url}`, file], 120);
    assert.equal(run.code, 0, run.out + run.err);
  };
  /** Functions and lines of the profile. */
  const lines = async (server) => {
    const now = Date.now() / 1000;
    const answer = await api(server, 'query', { query: 'flat by (function, line) (merge(process_cpu:samples{job="shop"}))', start: now - 3600, end: now + 60 });
    return answer.result.map((r) => `${r.metric.function}${r.metric.line ? ' with lines' : ''}`);
  };
  const named = (server, want) => until(`${server.name} says ${want}`, 120, async () => {
    const is = await lines(server);
    return is.length === 1 && is[0] === want;
  });
  const quality = async (server) => (await api(server, 'symbols')).binaries.find((b) => b.id === id)?.quality;

  await push(shard);
  for (const node of nodes) await named(node, '[shop]');
  await upload(shard, symbols);
  for (const node of nodes) await named(node, 'work');
  assert.deepEqual(await Promise.all([shard, ...nodes].map(quality)), ['symbols', 'symbols', 'symbols']);
  assert.deepEqual(fake.touch('GET', '').map((o) => o.key).filter((k) => k.startsWith('epi/symbols/')), [`epi/symbols/gnu-${id}.idx`]);

  await t.test('a query node takes files, and no profiles', async () => {
    await upload(nodes[1], full);
    for (const server of [shard, ...nodes]) {
      await until(`${server.name} has the better one`, 120, async () => await quality(server) === 'dwarf');
      await named(server, 'work with lines');
    }
    const refused = await request(`${nodes[1].url}/api/v1/ingest?name=process_cpu&job=shop`, { method: 'POST', body: profile });
    assert.equal(refused.status, 404);
    assert.match(refused.body.toString(), /ingest is disabled on a query node: send to a shard/);
    const off = await request(`${nodes[0].url}/api/v1/symbols/upload`, { method: 'POST', body: profile });
    assert.equal(off.status, 404);
  });

  await t.test('a member whose disk was lost, and a new one', async () => {
    await cluster.kill('shard-0');
    cluster.wipe('shard-0');
    shard = await cluster.shard(0);
    await push(shard);
    await named(shard, 'work with lines');
    await named(await cluster.node(2), 'work with lines');
    const text = (await request(`${shard.url}/metrics`)).body.toString();
    assert.match(text, /^epimetheus_symbols_shared_total\{result="taken"\} 1$/m);
  });
});
