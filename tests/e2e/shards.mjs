// A cluster for tests: shards and query nodes over one bucket, and pushers that know what was acknowledged.
import assert from 'node:assert/strict';
import { mkdirSync, rmSync } from 'node:fs';
import { freePort, HANGS_S, join, request, sleep, startServer } from './lib.mjs';

const varint = (n) => {
  const out = [];
  for (let v = BigInt(n); ; v >>= 7n) {
    if (v < 128n) return [...out, Number(v)];
    out.push(Number(v & 127n) | 128);
  }
};
const field = (n, bytes) => [...varint(n * 8 + 2), ...varint(bytes.length), ...bytes];
const number = (n, v) => [...varint(n * 8), ...varint(v)];
const text = (s) => [...Buffer.from(s)];

/** A pprof profile of samples/count: `value` in function `name`, called by main.main. */
export function profile(name, value) {
  return Buffer.from([
    ...field(1, [...number(1, 1), ...number(2, 2)]),
    ...field(2, [...field(1, [1, 2]), ...field(2, varint(value))]),
    ...[1, 2].flatMap((id) => field(4, [...number(1, id), ...field(4, number(1, id))])),
    ...[[1, 3], [2, 4]].flatMap(([id, s]) => field(5, [...number(1, id), ...number(2, s)])),
    ...number(10, 1000000000),
    ...['', 'samples', 'count', name, 'main.main'].flatMap((s) => field(6, text(s))),
  ]);
}

/** The `bucket` section of a configuration. */
export function bucketSection(store, prefix = 'epi') {
  return `bucket:
  endpoint: ${store.endpoint}
  bucket: ${store.bucket}
  prefix: ${prefix}
  region: ${store.region || 'us-east-1'}
  access_key: ${store.accessKey}
  secret_key: ${store.secretKey}
`;
}

/**
 * A cluster over `store`: members are started, killed and started again by name. Each has a directory below `dir`, and a
 * port of its own for its life. `storeOf(name)` gives a member another way to the store, `own(name)` a program and environment.
 * With `join` the shards share targets and pushes by the assignment in the bucket, whose first number has `total` of them; else by
 * a fixed total.
 */
export class Cluster {
  constructor(t, { dir, store, storeOf = () => store, total = 3, interval = '1s', prefix = 'epi', config = '', args = [], join: joins = false, own = () => ({}) }) {
    Object.assign(this, { t, dir, store, storeOf, total, interval, prefix, config, args, joins, own, members: new Map(), places: new Map() });
  }

  async shard(i, options = {}) {
    const name = `shard-${i}`;
    const port = options.port || this.members.get(name)?.port || await freePort();
    const total = `--shard.total=${this.total}`;
    const sharing = this.joins ? ['--shard.join', `--shard.address=http://127.0.0.1:${port}`, ...(i < this.total ? [total] : [])] : [total];
    return this.start(name, { ...options, port, args: ['--web.enable-ingest', '--web.enable-admin-api', `--shard.name=${name}`, ...sharing,
      `--storage.bucket.segment-interval=${this.interval}`, ...this.args, ...(options.args || [])] });
  }

  node(i, options = {}) {
    return this.start(`query-${i}`, { ...options, args: ['--mode=query', '--storage.bucket.poll-interval=1s', ...(options.args || [])] });
  }

  /** Where a member has its directory. */
  place(name) {
    return join(this.dir, this.places.get(name) ?? name);
  }

  /** The member's next start is in an empty directory, beside the one that it has; returns the old one. */
  move(name) {
    const was = this.place(name);
    this.moves = (this.moves ?? 0) + 1;
    this.places.set(name, `${name}.${this.moves}`);
    return was;
  }

  async start(name, { args = [], config = '', ready = true, port } = {}) {
    const dir = this.place(name);
    mkdirSync(dir, { recursive: true });
    const was = this.members.get(name);
    // Another owner's lease is waited for, a minute.
    const server = await startServer(this.t, { ...this.own(name), dir, ready, port: port ?? was?.port ?? 0, seconds: 60,
      config: `${bucketSection(this.storeOf(name), this.prefix)}${this.config}${config}`, args });
    server.name = name;
    server.dir = dir;
    if (ready) this.members.set(name, server);
    return server;
  }

  get(name) {
    return this.members.get(name);
  }

  async kill(name, signal = 'SIGKILL') {
    await this.get(name).stop(signal);
  }

  /** A disk that is lost. */
  wipe(name) {
    rmSync(join(this.place(name), 'data'), { recursive: true, force: true, maxRetries: 10 });
  }
}

/**
 * Pushes profiles to one shard, one after the other, and notes what was acknowledged. A profile that was not acknowledged is
 * sent again until it is: the same series, time and bytes are stored once. stop() waits for that too, since a shard that loses
 * its lease while it stores a profile refuses the push and has the profile. Who sets `stopped` gives up at once.
 */
export class Pusher {
  constructor(server, { job = 'calls', pods = 4, seed = 1 } = {}) {
    Object.assign(this, { server, job, pods, seed, acknowledged: [], ending: false, stopped: false, n: 0, failures: 0 });
  }

  begin(gapMs = 10) {
    this.loop = (async () => {
      while (!this.ending && !this.stopped) {
        await this.push();
        await sleep(gapMs);
      }
    })();
    return this;
  }

  async push() {
    const i = this.n++;
    const one = { pod: `${this.server().name}-${i % this.pods}`, at: Date.now() / 1000, name: `main.f${(i * 7 + this.seed) % 5}`,
      value: 1 + ((i * 2654435761 + this.seed * 40503) % 1000) };
    const body = profile(one.name, one.value), end = Date.now() + HANGS_S * 1000;
    while (!this.stopped) {
      const url = `${this.server().url}/api/v1/ingest?name=process_cpu&job=${this.job}&pod=${one.pod}&time=${one.at.toFixed(3)}`;
      const answer = await request(url, { method: 'POST', body }).catch((e) => ({ status: 0, body: e.message }));
      if (answer.status >= 200 && answer.status < 300) {
        this.acknowledged.push({ ...one, acked: Date.now() / 1000 });
        return;
      }
      const later = [0, 429, 503].includes(answer.status) && Date.now() < end;
      assert.ok(later, `${this.server().name}: ${answer.status} ${answer.body}`);
      this.failures++;
      await sleep(50);
    }
  }

  async stop() {
    this.ending = true;
    await this.loop;
    return this.acknowledged;
  }
}

/** What each answer says over the time of a shard that goes on with another directory, before all of the old one was put. */
export const UNSENT = /the shard goes on with another data directory: data that the one before took/;

/** What the bucket has of a shard, as its manifest says. */
export async function manifestOf(s3, shard, prefix = 'epi') {
  const text = (await s3.get(`${prefix}/shards/${shard}/manifest`)).toString();
  // A time in nanoseconds is no exact number.
  return { ...JSON.parse(text), throughMs: Number(BigInt(/"through_ns": *(\d+)/.exec(text)[1]) / 1000000n) };
}

/** Sums by function of what was acknowledged. */
export function sums(list) {
  const by = {};
  for (const one of list) by[one.name] = (by[one.name] || 0) + one.value;
  return by;
}

/** Sums by function of what a server has: { functions, warnings }. */
export async function stored(server, selector = '{job="calls"}', from = Date.now() / 1000 - 7200) {
  const params = { query: `flat(merge(process_cpu:samples${selector}))`, start: from, end: Date.now() / 1000 + 60 };
  const res = await request(`${server.url}/api/v1/query?${new URLSearchParams(params)}`);
  const answer = JSON.parse(res.body);
  if (answer.status !== 'success') throw new Error(`${res.status} ${answer.error}`);
  const functions = {};
  for (const one of answer.data.result) functions[one.metric.function] = Number(one.value[1]);
  return { functions, warnings: answer.warnings || [] };
}


