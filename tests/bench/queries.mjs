// Queries of a server with many days, one after the other: idle, and while profiles come at half the rate it can take.
import { readFileSync } from 'node:fs';
import { api, query, request } from '../e2e/lib.mjs';
import { env, fleetFiles, linked } from './common.mjs';
import { days, endOf, longDirectory, serve } from './storage.mjs';
import { note } from './report.mjs';

const ROUNDS = () => env('BENCH_ROUNDS', 60);
const UNALIGNED_ROUNDS = 3; // seconds each
const PUSHERS = 4;
const PUSH_SECONDS = 3;

const seconds = (began) => Number(process.hrtime.bigint() - began) / 1e9;
const at = (times, part) => [...times].sort((a, b) => a - b)[Math.min(times.length - 1, Math.floor(times.length * part))];

/** Queries of one service: [name, query, parameters]. */
function asked(end) {
  const day = 86400, hour = end - end % 3600;
  return [
    ['merge of 1 h', 'merge(cpu)', { start: end - 3600, end }],
    ['top 10 over 24 h', 'top(10, merge(cpu))', { start: end - day, end }],
    [`one function by the hour over ${days()} d`, 'flat(merge(cpu), {function="FUNCTION"})',
      { start: hour - (days() - 1) * day, end: hour, step: 3600 }], // as Grafana aligns them
    ['diff of two days', 'merge(cpu[1d]) - merge(cpu[1d] offset 1d)', { time: end }],
  ];
}

/** Posts the files again and again, so many a second at most, until stopped; returns how many were stored. */
function pusher(server, files, perSecond) {
  const began = process.hrtime.bigint();
  let sent = 0, stopped = false;
  const one = async () => {
    while (!stopped) {
      const i = sent++, early = i / perSecond - seconds(began);
      if (early > 0) await new Promise((done) => setTimeout(done, early * 1000));
      const res = await request(`${server.url}/api/v1/ingest?name=process_cpu&job=shop&instance=pod${i % 50}` +
        `&time=${Date.now() / 1000}`, { method: 'POST', body: files[i % files.length] });
      if (res.status !== 200) throw new Error(`ingest: ${res.status} ${res.body}`);
    }
  };
  const all = Promise.all(Array.from({ length: PUSHERS }, one));
  return async () => { stopped = true; await all; return sent / seconds(began); };
}

async function measure(server, [, text, params], rounds = ROUNDS()) {
  const times = [];
  for (let i = 0; i < rounds; i++) {
    const began = process.hrtime.bigint();
    await api(server, params.step ? 'query_range' : 'query', { query: text, ...params, max_nodes: 2048 });
    times.push(seconds(began));
  }
  return times;
}

/** Hours that begin in the middle: of each, raw rows are read at both ends. One thread and two, by turns. */
async function unaligned(t, dir, end, name) {
  const params = { start: end - (days() - 1) * 86400, end, step: 3600 };
  const one = ['', `flat(merge(cpu), {function="${name}"})`, params], times = { 1: [], 2: [] };
  const servers = {};
  for (const threads of [1, 2]) {
    const own = linked(dir, `unaligned${threads}`);
    servers[threads] = await serve(t, own, '40d', '0,1', `--query.max-threads=${threads}`);
  }
  for (let i = 0; i < UNALIGNED_ROUNDS; i++) {
    for (const threads of [1, 2]) times[threads].push(...await measure(servers[threads], one, 1));
  }
  note('one function by unaligned hours (other: one thread)', { ours: times[2], theirs: times[1], unit: 'seconds' });
  for (const server of Object.values(servers)) await server.stop();
}

export async function queries(t) {
  const made = longDirectory(), dir = linked(made.dir, 'query'), end = endOf(made.dir) - 1234;
  const server = await serve(t, dir, '40d', '0,1', '--web.enable-ingest');
  const table = await query(server, 'top(3, merge(cpu))', { start: end - 3600, end });
  const name = table.result[0].rows[0].function;
  const list = asked(end).map(([what, text, params]) => [what, text.replace('FUNCTION', name), params]);
  const files = fleetFiles('fleet-cpu', 10, 20).map((f) => readFileSync(f));
  for (const one of list) await measure(server, one, 2); // pages and symbols
  const idle = [];
  for (const one of list) idle.push(await measure(server, one));
  const full = pusher(server, files, 1e9);
  await new Promise((done) => setTimeout(done, PUSH_SECONDS * 1000));
  const capacity = await full();
  note('ingest over HTTP at full rate', { ours: capacity, unit: 'profiles/s' });
  const half = pusher(server, files, capacity / 2);
  const busy = [];
  for (const one of list) busy.push(await measure(server, one));
  note('ingest meanwhile', { ours: await half(), unit: 'profiles/s' });
  list.forEach(([what], i) => {
    note(`${what}, a second`, { ours: ROUNDS() / idle[i].reduce((a, b) => a + b, 0), unit: 'queries/s' });
    note(`${what}, p50, idle`, { ours: at(idle[i], 0.5), unit: 'seconds' });
    note(`${what}, p99 idle (other: ingesting)`, { ours: at(idle[i], 0.99), theirs: at(busy[i], 0.99), unit: 'seconds' });
  });
  await server.stop();
  await unaligned(t, made.dir, end, name);
}
