// Links of samples to spans, as OTLP has them: the same before and after a cut, kill -9 and compaction.
import test from 'node:test';
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import { api, epitool, finish, join, query, request, root, scratch, startServer, until } from './lib.mjs';

const NOTHING = 'scrape_configs: []\n';
const DRAWN = join(root, 'tests/proto/otlp/drawn');
const hex = (n, digits) => n.toString(16).padStart(digits, '0');

async function push(server, body, type) {
  const res = await request(`${server.url}/v1development/profiles`,
    { method: 'POST', body, headers: { 'Content-Type': type } });
  assert.equal(res.status, 200, res.body.toString());
  return res.body.toString();
}

/** A request by hand: one stack under two spans and under none, a second stack under one of them. */
function byHand(i, atS) {
  const trace = hex(0xa000 + i, 32);
  return JSON.stringify({
    resourceProfiles: [{
      resource: { attributes: [{ key: 'service.name', value: { stringValue: 'shop' } }] },
      scopeProfiles: [{
        profiles: [{
          sampleType: { typeStrindex: 1, unitStrindex: 2 },
          timeUnixNano: `${atS - 1}000000000`,
          durationNano: '1000000000',
          samples: [
            { stackIndex: 1, values: ['1'], linkIndex: 1 },
            { stackIndex: 1, values: ['2'], linkIndex: 2 },
            { stackIndex: 1, values: ['4'] },
            { stackIndex: 2, values: ['8'], linkIndex: 2 },
          ],
        }],
      }],
    }],
    dictionary: {
      stringTable: ['', 'samples', 'count', 'main', 'work'],
      mappingTable: [{}],
      functionTable: [{}, { nameStrindex: 3 }, { nameStrindex: 4 }],
      locationTable: [{}, { lines: [{ functionIndex: 1 }] }, { lines: [{ functionIndex: 2 }] }],
      stackTable: [{}, { locationIndices: [2, 1] }, { locationIndices: [1] }],
      linkTable: [{}, { traceId: trace, spanId: hex(0xb1, 16) }, { traceId: trace, spanId: hex(0xb2, 16) }],
      attributeTable: [{}],
    },
  });
}

const wanted = (i, atS) => [['work', 0xb1, 1], ['work', 0xb2, 2], ['main', 0xb2, 8]].map(([fn, span, n]) =>
  `${atS} ${hex(0xa000 + i, 32)} ${hex(span, 16)} ${fn} ${n}`);
const shown = (l) => `${l.time} ${l.trace_id} ${l.span_id} ${l.function} ${Object.values(l.values)[0]}`;
const ask = async (server, params) => (await api(server, 'links', { limit: 10000, ...params })).map(shown).sort();

test('links by hand stay through kill -9, cuts and joins, and are found by trace', async (t) => {
  const dir = scratch(t);
  const args = ['--web.enable-ingest', '--storage.tsdb.window=10s', '--storage.tsdb.out-of-order-time-window=10s',
    '--storage.tsdb.max-block-duration=1h'];
  let server = await startServer(t, { dir, config: NOTHING, args });
  const first = Math.floor(Date.now() / 1000) - 200;
  const all = [];
  const send = async (i) => {
    assert.equal(await push(server, byHand(i, first + 2 * i), 'application/json'), '{}');
    all.push(...wanted(i, first + 2 * i));
    all.sort();
  };
  await send(0);
  assert.deepEqual(await ask(server, {}), all);
  // The same request again is acknowledged, and stores nothing twice.
  assert.equal(await push(server, byHand(0, first), 'application/json'), '{}');
  assert.deepEqual(await ask(server, { 'match[]': '{job="shop"}' }), all);
  await server.stop('SIGKILL');
  server = await startServer(t, { dir, config: NOTHING, args });
  assert.deepEqual(await ask(server, {}), all);
  for (let i = 1; i < 90; i++) await send(i);
  assert.deepEqual(await ask(server, {}), all);
  const levels = async () => (await api(server, 'status/tsdb')).blocks.filter((b) => b.ulid).map((b) => b.level);
  await until('blocks are cut and joined', 60, async () => (await levels()).some((l) => l > 1));
  assert.deepEqual(await ask(server, {}), all);
  await server.stop('SIGKILL');
  server = await startServer(t, { dir, config: NOTHING, args });
  assert.deepEqual(await ask(server, {}), all);

  assert.deepEqual(await ask(server, { trace_id: hex(0xa000 + 3, 32) }), wanted(3, first + 6).sort());
  assert.deepEqual(await ask(server, { trace_id: hex(0xa000 + 88, 32).toUpperCase(), span_id: hex(0xb1, 16) }),
    wanted(88, first + 176).slice(0, 1));
  assert.deepEqual(await ask(server, { start: first + 9, end: first + 10 }), wanted(5, first + 10).sort());
  assert.deepEqual(await ask(server, { 'match[]': '{job="other"}' }), []);
  const [total] = (await query(server, 'total(merge(samples:samples{job="shop"}[10m]))', { time: first + 200 })).result;
  assert.equal(total.value[1], String(90 * 15));
  await server.stop('SIGTERM');
  const tool = async (...a) => {
    const run = await finish(t, epitool, ['tsdb', ...a]);
    assert.equal(run.code, 0, run.err + run.out);
    return run.out;
  };
  const data = join(dir, 'data');
  assert.match(await tool('verify', data), /0 findings/);
  assert.ok(JSON.parse(await tool('analyze', '--json', data)).bytes.links > 0);
  const text = await tool('dump', data);
  assert.equal(text.match(/^span /gm).length, all.length);
  assert.match(text, new RegExp(`^main;work 7\nspan ${hex(0xa000, 32)} ${hex(0xb2, 16)} main 8\n`, 'm'));
});

/** Sums by span and type of what the collector's own types decode of a drawn request. */
function addWanted(sums, text) {
  let types = [];
  for (const line of text.split('\n')) {
    const head = line.match(/^profile of (.*) per /);
    if (head) types = [...head[1].matchAll(/(?<= )(\w+)\/(\w+)(?= |$)/g)].map((m) => `${m[1]}:${m[2]}`);
    const sample = line.match(/^((?: -?\d+)+) \{.*?\} ([0-9a-f]{32})\/([0-9a-f]{16})/);
    if (!sample || /^0+$/.test(sample[2] + sample[3])) continue;
    sample[1].trim().split(' ').forEach((v, i) => addTo(sums, `${sample[2]}/${sample[3]} ${types[i]}`, v));
  }
}
function addTo(sums, key, value) {
  sums.set(key, (sums.get(key) ?? 0n) + BigInt(value));
}
const listed = (sums) => [...sums].filter(([, v]) => v !== 0n).map(([k, v]) => `${k} ${v}`).sort();

test('links of drawn requests have the sums that the collector\'s types give them', async (t) => {
  const args = ['--web.enable-ingest', '--storage.tsdb.retention.time=0s', '--storage.tsdb.out-of-order-time-window=876000h'];
  const seeds = readdirSync(DRAWN).filter((f) => f.endsWith('.txt.gz')).map((f) => f.split('.')[0]);
  for (const form of ['pb', 'json']) {
    const dir = scratch(t);
    const server = await startServer(t, { dir, config: NOTHING, args });
    const want = new Map(), got = new Map();
    for (const seed of seeds) {
      addWanted(want, gunzipSync(readFileSync(join(DRAWN, `${seed}.txt.gz`))).toString());
      const answer = await push(server, gunzipSync(readFileSync(join(DRAWN, `${seed}.${form}.gz`))),
        form === 'pb' ? 'application/x-protobuf' : 'application/json');
      // Some have profiles that are wrong in themselves, and are not in the text either.
      assert.match(answer, /^(\{\})?$|samples\[\d+\]: \d+ values for \d+ timestamps/, seed);
    }
    for (const l of await api(server, 'links', { limit: 10000 }))
      for (const [type, v] of Object.entries(l.values)) addTo(got, `${l.trace_id}/${l.span_id} ${type}`, v);
    assert.ok(want.size > 5);
    assert.deepEqual(listed(got), listed(want));
  }
});
