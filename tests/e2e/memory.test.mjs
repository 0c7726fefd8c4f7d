// Queries that together want more memory than there is: they wait, some begin again, and each answers right or says why not.
import test from 'node:test';
import assert from 'node:assert/strict';
import http from 'node:http';
import { readFileSync } from 'node:fs';
import { createHash } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { api, request, scratch, startServer, until } from './lib.mjs';

const FUNCTIONS = 25000, PROFILES = 5, STEP = 10;
const MIB = 1024 * 1024;

/** A pprof profile of so many functions, each a stack of its own below one root. */
function profile(functions, value) {
  const parts = [];
  const varint = (n) => {
    const out = [];
    for (; n > 127; n = Math.floor(n / 128)) out.push(n % 128 | 128);
    return [...out, n];
  };
  const message = (n, bytes) => parts.push(Buffer.from([...varint(n * 8 + 2), ...varint(bytes.length), ...bytes]));
  const number = (n, v) => [...varint(n * 8), ...varint(v)];
  const nested = (n, bytes) => [...varint(n * 8 + 2), ...varint(bytes.length), ...bytes];
  const text = (s) => message(6, [...Buffer.from(s)]);
  message(1, [...number(1, 1), ...number(2, 2)]);
  for (const s of ['', 'samples', 'count', 'main.root']) text(s);
  message(5, [...number(1, 1), ...number(2, 3)]);
  message(4, [...number(1, 1), ...nested(4, number(1, 1))]);
  for (let i = 0; i < functions; i++) {
    text(`example.com/service/package${i % 97}.function${i}`);
    message(5, [...number(1, i + 2), ...number(2, i + 4)]);
    message(4, [...number(1, i + 2), ...nested(4, number(1, i + 2))]);
    message(2, [...nested(1, [...varint(i + 2), ...varint(1)]), ...nested(2, varint(value + i % 5))]);
  }
  return gzipSync(Buffer.concat(parts), { level: 1 });
}

const resident = (server) => Number(readFileSync(`/proc/${server.child.pid}/status`, 'utf8').match(/VmRSS:\s+(\d+)/)[1]) * 1024;

async function metrics(server) {
  const text = (await request(`${server.url}/metrics`)).body.toString();
  return (name) => Number(text.split('\n').find((l) => l.startsWith(`${name} `))?.slice(name.length + 1) ?? 0);
}

/** That it waited for others, which a query says behind its answer. */
const WAITED = /"waited \d+\.\d s for (?:memory that other queries had \(--query\.max-memory-total\)|a turn: 20 queries run at once \(--query\.max-concurrency\))"/g;

/** Status and digest of an answer that is not kept, but for its infos; an answer cut short is an error. */
function ask(server, params) {
  return new Promise((done, fail) => {
    const req = http.get(`${server.url}/api/v1/query_range?${new URLSearchParams(params)}`, { agent: false }, (res) => {
      const hash = createHash('sha256');
      let head = '', tail = Buffer.alloc(0);
      res.on('data', (d) => {
        const all = Buffer.concat([tail, d]), keep = Math.min(all.length, 1000);
        hash.update(all.subarray(0, all.length - keep));
        tail = all.subarray(all.length - keep);
        if (head.length < 2000) head += d;
      });
      res.on('end', () => {
        const end = tail.toString('latin1'), waits = end.match(WAITED) ?? [];
        hash.update(end.replace(/,"infos":\[.*?\]/, ''));
        done({ status: res.statusCode, digest: hash.digest('hex'), head, waits });
      });
      res.on('aborted', () => fail(new Error(`cut short: ${head}`)));
      res.on('error', fail);
    });
    req.on('error', fail);
  });
}

test('24 queries at once share 64 MiB', async (t) => {
  const dir = scratch(t);
  const total = 64 * MIB;
  const server = await startServer(t, { dir, config: 'scrape_configs: []\n',
    args: ['--web.enable-ingest', '--query.timeout=1h', `--query.max-memory-total=${total / MIB}MiB`] });
  const first = Math.floor(Date.now() / 1000 / STEP) * STEP - 2 * PROFILES * STEP;
  for (let i = 0; i < PROFILES; i++) {
    const res = await request(`${server.url}/api/v1/ingest?name=things&job=a&time=${first + i * STEP}`,
      { method: 'POST', body: profile(FUNCTIONS, i + 1) });
    assert.equal(res.status, 200, res.body.toString());
  }
  const range = { start: first, end: first + (PROFILES - 1) * STEP, step: STEP };
  const queries = ['flat(things)', 'cum(things)', 'topk(3, flat(things))'].map((query) => ({ query, ...range }));
  const want = [];
  for (const q of queries) {
    const one = await ask(server, q);
    assert.equal(one.status, 200, one.head);
    want.push(one.digest);
  }
  const before = resident(server);
  let peak = 0;
  const watch = setInterval(() => { peak = Math.max(peak, resident(server)); }, 20);
  const began = Date.now();
  const answers = await Promise.all(Array.from({ length: 24 }, (_, i) => ask(server, queries[i % 3]).then((a) => ({ ...a, i }))));
  clearInterval(watch);
  const took = (Date.now() - began) / 1000;
  const right = answers.filter((a) => a.status === 200);
  for (const a of right) assert.equal(a.digest, want[a.i % 3], queries[a.i % 3].query);
  for (const a of answers.filter((x) => x.status !== 200)) {
    assert.equal(a.status, 503);
    assert.match(a.head, /--query\.max-memory-total/);
  }
  const refused = await metrics(server);
  t.diagnostic(`${right.length} of 24 answered in ${took} s; resident ${Math.round(before / MIB)}, at most ${Math.round(peak / MIB)} MiB; ` +
    `${refused('epimetheus_query_memory_refused_total{result="again"}')} began again`);
  assert.ok(right.length >= 20, `${right.length} of 24 were answered`);
  assert.ok(peak < before + 1.5 * total, `resident ${before} before, ${peak} at most`);
  const m = await until('all memory is given back', 10, async () => {
    const look = await metrics(server);
    return look('epimetheus_query_memory_bytes') === 0 && look;
  });
  assert.equal(m('epimetheus_query_memory_limit_bytes'), total);
  const waited = m('epimetheus_query_wait_seconds_total{for="memory"}');
  assert.ok(waited > 0);
  // If they waited for more than a second on average, one of them did, and said so.
  t.diagnostic(`waited ${waited.toFixed(1)} s for memory; ${right.flatMap((a) => a.waits).join(' ')}`);
  if (waited > 24) assert.ok(answers.some((a) => a.waits.length || a.status !== 200));
  const info = await api(server, 'status/runtimeinfo');
  assert.deepEqual([info.queryMemoryBytes, info.queryMemoryLimitBytes], [0, total]);
  // What does not fit even alone is told so, and not waited for.
  const huge = await ask(server, { ...queries[0], query: Array(40).fill('flat(things)').join(' + '), step: 1 });
  assert.equal(huge.status, 422, huge.head);
  assert.match(huge.head, /--query\.max-memory-total/);
  assert.equal((await api(server, 'status/flags'))['query.max-memory-total'], '64MiB');
});
