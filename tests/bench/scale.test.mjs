// The arithmetic of scale_model.mjs: sizes, joins, requests of shards and query nodes, money.
import test from 'node:test';
import assert from 'node:assert/strict';
import { DEFAULTS, Shard, follow, manifestBytes, moved, planJoin, plus, priceOf, putsOf, segmentEntry, startOf } from './scale_model.mjs';

const NS = 1795419960000000000n, TOKEN = '0123456789abcdef0123456789abcdef', HASH = '0123456789abcdef';
const START = 1763006400; // of a day
const files = { 'rows.ldb': 1000, 'rollups.ldb': 500, spare: 50 };

const costs = (change) => ({ ...DEFAULTS, lagS: 15, segmentBytes: 0, segmentBytesPerS: 1000, batchesPerS: 10, metaBytes: 600, cutS: 0.001,
  joinS: 0.001, putBytesPerS: 1e8, idsBytes: 30, idsChange: false, blockBytes: { cut: files, joined: files },
  ...change });

/** As manifest.c prints it. */
function printed({ windows, blocks, gone }) {
  const file = (bytes) => `"bytes":${bytes},"xxh3":"${HASH}"`;
  const w = windows.map((segments) => `{"start_ns":${NS},"end_ns":${NS},"identity":"${HASH}","segments":[${
    segments.map((s) => `{"first":${s.first},"last":${s.last},${file(s.bytes)}}`)}]}`);
  const b = blocks.map((x) => `{"ulid":"01ARZ3NDEKTSV4RRFFQ69G5FAV","min_ns":${NS},"max_ns":${NS},"level":${x.level},"raw":true,"files":{${
    Object.entries(x.files).map(([name, bytes]) => `"${name}":{${file(bytes)}}`)}}}`);
  const g = gone.map((key) => `{"key":"${key}","at_ns":${NS}}`);
  return `{"version":1,"shard":"epi-7","owner":"${TOKEN}","session":"${TOKEN}","host":"epi-7.local","generation":1234,"since_ns":${NS},` +
    `"written_ns":${NS},"through_ns":${NS},"interval_ns":30000000000,"lease_ns":90000000000,"clock_ns":2000000000000000,"confirmed_ns":2000000000000000,"stopped":false,"files":{"ids":{${file(4096)}}},` +
    `"windows":[${w}],"blocks":[${b}],"gone":[${g}],"checksum":"${HASH}"}\n`;
}

test('a manifest has the size that manifest.c gives it', () => {
  const segments = [{ first: 1, last: 12, bytes: 999 }, { first: 13, last: 200, bytes: 12345678 }];
  const block = { level: 2, files: { 'rows.ldb': 1e9, 'rollups.ldb': 77, spare: 5, 'meta.json': 600 } };
  for (const [windows, blocks, gone] of [[[], [], []], [[segments], [block], ['head/a']], [[segments, segments.slice(1)], [block, block], ['a', 'bc']]]) {
    assert.equal(manifestBytes({ shard: 'epi-7', host: 'epi-7.local', generation: 1234, intervalS: 30, idsBytes: 4096, blocks,
      windows: windows.map((list) => ({ n: list.length, bytes: list.reduce((n, s) => n + segmentEntry(s), 0) })),
      gone: gone.map((key) => key.length) }), printed({ windows, blocks, gone }).length);
  }
});

test('blocks are joined as compact_plan.c does', () => {
  const o = { windowS: 7200, blockMaxS: 0, retentionS: 15 * 86400 };
  const hours = (...list) => list.map(([from, to]) => ({ min: from * 3600, max: to * 3600 }));
  const two = hours([0, 2], [2, 4], [4, 6], [6, 8]);
  assert.equal(planJoin(two, o, 7 * 3600), undefined); // a window could still be cut into it
  assert.deepEqual(planJoin(two, o, 8 * 3600), two);
  assert.deepEqual(planJoin(hours([0, 8], [8, 16], [16, 24]), o, 24 * 3600).length, 3);
  assert.equal(planJoin(hours([0, 24], [24, 48], [48, 72]), o, 96 * 3600), undefined); // 3 d are more than a tenth of 15 d
  assert.equal(planJoin(hours([0, 24], [24, 48], [48, 72]), { ...o, retentionS: 30 * 86400 }, 96 * 3600).length, 3);
});

test('a file is put at once or in parts', () => {
  assert.deepEqual([1, 64 << 20, (64 << 20) + 1, 640 << 20].map((n) => putsOf(n, 64 << 20)), [1, 1, 4, 12]);
});

test('a shard in its steady state: rounds, segments, blocks, removals of a day', () => {
  const shard = new Shard(costs({ retentionS: 2 * 86400, blockMaxS: 86400 }), START).run(START + 5 * 86400 + 1800);
  const before = { ...shard.requests };
  const rounds = shard.generation;
  shard.run(START + 6 * 86400 + 1800);
  const day = plus(shard.requests, before, -1);
  assert.ok(shard.generation - rounds >= 2880 && shard.generation - rounds < 2950, `${shard.generation - rounds} rounds`);
  const blocks = 12 + 3 + 1; // 2 h, 8 h, a day
  const segments = day.put - (shard.generation - rounds) - 4 * blocks;
  assert.ok(segments >= 2880 && segments < 2960, `${segments} segments`);
  // each is opened in the bucket; a join reads all sources but the youngest, which is still on the disk, in pieces of 4 MiB:
  // of 2 h 7.2 MB of rows and 3.6 MB of rollups, of 8 h four times as much
  assert.equal(day.get, blocks + 3 * 3 * (2 + 1) + 2 * (7 + 4));
  assert.equal(day.list, 1);
  assert.equal(day.head, 0);
  // what was put is removed but for manifests, which replace each other: as many segments, and blocks of all lengths
  assert.ok(Math.abs(day.delete - segments - 4 * blocks) < 60, `${day.delete} removed, ${segments} segments`);
  const named = shard.versions.slice(-2880).map((v) => v.windows.reduce((n, w) => n + w.n, 0));
  assert.ok(Math.min(...named) >= 240 && Math.max(...named) <= 500, `${Math.min(...named)} to ${Math.max(...named)}`);
  assert.ok(shard.blocks[0].min <= START + 5 * 86400 && shard.blocks[0].max > START + 4 * 86400 + 1800);
});

test('blocks stay in the manifest until what replaces them is there', () => {
  const shard = new Shard(costs({ putBytesPerS: 100 }), START); // a put takes long
  shard.run(START + 2 * 86400);
  for (const v of shard.versions) {
    const spans = [...v.blocks.map((b) => [b.min, b.max]), ...v.windows.map((w) => [w.of.start, w.of.end])].sort((a, b) => a[0] - b[0]);
    for (let i = 1; i < spans.length; i++) assert.equal(spans[i][0], spans[i - 1][1], `at ${v.at - START}: ${JSON.stringify(spans)}`);
    assert.ok(!spans.length || spans[0][0] === START);
  }
});

test('a query node takes each segment once and looks each interval', () => {
  const shard = new Shard(costs(), START).run(START + 7200);
  const node = follow(shard, START, START + 7200, { pollS: 10, openGets: 6 });
  assert.equal(node.head, 720);
  const last = shard.versions.at(-1).windows.reduce((n, w) => n + w.n, 0);
  assert.ok(last - node.segments <= 1 && node.segments <= last, `${node.segments} of ${last}`);
  assert.ok(node.get >= 240 + node.segments - 2 && node.get <= 242 + node.segments, `${node.get}`);
  assert.equal(node.opened, 0);
  // one that looks less often than manifests are written reads fewer of them, and no fewer segments
  const slow = follow(shard, START, START + 7200, { pollS: 60, openGets: 6 });
  assert.equal(slow.head, 120);
  assert.ok(slow.get - slow.segments <= 120 && slow.segments > last - 4);
});

test('a start: the longest of waiting, network and CPU', () => {
  const version = { windows: [{ n: 240, bytes: 24e6 }, { n: 120, bytes: 12e6 }], blocks: new Array(18), bytes: 50000 };
  const o = { workers: 8, ahead: 6, aheadBytes: 64 << 20, openers: 9, openGets: 6 };
  const s = startOf(version, o, { shards: 100, latencyS: 0.03, bytesPerS: 1e9, followS: 1, cores: 4 });
  assert.equal(s.segments, 360);
  assert.equal(s.requests, 100 * (2 + 360 + 108) + 1);
  assert.equal(s.blocks.toFixed(2), (13 * (2 + 12) * 0.03).toFixed(2));
  assert.equal(s.waiting.toFixed(2), (13 * (2 + 360 / 6 + 12) * 0.03).toFixed(2));
  // large segments are read one by one
  const large = startOf({ ...version, windows: [{ n: 10, bytes: 400 << 20 }] }, o, { shards: 8, latencyS: 1, bytesPerS: 1e12, followS: 0, cores: 4 });
  assert.equal(large.waiting, 2 + 12 + 10);
  assert.equal(s.network.toFixed(3), '3.605');
  assert.equal(s.cpu, 25);
  assert.equal(s.seconds, s.waiting);
});

test('money and moves', () => {
  assert.equal(priceOf({ put: 1e6, get: 1e6, head: 1e6, list: 1e6, delete: 1e9 }), 5 + 0.4 + 0.4 + 5);
  assert.equal(moved(1e6, 99, 100), 10000);
  assert.equal(moved(1e6, 100, 50), 500000);
});
