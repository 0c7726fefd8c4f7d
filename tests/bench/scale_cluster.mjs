// A small cluster whose requests are counted: shards that scrape, and query nodes, over the fake store, with short windows. Each
// member has keys of its own, so the store knows whose a request is.
import { createServer } from 'node:http';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { S3Fake } from '../s3_fake.mjs';
import { sleep, startServer } from '../e2e/lib.mjs';
import { profile } from '../e2e/shards.mjs';
import { nothing } from './scale_model.mjs';

const FIRST_TARGET = 1; // 127.1.0.1

const flags = (o) => Object.entries(o).map(([name, value]) => `--${name}=${value}`);

/** Servers at 127.1.0.1 and on, all on one port; fn(i, path) gives a body. Gives their addresses. */
export async function listenAll(t, n, fn) {
  const servers = Array.from({ length: n }, (_, i) => createServer((req, res) => {
    const url = new URL(req.url, 'http://x');
    setTimeout(() => res.end(fn(i, url.pathname)), 1000 * Number(url.searchParams.get('seconds') ?? 0));
  }));
  t.after(() => { for (const s of servers) { s.close(); s.closeAllConnections(); } });
  const listen = (s, port, host) => new Promise((done, fail) => {
    s.on('error', fail);
    s.listen(port, host, () => done(s.address().port));
  });
  const host = (i) => `127.1.0.${FIRST_TARGET + i}`;
  const port = await listen(servers[0], 0, host(0));
  for (let i = 1; i < n; i++) await listen(servers[i], port, host(i));
  return servers.map((_, i) => `${host(i)}:${port}`);
}

/** Targets with small profiles. */
export function startTargets(t, n) {
  const bodies = Array.from({ length: 8 }, (_, i) => profile(`main.f${i}`, 1 + i));
  let k = 0;
  return listenAll(t, n, () => bodies[k++ % bodies.length]);
}

export class CountedCluster {
  constructor(t, { dir, config = '', shardFlags = {}, nodeFlags = {} }) {
    Object.assign(this, { t, dir, config, shardFlags, nodeFlags, members: new Map() });
  }

  async open() {
    this.fake = await new S3Fake().listen();
    this.t.after(() => this.fake.close());
    return this;
  }

  async start(name, args, config = '') {
    const dir = join(this.dir, name), accessKey = `AK-${name}`;
    mkdirSync(dir, { recursive: true });
    this.fake.keys.set(accessKey, { secretKey: this.fake.secretKey });
    const server = await startServer(this.t, { dir, args, config: `bucket:
  endpoint: ${this.fake.endpoint}
  bucket: ${this.fake.bucket}
  access_key: ${accessKey}
  secret_key: ${this.fake.secretKey}
${config}` });
    server.startS = Date.now() / 1000;
    server.accessKey = accessKey;
    this.members.set(name, server);
    return server;
  }

  shard(i, total, more = {}) {
    return this.start(`shard-${i}`, flags({ 'shard.name': `shard-${i}`, 'shard.total': total, ...this.shardFlags, ...more }), this.config);
  }

  node(i, more = {}) {
    return this.start(`query-${i}`, flags({ mode: 'query', ...this.nodeFlags, ...more }));
  }

  /** Requests of a member so far, but those for what is beside profiles: by kind, and by kind and what they are for. */
  requestsOf(name) {
    const { accessKey } = this.members.get(name), kinds = nothing(), whats = {};
    for (const r of this.fake.requests) {
      if (r.accessKey !== accessKey || BESIDE.test(r.key || r.query?.prefix || '')) continue;
      const kind = r.key === '' || r.query?.['list-type'] ? 'list' : r.method.toLowerCase();
      kinds[kind]++;
      const what = `${kind} ${whatIs(r.key)}`;
      whats[what] ??= { requests: 0, bytes: 0 };
      whats[what].requests++;
      whats[what].bytes += r.size;
    }
    return { kinds, whats };
  }

  /** Objects below shards/NAME/, with their sizes; and its manifest, parsed. */
  objectsOf(name) {
    const all = this.fake.touch('GET', '').filter((o) => o.key.startsWith(`shards/${name}/`));
    const text = this.fake.touch('GET', `shards/${name}/manifest`).toString();
    return { all, text, manifest: JSON.parse(text) };
  }

  async settle(seconds) {
    await sleep(seconds * 1000);
  }
}

/** Symbols, kept files, and lists for people. */
const BESIDE = /^(symbols|files|senders|targets|evaluated)\//;

function whatIs(key) {
  const m = key.match(/^shards\/[^/]+\/(.*)$/);
  if (!m) return key.startsWith('probe/') ? 'probe' : 'list';
  if (m[1] === 'manifest') return 'manifest';
  if (m[1].startsWith('head/')) return 'segment';
  if (m[1].startsWith('blocks/')) return m[1].split('/')[2].replace(/-[0-9a-f]{16}$/, '');
  return m[1].startsWith('files/') ? m[1].slice(6).replace(/-[0-9a-f]{16}$/, '') : 'list';
}
