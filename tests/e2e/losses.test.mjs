// Every answer names the data that damage took from the head, after every restart, until a person accepts it; the rest is served.
import test from 'node:test';
import assert from 'node:assert/strict';
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { api, epitool, finish, join, request, scratch, startServer } from './lib.mjs';

const NOTHING = 'scrape_configs: []\n';
const ARGS = ['--web.enable-ingest', '--web.enable-admin-api'];
const PUSHED = 200;

const varint = (n) => (n < 128 ? [n] : [(n & 127) | 128, ...varint(Math.floor(n / 128))]);
const field = (number, bytes) => [...varint(number * 8 + 2), ...varint(bytes.length), ...bytes];
const number = (of, n) => [...varint(of * 8), ...varint(n)];

/** A CPU profile of 40 functions whose costs differ from profile to profile. */
function profile(i) {
  const strings = ['', 'samples', 'count', 'cpu', 'nanoseconds', ...Array.from({ length: 40 }, (_, k) => `f${k}`)];
  const all = [field(1, [...number(1, 1), ...number(2, 2)]), field(1, [...number(1, 3), ...number(2, 4)])];
  for (let k = 1; k <= 40; k++) {
    const n = 1 + ((i * 7919 + k * 104729) % 997);
    all.push(field(2, [...field(1, varint(k)), ...field(2, [...varint(n), ...varint(n * 1e7)])]));
    all.push(field(4, [...number(1, k), ...field(4, number(1, k))]));
    all.push(field(5, [...number(1, k), ...number(2, 4 + k)]));
  }
  for (const s of strings) all.push(field(6, [...Buffer.from(s)]));
  all.push(field(11, [...number(1, 3), ...number(2, 4)]), number(12, 1e7), number(10, 1e9));
  return Buffer.from(all.flat());
}

/** A second apart, all in one window; gives the time of the last one. */
async function fill(server) {
  const now = Math.floor(Date.now() / 1000);
  const end = now % 7200 < 2 * PUSHED ? now - (now % 7200) - 10 : now;
  for (let i = 0; i < PUSHED; i++) {
    const at = end - PUSHED + 1 + i;
    const res = await request(`${server.url}/api/v1/ingest?name=process_cpu&job=shop&time=${at}`, { method: 'POST', body: profile(i) });
    assert.equal(res.status, 200, res.body.toString());
  }
  return end;
}

const head = (dir) => {
  const windows = readdirSync(join(dir, 'data/head')).filter((n) => /^\d+$/.test(n));
  assert.equal(windows.length, 1);
  return join(dir, 'data/head', windows[0]);
};
const largest = (dir, suffix) =>
  readdirSync(dir).filter((n) => n.endsWith(suffix)).map((n) => join(dir, n)).sort((a, b) => statSync(b).size - statSync(a).size)[0];

async function ask(server, end) {
  const q = encodeURIComponent('merge(cpu{job="shop"}[10m])');
  const res = await request(`${server.url}/api/v1/query?query=${q}&time=${end}`);
  const answer = JSON.parse(res.body);
  return { profiles: answer.data.result[0]?.profiles ?? 0, warnings: answer.warnings ?? [] };
}

const tool = (t, ...args) => finish(t, epitool, ['tsdb', ...args]);

/** Whatever was lost: before a server ran, with one, after it, and until it is accepted. */
async function checkSaid(t, dir, end, profiles) {
  const data = join(dir, 'data');
  const found = await tool(t, 'verify', data);
  assert.equal(found.code, 1, found.out + found.err);
  assert.match(found.out, /loss \d+: profiles are lost/);
  for (let i = 0; i < 3; i++) {
    const server = await startServer(t, { dir, config: NOTHING, args: ARGS });
    const got = await ask(server, end);
    assert.ok(profiles(got.profiles), `${got.profiles} profiles`);
    assert.ok(got.warnings.some((w) => /^loss \d+: profiles are lost .*head\//.test(w)), JSON.stringify(got));
    const { losses, openLosses } = await api(server, 'status/tsdb');
    assert.ok(openLosses > 0 && losses.every((l) => !l.accepted), JSON.stringify(losses));
    assert.match((await request(`${server.url}/metrics`)).body.toString(), new RegExp(`^epimetheus_tsdb_losses ${openLosses}$`, 'm'));
    const busy = await tool(t, 'repair', '--accept', data);
    assert.equal(busy.code, 1);
    assert.match(busy.err, /is in use: stop its server first/);
    await server.stop(i ? 'SIGTERM' : 'SIGKILL');
  }
  assert.equal((await tool(t, 'verify', data)).code, 1);
  assert.equal((await tool(t, 'repair', data)).code, 1);
  const accepted = await tool(t, 'repair', '--accept', data);
  assert.equal(accepted.code, 0, accepted.out + accepted.err);
  assert.match(accepted.out, /\(accepted\)\n.*, 0 not accepted\n$/s);
}

test('a log that is cut in half after kill -9', async (t) => {
  const dir = scratch(t);
  let server = await startServer(t, { dir, config: NOTHING, args: ARGS });
  const end = await fill(server);
  assert.deepEqual(await ask(server, end), { profiles: PUSHED, warnings: [] });
  await server.stop('SIGKILL');
  const log = largest(head(dir), '.log');
  writeFileSync(log, readFileSync(log).subarray(0, statSync(log).size / 2));
  await checkSaid(t, dir, end, (n) => n > 0 && n < PUSHED);
  const verified = await tool(t, 'verify', join(dir, 'data'));
  assert.equal(verified.code, 0, verified.out + verified.err);
  server = await startServer(t, { dir, config: NOTHING, args: ARGS });
  assert.deepEqual((await ask(server, end)).warnings, []);
});

test('one bit in the first page of a table takes that page', async (t) => {
  const dir = scratch(t);
  let server = await startServer(t, { dir, config: NOTHING, args: ARGS });
  const end = await fill(server);
  for (let i = 0; i < 2; i++) {
    await server.stop();
    server = await startServer(t, { dir, config: NOTHING, args: ARGS });
  }
  await server.stop();
  const table = largest(head(dir), '.ldb');
  const bytes = readFileSync(table);
  bytes[100] ^= 1;
  writeFileSync(table, bytes);
  await checkSaid(t, dir, end, (n) => n > 0 && n < PUSHED);
});

test('tools read a directory that was repaired', async (t) => {
  const dir = scratch(t), data = join(dir, 'data');
  let server = await startServer(t, { dir, config: NOTHING, args: ARGS });
  const end = await fill(server);
  await server.stop();
  const manifest = join(head(dir), readdirSync(head(dir)).find((n) => n.startsWith('MANIFEST')));
  writeFileSync(manifest, 'no manifest');
  server = await startServer(t, { dir, config: NOTHING, args: ARGS });
  assert.deepEqual(await ask(server, end), { profiles: PUSHED, warnings: [] });
  await server.stop();
  assert.ok(readdirSync(head(dir)).includes('lost'));
  for (const args of [['tsdb', 'list', data], ['tsdb', 'verify', data], ['tsdb', 'dump', data],
    ['query', '--data', data, '--time', String(end), 'merge(cpu{job="shop"}[10m])']]) {
    const run = await finish(t, epitool, args);
    assert.equal(run.code, 0, `${args}: ${run.err}${run.out}`);
  }
});
