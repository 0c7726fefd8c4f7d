// A cluster over an object store, simulated: a shard's rounds, windows, blocks, joins, retention and removals as tsdb/cluster,
// tsdb/compact and tsdb/head do them, and a query node that follows it. Nothing is measured here; scale.mjs gives the costs.
// Times are seconds; requests are counted as the store bills them.

const DIGITS_NS = 19; // of a time in nanoseconds
const SEGMENT_KEY = 'head/1763000000-0123456789abcdef/00000000000000000001-0123456789abcdef'.length;
const BLOCK_KEY = 'blocks/01ARZ3NDEKTSV4RRFFQ69G5FAV/'.length;
const BLOCK_FILES = ['rows.ldb', 'rollups.ldb', 'spare', 'meta.json'];
const WAKE_S = 0.2; // publisher.c: what happens at once is published together
const RETENTION_S = 60; // db.c
const MAINTAIN_S = 1;

/** What the programs do when nothing else is said: cmd/epimetheus/options.c and the headers that it names. */
export const DEFAULTS = {
  segmentS: 30, pollS: 10, windowS: 7200, lateS: 3600, retentionS: 15 * 86400, blockMaxS: 0, deleteDelayS: 900, localS: 0,
  orphansS: 86400, workers: 8, ahead: 6, aheadBytes: 64 << 20, openers: 9, partBytes: 64 << 20, fetchBytes: 4 << 20,
  openGets: 1, stubGets: 1,
};

/** Requests of a start: the probe (probe.c, and a HEAD for each put that was refused), the lease, the list of orphans. */
const START = { put: 4, get: 4, head: 4, list: 3, delete: 1 };

/* ---- the manifest's size: manifest.c prints JSON without blanks ---- */

const digits = (n) => String(Math.round(n)).length;
const fileBytes = (bytes) => '"bytes":,"xxh3":"0123456789abcdef"'.length + digits(bytes);

export const segmentEntry = (s) => '{"first":,"last":,},'.length + digits(s.first) + digits(s.last) + fileBytes(s.bytes);
const windowEntry = () => '{"start_ns":,"end_ns":,"identity":"0123456789abcdef","segments":[]},'.length + 2 * DIGITS_NS;
const goneEntry = (key) => '{"key":"","at_ns":},'.length + key + DIGITS_NS;

function blockEntry(b) {
  const files = BLOCK_FILES.filter((name) => b.files[name]);
  const inner = files.reduce((n, name) => n + `"${name}":{},`.length + fileBytes(b.files[name]), -1);
  return '{"ulid":"01ARZ3NDEKTSV4RRFFQ69G5FAV","min_ns":,"max_ns":,"level":,"raw":true,"files":{}},'.length +
    2 * DIGITS_NS + digits(b.level ?? 1) + inner;
}

/**
 * The bytes of a manifest. windows: of each the sum of segmentEntry and their number; blocks: files by name; gone: lengths of
 * keys below shards/NAME/; clockNs: how long the machine runs, some weeks.
 */
export function manifestBytes({ shard, host, generation, intervalS, leaseS = Math.max(3 * intervalS, 60), clockNs = 2e15, idsBytes, windows, blocks, gone }) {
  const head = `{"version":1,"shard":"${shard}","owner":"","session":"","host":"${host}","generation":${generation},` +
    `"since_ns":,"written_ns":,"through_ns":,"interval_ns":${intervalS * 1e9},"lease_ns":${leaseS * 1e9},` +
    `"clock_ns":${clockNs},"confirmed_ns":${clockNs},"stopped":false,"files":{},` +
    '"windows":[],"blocks":[],"gone":[],"checksum":"0123456789abcdef"}\n';
  const list = (bytes, n) => bytes - (n ? 1 : 0); // no comma behind the last
  const inWindows = windows.reduce((n, w) => n + windowEntry() + list(w.bytes, w.n), 0);
  return head.length + 64 + 3 * DIGITS_NS + (idsBytes ? '"ids":{}'.length + fileBytes(idsBytes) : 0) +
    list(inWindows, windows.length) + list(blocks.reduce((n, b) => n + blockEntry(b), 0), blocks.length) +
    list(gone.reduce((n, key) => n + goneEntry(key), 0), gone.length);
}

/* ---- a shard ---- */

const KINDS = ['put', 'get', 'head', 'list', 'delete'];
export const nothing = () => Object.fromEntries(KINDS.map((k) => [k, 0]));

/** Requests to put a file: one, or its parts with their beginning and end (multipart.c). */
export const putsOf = (bytes, partBytes) => (bytes <= partBytes ? 1 : 2 + Math.ceil(bytes / partBytes));

/** compact_plan.c: the blocks, ascending, that are joined next; undefined: none. */
export function planJoin(blocks, { windowS, blockMaxS, retentionS }, until) {
  const most = blockMaxS || Math.min(retentionS / 10, 31 * 86400);
  for (let range = 4 * windowS; range <= most; range *= 3) {
    for (let i = 0, next; i < blocks.length; i = next) {
      const end = Math.floor(blocks[i].min / range) * range + range;
      for (next = i; next < blocks.length && blocks[next].min < end && blocks[next].max <= end;) next++;
      if (end <= until && next - i >= 2) return blocks.slice(i, next);
      next = Math.max(next, i + 1);
    }
  }
  return undefined;
}

/**
 * One shard from `startS` on. `o` is DEFAULTS with changes, and of the load: profilesPerS, lagS (a row is committed so much
 * after its time at most), and costs: segmentBytes, batches of a segment, blockBytes (of a second; by file name, at level 1
 * and joined), cutS and joinS (of a second of rows), putBytesPerS, idsBytes, idsChange (with each window). openGets, stubGets:
 * requests to open a block, of its spare.
 */
export class Shard {
  constructor(o, startS) {
    Object.assign(this, { o, startS, now: startS, windows: [], closed: [], blocks: [], gone: [], ready: [], named: [], uploads: [],
      versions: [], generation: 1, lastRound: startS, ids: 0, newBlock: 0 });
    this.requests = { ...START, put: START.put + 1 }; // the lease's first manifest
    this.sent = { segments: 0, blocks: 0, manifests: 0, small: 0 };
    this.received = 0;
    this.next = startS + WAKE_S; // publisher_attach wakes it
    this.nextMaintain = startS;
    this.nextRetention = startS;
    this.nextLook = startS + Math.min(o.segmentS, 60);
    this.nextOrphans = startS + o.orphansS;
    this.busyUntil = startS; // of the worker that cuts and joins
    this.working = undefined;
  }

  windowAt(t) {
    const start = Math.floor(t / this.o.windowS) * this.o.windowS;
    return { start, end: start + this.o.windowS, segments: 0, bytes: 0, entries: 0, last: 0, named: false, deleted: false };
  }

  /** Rows of (from, to], those that come late among them, make windows and what their next segment holds. */
  rows(from, to) {
    for (let t = Math.floor(from / this.o.windowS) * this.o.windowS; t < to; t += this.o.windowS) {
      if (t + this.o.windowS <= this.startS || this.newestCut >= t + this.o.windowS) continue;
      if (!this.windows.some((w) => w.start === t)) this.windows.push(this.windowAt(t));
    }
    for (const w of this.windows) {
      const seconds = Math.min(to, w.end) - Math.max(from, w.start);
      const late = from < w.end + this.o.lagS && to > w.end && from > w.start; // rows whose time was before the end
      if (seconds > 0 || late) w.fresh = (w.fresh ?? 0) + Math.max(seconds, 0);
    }
  }

  wake(at) {
    this.next = Math.min(this.next, at + WAKE_S);
  }

  blockOf(min, max, joined) {
    const files = {};
    for (const [name, perS] of Object.entries(this.o.blockBytes[joined ? 'joined' : 'cut'])) {
      files[name] = Math.round((max - Math.max(min, this.startS)) * perS);
    }
    files['meta.json'] = this.o.metaBytes;
    const bytes = Object.values(files).reduce((a, b) => a + b, 0);
    return { id: ++this.newBlock, min, max, files, bytes, local: true, level: joined ? 2 : 1 };
  }

  /* ---- work on blocks ---- */

  settled() {
    const newest = this.now, o = this.o;
    const until = Math.floor(newest / o.windowS) * o.windowS - o.lateS;
    return this.windows.length ? Math.min(until, this.windows[0].start) : until;
  }

  begin() {
    const o = this.o, w = this.windows[0];
    if (w && w.end <= Math.floor(this.now / o.windowS) * o.windowS - o.lateS) {
      this.working = { window: w };
      this.busyUntil = this.now + o.cutS * (w.end - Math.max(w.start, this.startS));
      return true;
    }
    const list = planJoin(this.blocks, o, this.settled());
    if (!list) return false;
    this.working = { list };
    this.busyUntil = this.now + o.joinS * (list.at(-1).max - list[0].min);
    for (const b of list) if (!b.local) this.read(b);
    return true;
  }

  /** A joined block's tables are read from front to back; its spare was read when it was opened. */
  read(b) {
    for (const name of ['rows.ldb', 'rollups.ldb']) {
      this.requests.get += Math.ceil(b.files[name] / this.o.fetchBytes);
      this.received += b.files[name];
    }
  }

  end() {
    const { window, list } = this.working;
    this.working = undefined;
    if (window) {
      this.windows.shift();
      this.newestCut = window.end;
      this.closed.push(window);
      this.blocks.push(this.blockOf(window.start, window.end, false));
      this.ids += this.o.idsChange || !this.idsPut ? 1 : 0;
    } else {
      this.blocks.splice(this.blocks.indexOf(list[0]), list.length, this.blockOf(list[0].min, list.at(-1).max, true));
    }
    this.blocks.sort((a, b) => a.min - b.min);
    this.wake(this.now);
  }

  maintain() {
    if (this.working && this.busyUntil <= this.now) this.end();
    while (!this.working && this.begin()) if (this.busyUntil <= this.now) this.end();
    if (this.now >= this.nextRetention) {
      this.nextRetention = this.now + RETENTION_S;
      while (this.o.retentionS && this.blocks.length && this.blocks[0].max <= this.now - this.o.retentionS) {
        this.blocks.shift();
        this.wake(this.now);
      }
    }
    this.nextMaintain = this.working ? Math.max(this.busyUntil, this.now + MAINTAIN_S) : this.now + MAINTAIN_S;
  }

  /** shard.c: blocks that a confirmed manifest names leave the disk, and are opened in the bucket. */
  look() {
    for (const b of this.blocks) {
      if (!b.local || !b.confirmed || (this.o.localS && this.now - b.max <= this.o.localS)) continue;
      b.local = false;
      this.requests.get += this.o.stubGets;
    }
    this.nextLook = this.now + Math.min(this.o.segmentS, 60);
  }

  /* ---- rounds ---- */

  put(bytes, what) {
    this.requests.put += putsOf(bytes, this.o.partBytes);
    this.sent[what] += bytes;
  }

  putSegments() {
    this.rows(this.lastRound, this.now);
    this.lastRound = this.now;
    for (const w of this.windows) {
      if (w.fresh === undefined) continue;
      const bytes = Math.round(this.o.segmentBytes + w.fresh * this.o.segmentBytesPerS);
      const first = w.last + 1;
      w.last += Math.max(1, Math.round(w.fresh * this.o.batchesPerS));
      w.segments++;
      w.bytes += bytes;
      w.entries += segmentEntry({ first, last: w.last, bytes });
      w.fresh = undefined;
      this.put(bytes, 'segments');
    }
  }

  /** What the next manifest names; what left it is gone. */
  compare() {
    const named = [];
    for (const b of this.blocks) if (b.put) named.push(b);
    for (const b of this.named) {
      if (named.includes(b)) continue;
      const by = this.blocks.find((x) => x.min <= b.min && x.max >= b.max);
      if (by && !by.put) named.push(b); // until the block that replaced it is there
      else for (const name of BLOCK_FILES) if (b.files[name]) this.gone.push({ key: BLOCK_KEY + name.length });
    }
    this.named = named.sort((a, b) => a.min - b.min);
    this.closed = this.closed.filter((w) => {
      const by = this.blocks.find((x) => x.min <= w.start && x.max >= w.end);
      if (by && !by.put) return true;
      for (let i = 0; i < w.segments; i++) this.gone.push({ key: SEGMENT_KEY });
      return false;
    });
  }

  round() {
    if (this.ids) {
      this.put(this.o.idsBytes, 'small');
      this.ids = 0;
      if (this.idsPut) this.gone.push({ key: 'files/ids-0123456789abcdef'.length });
      this.idsPut = true;
    }
    this.putSegments();
    this.compare();
    this.gone = this.gone.filter((g) => !g.removed);
    const windows = [...this.closed, ...this.windows].filter((w) => w.segments);
    const bytes = manifestBytes({ shard: this.o.shard ?? 'shard-00', host: this.o.host ?? 'shard-00', generation: ++this.generation,
      intervalS: this.o.segmentS, idsBytes: this.idsPut ? this.o.idsBytes : 0,
      windows: windows.map((w) => ({ bytes: w.entries, n: w.segments })), blocks: this.named, gone: this.gone.map((g) => g.key) });
    this.put(bytes, 'manifests');
    for (const g of this.gone) g.at ??= this.now;
    for (const b of this.named) b.confirmed = true;
    this.versions.push({ at: this.now, bytes, gone: this.gone.length, windows: windows.map((w) => ({ of: w, n: w.segments, bytes: w.bytes })),
      blocks: this.named });
    this.next = this.now + this.o.segmentS;
    this.work();
  }

  /** The upload thread: blocks, one after the other, then removals. */
  work() {
    if (this.uploading) return;
    const b = this.blocks.find((x) => !x.put);
    if (b) {
      this.uploading = { b, until: this.now + b.bytes / this.o.putBytesPerS };
      return;
    }
    if (this.now >= this.nextOrphans) {
      this.nextOrphans = this.now + this.o.orphansS;
      this.requests.list += Math.max(1, Math.ceil(this.objects() / 1000));
    }
    for (const g of this.gone) {
      if (g.removed || g.at === undefined || this.now - g.at < this.o.deleteDelayS) continue;
      g.removed = true;
      this.requests.delete++;
    }
  }

  uploaded() {
    const { b } = this.uploading;
    this.uploading = undefined;
    for (const name of BLOCK_FILES) if (b.files[name]) this.put(b.files[name], 'blocks');
    b.put = true;
    this.wake(this.now);
  }

  objects() {
    const segments = [...this.closed, ...this.windows].reduce((n, w) => n + w.segments, 0);
    const files = this.named.reduce((n, b) => n + BLOCK_FILES.filter((name) => b.files[name]).length, 0);
    return 1 + segments + files + (this.idsPut ? 1 : 0) + this.gone.filter((g) => !g.removed).length;
  }

  /** Bytes that the manifest names, and those of objects that wait for their removal are not counted. */
  stored() {
    return [...this.closed, ...this.windows].reduce((n, w) => n + w.bytes, 0) + this.named.reduce((n, b) => n + b.bytes, 0);
  }

  run(untilS) {
    for (;;) {
      const at = Math.min(this.next, this.nextMaintain, this.nextLook, this.uploading?.until ?? Infinity);
      if (at > untilS) break;
      this.now = at;
      if (this.uploading?.until <= at) this.uploaded();
      else if (this.nextMaintain <= at) this.maintain();
      else if (this.nextLook <= at) this.look();
      else this.round();
    }
    this.now = untilS;
    return this;
  }
}

/* ---- a query node ---- */

/**
 * What a node that follows the shard from `from` to `to` asks for: it looks each pollS, and takes what is new. Nothing of an
 * earlier version is there at first.
 */
export function follow(shard, from, to, { pollS, openGets, phaseS = 0 }) {
  const out = { ...nothing(), received: 0, segments: 0, segmentBytes: 0, opened: 0 };
  const taken = new Map(), known = new Set();
  let version = -1, seen = -1;
  for (let t = from + phaseS; t < to; t += pollS) {
    out.head++;
    while (version + 1 < shard.versions.length && shard.versions[version + 1].at <= t) version++;
    if (version === seen || version < 0) continue;
    seen = version;
    const v = shard.versions[version];
    out.get++;
    out.received += v.bytes;
    for (const b of v.blocks) {
      if (known.has(b)) continue;
      known.add(b);
      out.opened++;
      out.get += openGets;
    }
    for (const w of v.windows) {
      const was = taken.get(w.of) ?? { n: 0, bytes: 0 };
      out.get += w.n - was.n;
      out.segments += w.n - was.n;
      out.segmentBytes += w.bytes - was.bytes;
      taken.set(w.of, { n: w.n, bytes: w.bytes });
    }
  }
  out.received += out.segmentBytes;
  return out;
}

/**
 * Seconds until a node with an empty directory has the blocks of all shards, and until it has all: `workers` shards at a time,
 * blocks `openers` at a time, segments `ahead` at a time where they fit into `aheadBytes`. CPU of following is shared by the
 * cores; the network by all.
 */
export function startOf(version, o, { shards, latencyS, bytesPerS, followS, cores }) {
  const segments = version.windows.reduce((n, w) => n + w.n, 0);
  const bytes = version.windows.reduce((n, w) => n + w.bytes, 0) + version.bytes;
  const opening = (version.blocks.length * o.openGets) / Math.min(o.openers, version.blocks.length || 1);
  const turns = Math.ceil(shards / o.workers);
  const blocks = turns * (2 + opening) * latencyS;
  const together = segments ? Math.max(1, Math.min(o.ahead, Math.floor(o.aheadBytes / ((bytes - version.bytes) / segments)))) : 1;
  const waiting = blocks + (turns * segments * latencyS) / together;
  const network = (shards * bytes) / bytesPerS;
  const cpu = (shards * followS) / Math.min(cores, o.workers);
  return { segments, bytes, blocks, waiting, network, cpu, requests: shards * (2 + segments + version.blocks.length * o.openGets) + 1,
    seconds: Math.max(waiting, network, cpu) };
}

/* ---- money ---- */

export const PRICES = { put: 5 / 1e6, list: 5 / 1e6, get: 0.4 / 1e6, head: 0.4 / 1e6, delete: 0, tbMonth: 23 };
export const priceOf = (requests, prices = PRICES) => KINDS.reduce((sum, k) => sum + requests[k] * prices[k], 0);

/** a + n * b, by kind. */
export function plus(a, b, n = 1) {
  return Object.fromEntries(KINDS.map((k) => [k, a[k] + n * b[k]]));
}

/* ---- a resize ---- */

/** Targets that change hands when `from` shards become `to`: an (to - from)-th part of `to` (tsdb/cluster/assignment/assignment.h). */
export const moved = (targets, from, to) => targets * Math.abs(to - from) / Math.max(from, to);
