#!/usr/bin/env node
// A cluster on this machine, to kill its members while one looks at it. `make cluster` starts it; Ctrl-C ends all.
//
//   run.mjs                     starts everything, prints names, pids and addresses, and what happens from then on
//   run.mjs kill|start NAME     kill -9, and start again; `kill -9 PID` does the same
//   run.mjs pause|resume NAME   the process stands still: its connections stay open and silent
//   run.mjs wipe NAME           kill -9, and its disk is lost
//   run.mjs add                 one more shard; the others give up their parts
//   run.mjs drain NAME          the others take over what a shard scrapes; it may be killed then
//   run.mjs status, stop
//
// Environment, all of it optional:
//   EPI_S3_ENDPOINT, EPI_S3_BUCKET   a store of yours instead of Ceph; the keys as for AWS's programs (AWS_ACCESS_KEY_ID, ...)
//   EPI_S3_REGION, EPI_S3_PREFIX     us-east-1, epimetheus-demo
//   EPI_PORT       of query-0; the others follow. 7372; 0: any free ones
//   EPI_DIR        where configuration, data and logs are (build/cluster)
//   EPI_BUILD      has the program (build)
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { copyFileSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { Ceph, control, fetchCeph, freePort, tell } from '../../tests/ceph.mjs';
import { api, buildDemo, epimetheus, epitool, root, sleep } from '../../tests/e2e/lib.mjs';
import { Member } from './member.mjs';

const SHARDS = 3;
const NODES = 2;
const SHOPS = 2; // of each shard: version v1, version v2
const OSDS = 3;
const END_SECONDS = 30; // for an orderly end; then SIGKILL

const own = 'examples/cluster';
const env = process.env;
const me = `${env.EPI_DIR ? `EPI_DIR=${env.EPI_DIR} ` : ''}${own}/run.mjs`;
const dir = resolve(env.EPI_DIR || join(root, 'build/cluster'));
const say = (text) => console.log(`${new Date().toTimeString().slice(0, 8)}  ${text}`);
const range = (n) => Array.from({ length: n }, (_, i) => i);

function isFree(port) {
  return new Promise((done) => {
    const server = createServer();
    server.on('error', () => done(false));
    server.listen(port, '127.0.0.1', () => server.close(() => done(true)));
  });
}

/** The first free port from this one on. */
async function nextPort(from) {
  for (let port = from; port < 65536; port++) if (await isFree(port)) return port;
  throw new Error('No port is free');
}

/** Once all end nothing is started any more. */
function goesOn() {
  if (stopping) throw new Error('All end');
}

/** One of the query nodes has the lease of the rules. */
async function hasRules(member) {
  if (!member.name.startsWith('query') || !member.pid()) return false;
  const answer = api(member, 'status/cluster').then(({ shards }) => shards.some((s) => s.name === 'rules' && s.state === 'own'));
  return Promise.race([answer, sleep(2000)]).catch(() => false);
}

/** The demo program; without Go the shards scrape the members alone. */
function buildShop() {
  try {
    return buildDemo();
  } catch (e) {
    say(`The demo fleet is left out: ${`${e.stderr || e.message}`.trim().split('\n').at(-1)}`);
    return undefined;
  }
}

class Cluster {
  constructor() {
    Object.assign(this, { dir: '.', members: new Map() });
  }

  // ---- start

  async begin() {
    control(this, ['kill', 'start', 'pause', 'resume', 'wipe', 'add', 'drain', 'status', 'quit']);
    for (const name of ['log', 'data']) rmSync(name, { recursive: true, force: true, maxRetries: 10 });
    mkdirSync('log');
    await this.choosePorts();
    const named = env.EPI_S3_ENDPOINT && this.namedStore();
    this.shop = buildShop();
    const store = named || (await this.beginCeph());
    this.configure(store);
    say(`${SHARDS} shards and ${NODES} query nodes begin`);
    await this.beginMembers([...this.members.values()]);
    await this.beginShops();
    console.log(await this.introduction());
  }

  async beginMembers(list) {
    goesOn();
    await Promise.all(list.map((m) => m.start()));
  }

  async choosePorts() {
    const first = Number(env.EPI_PORT ?? 7372);
    if (!Number.isInteger(first) || first < 0 || first > 65000) throw new Error(`EPI_PORT is ${env.EPI_PORT}; it may be 0 to 65000`);
    this.ports = [];
    while (this.ports.length < NODES + SHARDS) {
      const port = first ? first + this.ports.length : await freePort();
      if (first && !(await isFree(port))) throw new Error(`127.0.0.1:${port} is in use already: EPI_PORT=PORT chooses others`);
      if (!this.ports.includes(port)) this.ports.push(port);
    }
  }

  namedStore() {
    if (!env.EPI_S3_BUCKET) throw new Error('EPI_S3_ENDPOINT is set, but not EPI_S3_BUCKET');
    return { endpoint: env.EPI_S3_ENDPOINT, bucket: env.EPI_S3_BUCKET, env };
  }

  async beginCeph() {
    if (!existsSync(join(root, 'build/ceph/.unpacked'))) say('Ceph is fetched: Debian\'s packages, 260 MB below build/, once');
    fetchCeph();
    goesOn();
    say(`Ceph begins: a monitor, ${OSDS} OSDs, an S3 gateway`);
    this.ceph = new Ceph({ dir: join(tmpdir(), `epi-ceph-${randomBytes(6).toString('hex')}`), osds: OSDS,
      ended: (name, how) => this.ended(name, how) });
    await this.ceph.begin();
    const { endpoint, bucket, accessKey, secretKey } = this.ceph;
    const mine = Object.fromEntries(Object.entries(env).filter(([name]) => !name.startsWith('AWS_')));
    return { endpoint, bucket, env: { ...mine, AWS_ACCESS_KEY_ID: accessKey, AWS_SECRET_ACCESS_KEY: secretKey } };
  }

  configure(store) {
    const values = { endpoint: store.endpoint, bucket: store.bucket, prefix: env.EPI_S3_PREFIX || 'epimetheus-demo',
      region: env.EPI_S3_REGION || 'us-east-1' };
    let text = readFileSync(join(root, own, 'epimetheus.yml'), 'utf8');
    for (const [name, value] of Object.entries(values))
      text = text.replace(new RegExp(`^( {2}${name}:).*$`, 'm'), (_, key) => `${key} ${JSON.stringify(value)}`);
    writeFileSync('epimetheus.yml', text);
    copyFileSync(join(root, own, 'rules.yml'), 'rules.yml');
    this.bucket = `${values.endpoint}/${values.bucket}/${values.prefix}`;
    const server = (name, port, about, args) => this.addMember({ name, port, about, program: epimetheus, env: store.env, path: '/-/ready',
      args: ['--config.file=epimetheus.yml', `--storage.tsdb.path=data/${name}`, `--web.listen-address=127.0.0.1:${port}`, ...args] });
    for (const i of range(NODES)) server(`query-${i}`, this.ports[i], 'query node: all profiles', ['--mode=query', '--storage.bucket.poll-interval=2s']);
    this.storeEnv = store.env;
    this.addShard = (i, port) => server(`shard-${i}`, port, 'shard: its own profiles', [`--shard.name=shard-${i}`, '--shard.join',
      `--shard.address=http://127.0.0.1:${port}`, '--storage.bucket.segment-interval=5s', '--web.enable-ingest']);
    for (const i of range(SHARDS)) this.addShard(i, this.ports[NODES + i]);
    this.shards = SHARDS;
    this.targets('shop', []);
    this.scrapeMembers();
  }

  scrapeMembers() {
    this.targets('members', [{ targets: this.ports.map((port) => `127.0.0.1:${port}`) }]);
  }

  addMember(options) {
    this.members.set(options.name, new Member({ ...options, ended: (name, how) => this.ended(name, how) }));
  }

  /** What file discovery reads: whole or not at all. */
  targets(name, groups) {
    writeFileSync(`${name}.json.tmp`, JSON.stringify(groups, null, 1));
    renameSync(`${name}.json.tmp`, `${name}.json`);
  }

  /**
   * Instances of the demo, as many for each of the first shards. A target's address decides which shard scrapes it: shard-0 is
   * asked which one would scrape a free port, once all have joined.
   */
  async beginShops() {
    const ports = range(SHARDS).map(() => []);
    await this.joined(SHARDS);
    while (this.shop && ports.some((list) => list.length < SHOPS)) {
      const port = await freePort();
      const labels = JSON.stringify({ __address__: `127.0.0.1:${port}` });
      const { profiles } = await api(this.members.get('shard-0'), 'targets/relabel_steps', { scrapePool: 'shop', labels });
      const list = ports[Number(/shard-(\d+)/.exec(profiles[0].reason)?.[1] ?? 0)];
      if (list && list.length < SHOPS && !list.includes(port)) list.push(port);
    }
    const shops = ports.flatMap((list, shard) => list.map((port, i) => ({ port, version: `v${i + 1}`, name: `shop-${shard * SHOPS + i}`,
      about: `demo, version v${i + 1}, scraped by shard-${shard}` })));
    for (const { port, version, name, about } of shops)
      this.addMember({ name, port, about, env, program: this.shop, path: '/debug/pprof/',
        args: [`--listen=127.0.0.1:${port}`, `--version-label=${version}`, '--load=12'] });
    await this.beginMembers(shops.map(({ name }) => this.members.get(name)));
    this.targets('shop', shops.map(({ port, version, name }) =>
      ({ targets: [`127.0.0.1:${port}`], labels: { version, pod: name, service_name: 'shop' } })));
  }

  /** The first n shards share the targets; who is left of another run in the same store is drained. */
  async joined(n) {
    const { shards } = JSON.parse(await this.bucketTool('shards', '--json'));
    for (const { shard } of shards.filter((s) => s.member && !this.members.has(s.shard))) await this.bucketTool('drain', '--no-wait', shard);
    const follows = async (i) => {
      const { shard } = await api(this.members.get(`shard-${i}`), 'status/cluster');
      const list = shard.members?.filter((m) => m.member) ?? [];
      return list.length === n && list.every((m) => m.follows >= shard.assignment || m.ended);
    };
    for (let tries = 0; tries < 300 && !stopping; tries++) {
      if ((await Promise.all(range(n).map((i) => follows(i).catch(() => false)))).every(Boolean)) return;
      await sleep(200);
    }
    goesOn();
    throw new Error('The shards have not joined each other within a minute');
  }

  // ---- commands

  cephNames() {
    return this.ceph ? ['rgw', 'mon', ...this.ceph.osdNames()] : [];
  }

  find(name) {
    if (this.members.has(name)) return this.members.get(name);
    if (this.cephNames().includes(name)) return undefined;
    throw new Error(`${name} is none of ${[...this.members.keys(), ...this.cephNames()].join(', ')}`);
  }

  async kill(name) {
    await (this.find(name) ?? this.ceph).kill(name);
    say(`${name} is killed; ${me} start ${name}`);
  }

  async start(name) {
    const began = Date.now();
    const member = this.find(name);
    goesOn();
    say(`${name} begins`);
    await (member ?? this.ceph).start(name).catch((e) => {
      say(e.message);
      throw e;
    });
    say(`${name} is there again, after ${((Date.now() - began) / 1000).toFixed(1)} s, pid ${(member ?? this.ceph).pid(name)}`);
  }

  async pause(name) {
    await (this.find(name) ?? this.ceph).pause(name);
    say(`${name} stands still; ${me} resume ${name}`);
  }

  async resume(name) {
    await (this.find(name) ?? this.ceph).resume(name);
    say(`${name} goes on`);
  }

  async wipe(name) {
    const member = this.find(name);
    if (!member?.args.some((a) => a.startsWith('--storage.tsdb.path='))) throw new Error(`${name} has no data directory`);
    if (member.pid()) await member.kill();
    rmSync(`data/${name}`, { recursive: true, force: true, maxRetries: 10 });
    say(`${name} is killed, and its disk is lost; ${me} start ${name}`);
  }

  async add() {
    const port = Number(env.EPI_PORT ?? 7372) ? await nextPort(Math.max(...this.ports) + 1) : await freePort();
    const name = `shard-${this.shards}`;
    this.addShard(this.shards++, port);
    this.ports.push(port);
    await this.start(name);
    this.scrapeMembers();
    say(`${name} joins; the others give up their parts within some seconds`);
    return this.bucketTool('shards');
  }

  async drain(name) {
    if (!name.startsWith('shard-')) throw new Error(`${name} is no shard`);
    this.find(name);
    const text = await this.bucketTool('drain', name);
    say(`${name} has no targets any more; ${me} kill ${name}`);
    return text;
  }

  async bucketTool(...args) {
    const { stdout } = await promisify(execFile)(epitool, ['bucket', ...args, '--config.file=epimetheus.yml'], { env: this.storeEnv });
    return stdout.trimEnd();
  }

  async quit() {
    setTimeout(() => stop(0), 10);
  }

  async status() {
    const rows = await Promise.all([...this.members.values()].map(async (m) =>
      [m.name, m.state(), `${m.url}/`, `${m.about}${(await hasRules(m)) ? ', evaluates the rules' : ''}`]));
    const about = { rgw: 'Ceph: S3 gateway', mon: 'Ceph: monitor' };
    for (const name of this.cephNames()) {
      const pid = this.ceph.pid(name);
      rows.push([name, pid ? `pid ${pid}` : 'dead', name === 'rgw' ? `${this.ceph.endpoint}/` : '', about[name] ?? 'Ceph: a disk']);
    }
    const widths = [0, 1, 2].map((i) => Math.max(...rows.map((row) => row[i].length)) + 2);
    return rows.map((row) => `  ${row.map((text, i) => text.padEnd(widths[i] ?? 0)).join('').trimEnd()}`).join('\n');
  }

  async introduction() {
    const { url } = this.members.get('query-0');
    return `
  Epimetheus on ${SHARDS} shards and ${NODES} query nodes, over the object store ${this.bucket}

${await this.status()}

  Open ${url}/ (all profiles; the first after about 20 seconds) and ${url}/cluster (the shards).
  Then kill what you like, by these commands or by kill -9 PID. It stays dead until you start it.

    ${me} kill shard-1      also query-0, shop-3${this.ceph ? ', rgw, mon, osd.1' : ''}
    ${me} start shard-1
    ${me} wipe shard-2      kills it, and its disk is lost; start it again
    ${me} pause ${this.ceph ? 'rgw' : 'shard-0'}         it stands still, until: resume ${this.ceph ? 'rgw' : 'shard-0'}
    ${me} add               one more shard; and back: drain shard-3
    ${me} status

  Logs are in ${join(dir, 'log')}. Ctrl-C ends all.
`;
  }

  // ---- what happens

  ended(name, how) {
    if (!stopping) say(`${name} ended (${how}); ${me} start ${name}`);
  }

  async end() {
    const list = [...this.members.values()];
    await Promise.all(list.map((m) => m.end(END_SECONDS)));
    await this.ceph?.end();
    for (const name of ['data', 'control']) rmSync(name, { recursive: true, force: true, maxRetries: 10 });
  }
}

let cluster;
let stopping;

/** In order; whoever is in a hurry asks twice. */
function stop(code) {
  if (stopping) {
    for (const member of cluster.members.values()) member.run?.child.kill('SIGKILL');
    return stopping;
  }
  say('All end');
  stopping = cluster.end().then(() => {
    say('All have ended');
    process.exit(code);
  });
  return stopping;
}

async function begin() {
  if (await tell('.', 'status').catch(() => undefined)) throw new Error(`A cluster runs already in ${dir}: ${me} stop`);
  rmSync('control', { force: true });
  cluster = new Cluster();
  process.stdout.on('error', () => {}); // the terminal was closed, and SIGHUP comes
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => stop(0));
  await cluster.begin().catch((e) => {
    if (!stopping) console.error(e.message);
    return stop(1);
  });
}

async function main([command = 'run', ...names]) {
  mkdirSync(dir, { recursive: true });
  process.chdir(dir); // the path of a socket may be too long
  if (command === 'run' && !names.length) return begin();
  if (names.length !== (['add', 'status', 'stop'].includes(command) ? 0 : 1)) throw new Error(`usage: ${me} [kill|start|pause|resume|wipe|drain NAME | add | status | stop]`);
  const text = await tell('.', [command === 'stop' ? 'quit' : command, ...names].join(' ')).catch((e) => {
    throw ['ENOENT', 'ECONNREFUSED'].includes(e.code) ? new Error(`No cluster runs in ${dir}`) : e;
  });
  if (text) console.log(text);
  while (command === 'stop' && existsSync('control')) await sleep(100);
  return undefined;
}

main(process.argv.slice(2)).catch((e) => {
  console.error(e.message);
  process.exit(1);
});
