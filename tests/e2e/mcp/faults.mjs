// Profiles of the demo shop as two pods send them for forty minutes, with three faults from the middle on: scoreItems is six
// times slower, keepReceipt keeps what it makes, and checkouts queue for a lock. Drawn by a generator with a seed.
import { gzipSync } from 'node:zlib';

const FRAMES = {
  'main.main': ['main.go', 60, 71],
  'net/http.(*conn).serve': ['net/http/server.go', 1800, 1995],
  'main.(*shop).search': ['handlers.go', 20, 33],
  'main.scoreItems': ['work.go', 31, 38],
  'regexp.(*Regexp).MatchString': ['regexp/regexp.go', 530, 532],
  'main.(*shop).cart': ['handlers.go', 50, 57],
  'main.renderCart': ['work.go', 70, 77],
  'main.(*shop).checkout': ['handlers.go', 80, 92],
  'main.parsePrices': ['work.go', 95, 101],
  'main.(*leak).keepReceipt': ['leak.go', 40, 46],
  'main.(*sessions).fill': ['shop.go', 22, 29],
  'sync.(*Mutex).Lock': ['sync/mutex.go', 80, 90],
  'sync.(*Mutex).Unlock': ['sync/mutex.go', 210, 223],
  'main.(*stock).reserve': ['shop.go', 90, 97],
  'main.(*log).write': ['shop.go', 130, 133],
  'runtime.gcBgMarkWorker': ['runtime/mgc.go', 1300, 1310],
};
const serve = ['main.main', 'net/http.(*conn).serve'];
// Stacks, root first, with their costs while all is well and with the fault.
export const KINDS = {
  process_cpu: {
    types: [['samples', 'count'], ['cpu', 'nanoseconds']], period: ['cpu', 'nanoseconds', 10000000], delta: true, unit: 10000000,
    stacks: [
      [[...serve, 'main.(*shop).search', 'main.scoreItems'], 12, 72],
      [[...serve, 'main.(*shop).search', 'regexp.(*Regexp).MatchString'], 40, 40],
      [[...serve, 'main.(*shop).cart', 'main.renderCart'], 60, 60],
      [[...serve, 'main.(*shop).checkout', 'main.parsePrices'], 45, 45],
      [['runtime.gcBgMarkWorker'], 25, 25],
    ],
  },
  memory: {
    types: [['inuse_objects', 'count'], ['inuse_space', 'bytes']], period: ['space', 'bytes', 524288], unit: 65536,
    stacks: [
      [[...serve, 'main.(*shop).search', 'main.(*sessions).fill'], 160, 160],
      [[...serve, 'main.(*shop).checkout', 'main.(*leak).keepReceipt'], 20, 900],
      [[...serve, 'main.(*shop).cart', 'main.renderCart'], 30, 30],
    ],
  },
  mutex: {
    types: [['contentions', 'count'], ['delay', 'nanoseconds']], period: ['contentions', 'count', 1], delta: true, unit: 1000000,
    stacks: [
      [[...serve, 'main.(*shop).search', 'main.(*log).write', 'sync.(*Mutex).Unlock'], 40, 40],
      [[...serve, 'main.(*shop).checkout', 'main.(*stock).reserve', 'sync.(*Mutex).Unlock'], 10, 400],
    ],
  },
};

function varint(n) {
  const out = [];
  for (let rest = BigInt(Math.round(n)); ; rest >>= 7n) {
    if (rest < 128n) return [...out, Number(rest)];
    out.push(Number(rest & 127n) | 128);
  }
}
const number = (field, n) => [...varint(field << 3), ...varint(n)];
const bytes = (field, body) => [...varint(field << 3 | 2), ...varint(body.length), ...body];

/** A pprof profile, gzipped: stacks are [frames root first, count]. */
export function pprof({ types, period, unit }, stacks, endMs, durationMs) {
  const strings = [''], names = Object.keys(FRAMES), out = [];
  const text = (s) => {
    const at = strings.indexOf(s);
    return at >= 0 ? at : strings.push(s) - 1;
  };
  for (const [type, of] of types) out.push(...bytes(1, [...number(1, text(type)), ...number(2, text(of))]));
  for (const [frames, n] of stacks) {
    const ids = frames.map((name) => names.indexOf(name) + 1).reverse().flatMap((id) => varint(id));
    out.push(...bytes(2, [...bytes(1, ids), ...bytes(2, [...varint(n), ...varint(n * unit)])]));
  }
  names.forEach((name, i) => {
    const [file, starts, line] = FRAMES[name];
    out.push(...bytes(4, [...number(1, i + 1), ...bytes(4, [...number(1, i + 1), ...number(2, line)])]));
    out.push(...bytes(5, [...number(1, i + 1), ...number(2, text(name)), ...number(3, text(name)), ...number(4, text(file)),
      ...number(5, starts)]));
  });
  out.push(...number(9, endMs * 1e6), ...number(10, durationMs * 1e6));
  out.push(...bytes(11, [...number(1, text(period[0])), ...number(2, text(period[1]))]), ...number(12, period[2]));
  for (const s of strings) out.push(...bytes(6, [...Buffer.from(s)]));
  return gzipSync(Buffer.from(out), { level: 1 });
}

/** A generator of numbers in [0, 1): the same ones for a seed. */
function drawn(seed) {
  let state = seed;
  return () => {
    state = Math.imul(state ^ state >>> 15, 2246822519) + 0x9e3779b9 | 0;
    return (state >>> 0) / 2 ** 32;
  };
}

/** All profiles, oldest first: {name, pod, timeS, body}. They end at endS; the second half has the faults. */
export function* profiles(endS, { minutes = 40, everyS = 30 } = {}) {
  const draw = drawn(7), n = minutes * 60 / everyS;
  for (let i = 1; i <= n; i++) {
    for (const pod of ['shop-1', 'shop-2']) {
      for (const [name, kind] of Object.entries(KINDS)) {
        const stacks = kind.stacks.map(([frames, well, fault]) => {
          const mean = i > n / 2 ? fault : well;
          return [frames, Math.max(1, mean + (draw() + draw() + draw() - 1.5) * 2 * Math.sqrt(mean))];
        }).map(([frames, x]) => [frames, Math.round(x)]);
        const timeS = endS - (n - i) * everyS;
        yield { name, pod, timeS, body: pprof(kind, stacks, timeS * 1000, (everyS - 1) * 1000), everyS, delta: !!kind.delta };
      }
    }
  }
}
