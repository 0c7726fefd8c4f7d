// A campaign of kills against a cluster on a real object store:
//
//   make campaign KILLS=300 SEED=1        node tests/e2e/campaign.mjs --kills=300 --seed=1
//
// A Ceph cluster with three disks, shards that share what comes, two query nodes, a caretaker. A seed draws who is killed, what is
// lost with it and for how long, what becomes of the members' connections to the store, and when a shard joins or is drained.
// Meanwhile streams of profiles are pushed through all shards, again and through another one where no answer came, and what was
// acknowledged is written down (ledger.mjs). Each query node is asked all the time. What must hold:
//
// - A sum that a query node gives for a stream is that of a prefix of what was acknowledged. If the answer warns of a shard that
//   keeps the stream, it may lack more; never does it have more, whichever shards got the same profile.
//   A stream that has just moved to another shard may lack the last seconds before that, and have later ones.
// - What is acknowledged OLDEST_MS before the question is in each answer that does not warn of its shard.
// - A shard that was killed has all that it keeps. One that lost its disk has all until `through` in its manifest, and
//   so has a spare with an empty directory that took the name of one that was paused for longer than its lease; each answer
//   over that time says so. Who was paused ends.
// - A shard that joins or is drained needs no restart of another one, and a stream that moves stays whole.
// - After each kill, and at the end, query nodes have everything again. When the shards have stopped in order they say so
//   without a warning, and so does a new one.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { S3, startCeph } from './ceph.mjs';
import { FAULTS, FaultProxy } from './fault_proxy.mjs';
import { Ledger, LedgerPusher } from './ledger.mjs';
import { epitool, finish, freePort, request, sleep, until } from './lib.mjs';
import { Cluster, manifestOf, UNSENT } from './shards.mjs';

const SHARDS = 4; // the last one joins later, if at all
const STREAMS = 8;
const NODES = 2;
const INTERVAL_MS = 2000;
const LEASE_MS = 10000; // the store is away for longer at times: then pushes are refused
const OLDEST_MS = 2 * INTERVAL_MS + 1000;
const RANGE_MS = 150000; // what is asked for; retention is longer
const SHARD_ARGS = ['--storage.tsdb.window=10s', '--storage.tsdb.out-of-order-time-window=10s', '--storage.tsdb.retention.time=4m',
  '--storage.tsdb.max-block-duration=40s', '--storage.bucket.delete-delay=60s', `--shard.lease=${LEASE_MS}ms`];
const KEEPER_ARGS = ['--mode=compact', '--storage.bucket.poll-interval=2s', '--storage.tsdb.retention.time=4m',
  '--storage.bucket.delete-delay=60s'];

/** Kinds and how often they are drawn; `first` are drawn once each before all others. */
const KINDS = [
  ['shard', 20], ['shard-start', 6], ['shard-stop', 4], ['shard-disk', 4], ['shard-pause', 4], ['assign', 3], ['query', 10], ['query-disk', 10], ['caretaker', 6],
  ['rgw', 8], ['osd', 8], ['rgw-pause', 4], ...FAULTS.map((fault) => [`net-${fault}`, 5]),
];

/** The same numbers for the same seed. */
function draws(seed) {
  let a = seed >>> 0;
  return () => {
    a = (a + 0x6d2b79f5) >>> 0;
    let t = Math.imul(a ^ (a >>> 15), a | 1);
    t = (t + Math.imul(t ^ (t >>> 7), t | 61)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

const seconds = (ms) => `${(ms / 1000).toFixed(1)} s`;

export class Campaign {
  constructor(t, { kills, seed, dir, kinds = KINDS, gapMs = 20, print = console.log }) {
    Object.assign(this, { t, kills, seed, dir, kinds, gapMs, print, random: draws(seed), began: Date.now(), out: new Set(), restarts: 0 });
    this.counts = Object.fromEntries(kinds.map(([kind]) => [kind, 0]));
    this.answers = { all: 0, warned: 0, failed: 0, oldest: 0, oldestWarned: 0 };
    this.latest = new Map(); // of each query node: { asked, has: Map of shard to number }
    this.lost = { profiles: 0, oldestMs: 0 };
    this.started = SHARDS - 1; // shards that run
    this.drained = false; // the last one
    this.owner = new Map(); // of each stream: the shard that keeps what comes now
    this.owners = new Map(); // of each stream: a set of shards that may have some of it
    this.slowest = 0;
  }

  // ---- life

  async begin() {
    this.ceph = await startCeph(this.t, { osds: 3 });
    this.s3 = new S3(this.ceph);
    this.proxies = new Map();
    for (const name of this.names()) {
      const proxy = await new FaultProxy(this.ceph.endpoint).listen();
      this.t.after(() => proxy.close());
      this.proxies.set(name, proxy);
    }
    const storeOf = (name) => ({ ...this.ceph, endpoint: (this.proxies.get(name) ?? this.ceph).endpoint });
    this.cluster = new Cluster(this.t, { dir: this.dir, store: this.ceph, storeOf, join: true, total: SHARDS - 1, interval: `${INTERVAL_MS}ms`, args: SHARD_ARGS });
    this.ledgers = new Map();
    this.pushers = new Map();
    await Promise.all(this.shards().map((name) => this.up(name)));
    await Promise.all([...this.nodes(), 'keeper'].map((name) => this.up(name)));
    for (let i = 0; i < STREAMS; i++) {
      const stream = `stream-${i}`;
      const ledger = new Ledger(stream, this.seed + i);
      this.ledgers.set(stream, ledger);
      this.owners.set(stream, new Set(this.all()));
      this.pushers.set(stream, new LedgerPusher(ledger, () => this.doors(), () => this.settle(stream)));
      this.push(stream);
    }
    await this.findOwners();
    for (const [stream, owner] of this.owner) this.owners.set(stream, new Set([owner]));
    this.checkers = this.nodes().map((name) => this.check(name));
  }

  all() { return Array.from({ length: SHARDS }, (_, i) => `shard-${i}`); }
  shards() { return this.all().slice(0, this.started); }
  nodes() { return Array.from({ length: NODES }, (_, i) => `query-${i}`); }
  names() { return [...this.all(), ...this.nodes(), 'keeper']; }
  streamsOf(shard) { return [...this.owner].filter(([, owner]) => owner === shard).map(([stream]) => stream); }
  keeps(stream, shard) { return this.owners.get(stream).has(shard); }
  isOut(stream) { return [...this.out].some((shard) => this.keeps(stream, shard)); }

  /** Where a balancer sends pushes, also to shards that it does not know to be dead. */
  doors() { return this.shards().map((name) => this.cluster.get(name)).filter(Boolean); }

  async assignment() {
    return JSON.parse(await this.s3.get('epi/assignment'));
  }

  /** All shards follow the newest assignment, and it decides about what is pushed from now on. */
  async inForce() {
    const { number, versions } = await this.assignment();
    await this.until(`all follow assignment ${number}`, 90, async () => (await Promise.all(this.shards().map((shard) => manifestOf(this.s3, shard)))).every((m) => m.assignment === number));
    const { since_ns: since } = versions.find((version) => version.number === number);
    await this.until(`assignment ${number} is in force`, 300, () => Date.now() > since / 1e6);
  }

  /** Which shard keeps what comes now, as the shards themselves answer. */
  async findOwners() {
    const began = Date.now();
    await this.until('each stream has gone on', 60, () => [...this.ledgers.values()].every((l) => l.acked && l.list[l.acked - 1].at > began));
    for (const shard of this.shards()) {
      const answer = await this.until(`${shard} answers`, 60, () => this.ask(this.cluster.get(shard), began));
      for (const stream of this.ledgers.keys())
        if (Object.keys(answer.functions).some((name) => name.startsWith(`${stream}.`))) this.owner.set(stream, shard);
    }
    for (const [stream, owner] of this.owner) this.owners.get(stream).add(owner);
  }

  fail(error) {
    this.failed ??= error;
  }

  /** As until(); what fails meanwhile ends it. */
  async until(what, seconds, fn) {
    const value = await until(what, seconds, async () => this.failed || await fn());
    if (this.failed) throw this.failed;
    return value;
  }

  push(stream) {
    const pusher = this.pushers.get(stream);
    pusher.go(this.gapMs);
    pusher.loop.catch((e) => this.fail(e));
  }

  hold(streams) { return Promise.all(streams.map((stream) => this.pushers.get(stream).hold())); }

  launch(name, port = this.cluster.get(name)?.port) {
    const options = { ready: false, port };
    if (name === 'keeper') return this.cluster.start(name, { ...options, args: KEEPER_ARGS });
    const i = Number(name.at(-1));
    return name.startsWith('shard') ? this.cluster.shard(i, options) : this.cluster.node(i, options);
  }

  /** Starts a member, again if it ends before it is ready, as a service manager does. */
  async up(name, own) {
    for (let attempt = 0; attempt < 5; attempt++) {
      const server = await this.launch(name, own);
      const port = await until(`${name} is ready`, 90, () => (server.code !== undefined ? 'ended'
        : server.err.match(/msg=ready\b.*\bport=(\d+)/)?.[1]));
      if (port !== 'ended') {
        server.port = port;
        server.url = `http://127.0.0.1:${port}`;
        this.cluster.members.set(name, server);
        server.ended.then(() => {
          if (!server.wanted) this.fail(new Error(`${name} ended by itself with ${server.code ?? server.signal}: ${server.err.slice(-3000)}`));
        });
        return server;
      }
      this.restarts++;
      this.print(`  ${name} ended at its start: ${server.err.trim().split('\n').at(-1)}`);
      await sleep(1000);
    }
    throw new Error(`${name} does not start`);
  }

  async down(name, signal = 'SIGKILL') {
    const server = this.cluster.get(name);
    server.wanted = true;
    await server.stop(signal);
  }

  // ---- checks

  async ask(server, startMs) {
    const params = { query: 'flat(merge(process_cpu:samples{job="calls"}))', start: (startMs / 1000).toFixed(3), end: Date.now() / 1000 + 60 };
    const res = await request(`${server.url}/api/v1/query?${new URLSearchParams(params)}`);
    const answer = JSON.parse(res.body);
    if (answer.status !== 'success') return undefined;
    const functions = {};
    for (const one of answer.data.result) functions[one.metric.function] = Number(one.value[1]);
    // What a disk took is said for ever; the ledgers know it, and such an answer is judged as one without a warning.
    const warnings = answer.warnings || [];
    return { functions, warnings: warnings.filter((w) => !UNSENT.test(w)), unsent: warnings.some((w) => UNSENT.test(w)) };
  }

  /** What the answer has of each stream; throws where that cannot be. */
  judge(name, answer, asked, startMs) {
    const has = new Map();
    const general = answer.warnings.some((w) => !/\bshard-\d\b/.test(w));
    for (const [stream, ledger] of this.ledgers) {
      const warned = general || answer.warnings.some((w) => [...this.owners.get(stream)].some((shard) => w.includes(shard)));
      const k = ledger.find(answer.functions, startMs);
      const say = (what) => new Error(`${name}, asked at ${new Date(asked).toISOString()} for all since ${new Date(startMs).toISOString()}, `
        + `${what}: ${JSON.stringify(answer)}; sent ${ledger.list.length}, acknowledged ${ledger.acked}, in this time `
        + `${JSON.stringify(ledger.by.at(-1).map((v, i) => v - ledger.by[ledger.behind(startMs)][i]))}, kept by ${[...this.owners.get(stream)]}`);
      if (k < 0 && !ledger.holds(answer.functions, startMs)) throw say(`has too much of ${stream}`);
      if (k < 0 && !warned && !(this.moving && ledger.reaches(answer.functions, startMs, asked - OLDEST_MS))) throw say(`has wrong sums of ${stream}`);
      const next = k < 0 ? undefined : ledger.list[k];
      const age = next?.acked ? Math.max(0, asked - next.acked) : 0;
      if (k >= 0) has.set(stream, k);
      if (warned) {
        this.answers.oldestWarned = Math.max(this.answers.oldestWarned, age);
      } else if (!this.isOut(stream)) { // what went with its disk is not known until it is back
        this.answers.oldest = Math.max(this.answers.oldest, age);
        if (age > OLDEST_MS) throw say(`lacks what ${stream} had acknowledged ${seconds(age)} before, without a warning`);
      }
    }
    return has;
  }

  /** Asks a query node until the end. */
  async check(name) {
    while (!this.ended) {
      const server = this.cluster.get(name);
      const asked = Date.now();
      const startMs = asked - RANGE_MS;
      const answer = await this.ask(server, startMs).catch(() => undefined);
      if (answer) {
        try {
          this.latest.set(name, { asked, has: this.judge(name, answer, asked, startMs) });
        } catch (e) {
          this.fail(e);
        }
        this.answers.all++;
        if (answer.warnings.length) this.answers.warned++;
      } else {
        this.answers.failed++;
      }
      await sleep(200);
    }
  }

  /** All query nodes have what is acknowledged now, but of shards that are out. On a busy machine they may warn all the same. */
  async everywhere(what) {
    const began = Date.now();
    const want = new Map([...this.ledgers].filter(([stream]) => !this.isOut(stream)).map(([stream, l]) => [stream, l.acked]));
    await until(`${what}: all query nodes have all`, 45, () => {
      if (this.failed) throw this.failed;
      return this.nodes().every((name) => [...want].every(([stream, n]) => {
        const { asked, has } = this.latest.get(name) ?? { asked: 0 };
        return asked > began && (this.isOut(stream) || has.get(stream) >= n);
      }));
    }).catch((e) => {
      const state = this.nodes().map((name) => `${name}: ${JSON.stringify([...this.latest.get(name)?.has ?? []])}`);
      throw this.failed ?? new Error(`${e.message}; wanted ${JSON.stringify([...want])}, ${state.join('; ')}`);
    });
    return Date.now() - began;
  }

  /** What the shards themselves have of a stream that they keep, all together. */
  async own(stream) {
    const ledger = this.ledgers.get(stream);
    return until(`the shards of ${stream} answer`, 60, async () => {
      if (this.failed) throw this.failed;
      const startMs = Date.now() - RANGE_MS;
      const functions = {};
      for (const shard of this.owners.get(stream)) {
        if (!this.shards().includes(shard)) continue;
        const answer = await this.ask(this.cluster.get(shard), startMs);
        if (!answer || answer.warnings.some((w) => !/lost|loss/.test(w))) return undefined;
        for (const [name, v] of Object.entries(answer.functions)) functions[name] = (functions[name] ?? 0) + v;
      }
      const k = ledger.find(functions, startMs);
      if (k < 0) this.fail(new Error(`the shards have wrong sums of ${stream}: ${JSON.stringify(functions)}`));
      return { k };
    });
  }

  /** Nothing of it is being pushed. The ledger is what the shards have; what was acknowledged and is gone is returned. */
  async settle(stream) {
    const { k } = await this.own(stream);
    return this.ledgers.get(stream).truncate(k);
  }

  /** A shard that was killed has what it acknowledged before. */
  async whole(shard) {
    for (const stream of this.ledgers.keys()) {
      if (!this.keeps(stream, shard) || this.isOut(stream)) continue;
      const n = this.ledgers.get(stream).acked;
      const { k } = await this.own(stream);
      if (k < n) throw new Error(`${shard} has ${k} of ${n} profiles of ${stream} that were acknowledged`);
    }
  }

  // ---- kills

  pick(list) { return list[Math.floor(this.random() * list.length)]; }
  between(from, to) { return Math.round(from + this.random() * (to - from)); }
  shardsUp() { return this.shards().filter((shard) => !this.out.has(shard)); }

  draw(n) {
    if (n < this.kinds.length) return this.kinds[n][0];
    let left = this.random() * this.kinds.reduce((sum, [, weight]) => sum + weight, 0);
    return this.kinds.find(([, weight]) => (left -= weight) < 0)[0];
  }

  async restart(name, ms, signal) {
    await this.down(name, signal);
    await sleep(ms);
    await this.up(name);
    if (name.startsWith('shard')) await this.whole(name);
    return `${name}, ${seconds(ms)} down`;
  }

  /** Killed once more while it starts. */
  async restartTwice(name, ms) {
    await this.down(name);
    const server = await this.launch(name);
    await sleep(ms);
    await server.stop('SIGKILL');
    await this.up(name);
    await this.whole(name);
    return `${name}, again ${seconds(ms)} after its start`;
  }

  /** Streams of a shard that lost what it had not put: what is gone is counted, and was not in the bucket. */
  async countLost(shard, throughMs, endMs) {
    let lost = 0, oldest = 0;
    for (const stream of this.streamsOf(shard)) {
      const ledger = this.ledgers.get(stream);
      const must = ledger.list.filter((one) => one.acked <= throughMs).length;
      const acked = ledger.list.map((one) => one.acked);
      const gone = await this.settle(stream);
      const k = ledger.list.length;
      if (k < must) throw new Error(`${shard} has ${k} profiles of ${stream}; ${must} were acknowledged before ${throughMs}`);
      lost += gone;
      if (gone) oldest = Math.max(oldest, endMs - acked[k]);
    }
    if (!(await this.ask(this.cluster.get(shard), Date.now() - RANGE_MS)).unsent) throw new Error(`${shard} does not say what it may have lost`);
    this.lost.profiles += lost;
    this.lost.oldestMs = Math.max(this.lost.oldestMs, oldest);
    this.out.delete(shard);
    for (const stream of this.streamsOf(shard)) this.push(stream);
    return `${lost} acknowledged profiles are gone and named, the oldest ${seconds(oldest)} before`;
  }

  /** It comes back when its lease has run out; other kills go on meanwhile. */
  async loseDisk(shard) {
    this.out.add(shard);
    await this.down(shard);
    const killed = Date.now();
    await this.hold(this.streamsOf(shard));
    this.cluster.wipe(shard);
    const { throughMs } = await until('the manifest', 60, () => manifestOf(this.s3, shard));
    this.back = (async () => {
      await this.up(shard);
      const said = await this.countLost(shard, throughMs, killed);
      this.print(`  ${shard} is back ${seconds(Date.now() - killed)} after it lost its disk; ${said}; its manifest said ${seconds(killed - throughMs)}`);
    })().catch((e) => this.fail(e));
    return shard;
  }

  /** A spare with an empty directory takes the name of a server that is paused for longer than its lease. */
  async takeOver(shard) {
    const old = this.cluster.get(shard);
    this.out.add(shard);
    old.wanted = true;
    old.child.kill('SIGSTOP');
    const paused = Date.now();
    await this.hold(this.streamsOf(shard));
    const { throughMs } = await manifestOf(this.s3, shard);
    const place = this.cluster.move(shard);
    await this.up(shard, await freePort());
    old.child.kill('SIGCONT');
    await until(`${shard}, which was paused, ends`, 60, () => old.code !== undefined);
    if (old.code !== 1) throw new Error(`${shard} was paused, and ended with ${old.code}: ${old.err.slice(-2000)}`);
    rmSync(place, { recursive: true, force: true, maxRetries: 10 });
    return `${shard}, taken over after ${seconds(Date.now() - paused)}; ${await this.countLost(shard, throughMs, paused)}`;
  }

  /** One shard more, or one less, while the others go on. */
  async assign() {
    this.moving = true;
    const last = this.all().at(-1);
    for (const owners of this.owners.values()) this.all().forEach((shard) => owners.add(shard));
    const change = this.started < SHARDS ? 'joins' : this.drained ? 'admit' : 'drain';
    if (change === 'joins') {
      this.started = SHARDS;
      await this.up(last);
    } else {
      const file = join(this.cluster.get(last).dir, 'epimetheus.yml');
      const run = await finish(this.t, epitool, ['bucket', change, `--config.file=${file}`, last]);
      if (run.code) throw new Error(`epitool bucket ${change}: ${run.err}${run.out}`);
      this.drained = change === 'drain';
    }
    await this.back; // its streams are held
    await this.inForce();
    await this.findOwners();
    if (this.drained && this.streamsOf(last).length) throw new Error(`${last} is drained, and keeps ${this.streamsOf(last)}`);
    await this.everywhere(`${last} ${change}`);
    this.moving = false;
    return `${last} ${change}, ${(await this.assignment()).number}`;
  }

  async disturb(fault) {
    const ms = fault === 'silence' ? this.between(1000, 12000) : this.between(500, 6000);
    const name = this.random() < 0.3 ? 'all' : this.pick(this.names());
    const proxies = name === 'all' ? [...this.proxies.values()] : [this.proxies.get(name)];
    const before = proxies.reduce((sum, p) => sum + p.spoiled, 0);
    for (const proxy of proxies) proxy.set(fault);
    await sleep(ms);
    for (const proxy of proxies) proxy.set('pass');
    return `${name}, ${seconds(ms)}, ${proxies.reduce((sum, p) => sum + p.spoiled, 0) - before} connections spoiled`;
  }

  async killStore(name, ms) {
    await this.ceph.kill(name);
    await sleep(ms);
    await this.ceph.start(name);
    return `${name}, ${seconds(ms)} down`;
  }

  async pauseStore(ms) {
    await this.ceph.pause('rgw');
    await sleep(ms);
    await this.ceph.resume('rgw');
    return seconds(ms);
  }

  /** One of them; what became of it, as a text. */
  strike(kind) {
    const shard = this.pick(this.shardsUp());
    const node = this.pick(this.nodes());
    switch (kind) {
      case 'shard': return this.restart(shard, this.between(0, 2000));
      case 'shard-start': return this.restartTwice(shard, this.between(0, 400));
      case 'shard-stop': return this.restart(shard, this.between(0, 5000), 'SIGTERM');
      case 'shard-disk': return this.loseDisk(shard);
      case 'shard-pause': return this.takeOver(shard);
      case 'assign': return this.assign();
      case 'query': return this.restart(node, this.between(0, 2000));
      case 'query-disk': return this.down(node).then(() => this.cluster.wipe(node)).then(() => this.up(node)).then(() => node);
      case 'caretaker': return this.restart('keeper', this.between(0, 2000));
      case 'rgw': return this.killStore('rgw', this.between(0, 4000));
      case 'osd': return this.killStore(`osd.${this.between(0, 2)}`, this.between(500, 4000));
      case 'rgw-pause': return this.pauseStore(this.between(3000, 10000));
      default: return this.disturb(kind.slice(4));
    }
  }

  async run() {
    for (let n = 0; n < this.kills; n++) {
      let kind = this.draw(n);
      if (['shard-disk', 'assign'].includes(kind) && this.out.size) kind = 'shard'; // the others go on, and who is out comes back first
      const before = { ...this.answers };
      const said = await this.strike(kind);
      this.counts[kind]++;
      const took = await this.everywhere(`${kind} ${said}`);
      this.slowest = Math.max(this.slowest, took);
      this.print(`${n + 1} ${seconds(Date.now() - this.began)}: ${kind} ${said}; all again after ${seconds(took)}; `
        + `${this.answers.all - before.all} answers, ${this.answers.warned - before.warned} with warnings, ${this.answers.failed - before.failed} failed`);
    }
    await this.end();
  }

  /** Its last round has ten seconds, which a busy machine may not be content with. */
  async stopInOrder(shard) {
    for (let attempt = 0; attempt < 5; attempt++) {
      await this.down(shard, 'SIGTERM');
      if ((await manifestOf(this.s3, shard)).stopped) return;
      await this.up(shard);
      await sleep(5000);
    }
    throw new Error(`${shard} does not stop in order`);
  }

  /** Everything is there, exactly, on all nodes, and on a new one. */
  async end() {
    await this.back;
    if (this.failed) throw this.failed;
    await Promise.all([...this.pushers.values()].map((p) => p.hold()));
    for (const shard of this.shards()) await this.whole(shard);
    for (const stream of this.ledgers.keys()) await this.settle(stream); // a last one without an answer
    await this.everywhere('at the end');
    this.ended = true;
    await Promise.all(this.checkers);
    await Promise.all(this.shards().map((name) => this.stopInOrder(name)));
    const fresh = await this.up(`query-${NODES}`); // without a proxy, and without a directory
    const want = {};
    const startMs = Date.now() - RANGE_MS;
    for (const [stream, ledger] of this.ledgers)
      ledger.by.at(-1).forEach((v, i) => { want[`${stream}.f${i}`] = v - ledger.by[ledger.behind(startMs)][i]; });
    for (const server of [...this.nodes().map((name) => this.cluster.get(name)), fresh]) {
      await until(`${server.name} agrees at the end`, 45, async () => {
        const answer = await this.ask(server, startMs);
        for (const [name, v] of Object.entries(want))
          if ((answer?.functions[name] ?? 0) !== v) throw new Error(`${name} is ${answer?.functions[name]}, not ${v}`);
        if (answer.warnings.length) throw new Error(answer.warnings.join('; '));
        return true;
      });
    }
  }

  summary() {
    const ledgers = [...this.ledgers.values()];
    const acked = ledgers.reduce((sum, l) => sum + l.acked + l.lost, 0);
    const a = this.answers;
    return [`seed ${this.seed}: ${Object.values(this.counts).reduce((x, y) => x + y, 0)} kills in ${seconds(Date.now() - this.began)}: `
      + Object.entries(this.counts).map(([kind, n]) => `${kind} ${n}`).join(', '),
    `${acked} profiles acknowledged; ${this.lost.profiles} gone with disks and owners that were paused, and named, the oldest ${seconds(this.lost.oldestMs)} before; none else lost, none doubled`,
    `${a.all} answers, ${a.warned} with warnings, ${a.failed} failed; the oldest without a warning lacked ${seconds(a.oldest)}, `
      + `with one ${seconds(a.oldestWarned)}`,
    `all again after ${seconds(this.slowest)} at most; ${this.restarts} starts in vain`].join('\n');
  }
}

// ---- the command

async function main(args) {
  const value = (name, otherwise) => Number(args.find((a) => a.startsWith(`--${name}=`))?.split('=')[1] ?? otherwise);
  const kills = value('kills', 300);
  const seed = value('seed', 1);
  const ends = [];
  const t = { after: (fn) => ends.unshift(fn) };
  const dir = mkdtempSync(join(tmpdir(), 'epi-campaign-'));
  const campaign = new Campaign(t, { kills, seed, dir });
  for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => campaign.fail(new Error(signal)));
  let code = 0;
  try {
    await campaign.begin();
    await campaign.run();
    console.log(campaign.summary());
  } catch (e) {
    code = 1;
    console.error(`FAIL: ${e.stack}\n${campaign.ledgers ? campaign.summary().replace('; none else lost, none doubled', '') : ''}`);
    console.error(`Once more: make campaign KILLS=${kills} SEED=${seed}`);
    for (const [name, server] of campaign.cluster?.members ?? []) console.error(`---- ${name}\n${server.err.slice(-2000)}`);
  }
  campaign.ended = true;
  for (const end of ends) await end().catch((e) => { code = 1; console.error(e.stack); });
  if (!process.env.KEEP) rmSync(dir, { recursive: true, force: true, maxRetries: 10 });
  process.exit(code);
}

if (process.argv[1] && import.meta.url === pathToFileURL(resolve(process.argv[1])).href) await main(process.argv.slice(2));
