import assert from 'node:assert/strict';
import test from 'node:test';
import { growthLines, growthOf, sizes, slope, trend } from './slope.mjs';

const near = (is, want) => assert.ok(Math.abs(is - want) < 1e-9, `${is}, want ${want}`);
const power = (exponent, ...list) => list.map((n) => [n, 3 * n ** exponent]);

test('sizes: powers of ten up to the most, and the most', () => {
  assert.deepEqual(sizes(100000), [1000, 10000, 100000]);
  assert.deepEqual(sizes(1000000), [1000, 10000, 100000, 1000000]);
  assert.deepEqual(sizes(50000), [1000, 10000, 50000]);
  assert.deepEqual(sizes(12000), [1000, 12000]);
  assert.deepEqual(sizes(2000), [20, 200, 2000]);
  assert.throws(() => sizes(99), /BENCH_SERIES is 99, at least 100/);
  assert.throws(() => sizes(NaN), /BENCH_SERIES is NaN/);
});

test('slope: the exponent of a power', () => {
  for (const exponent of [-1, 0, 0.5, 1, 2]) near(slope(power(exponent, 1000, 10000, 100000)), exponent);
  near(slope(power(1, 7, 19)), 1);
});

test('slope: by least squares', () => {
  near(slope([[1, 1], [10, 10], [100, 1000]]), 1.5); // between 1 and 2
  near(slope([[1, 10], [10, 1], [100, 10]]), 0);
});

test('slope: a cost of 0 is left out; two sizes are needed', () => {
  near(slope([[10, 0], [100, 5], [1000, 50]]), 1);
  assert.ok(Number.isNaN(slope([[10, 0], [100, 5]])));
  assert.ok(Number.isNaN(slope([[10, 5]])));
  assert.ok(Number.isNaN(slope([])));
});

test('growth: faster than expected, over all sizes or at the last', () => {
  assert.equal(growthOf(power(1, 10, 100, 1000), 1).faster, false);
  assert.equal(growthOf(power(1.1, 10, 100, 1000), 1).faster, false);
  assert.equal(growthOf(power(1.2, 10, 100, 1000), 1).faster, true);
  const late = growthOf([[10, 1], [100, 1], [1000, 2]], 0);
  near(late.exponent, Math.log10(2) / 2);
  near(late.last, Math.log10(2));
  assert.equal(growthOf([[10, 1], [100, 1], [1000, 1.5]], 0).faster, true); // 0.09 over all, 0.18 at the last
  assert.equal(growthOf([[10, 0]], 0).faster, false);
});

test('growth: the table', () => {
  const of = (what, expected, points) => ({ what, unit: 'ms', ...growthOf(points, expected) });
  const lines = growthLines([of('selector', 0, [[1000, 1], [10000, 10]]), of('merge', 1, [[1000, 1], [10000, 10]]), of('start', 1, [[10000, 5]])]);
  assert.deepEqual(lines.map((l) => l.replace(/ {2,}/g, ' | ')), [
    'series | 1,000 | 10,000 | exponent | last | expected',
    'selector, ms | 1.000 | 10.00 | 1.00 | 1.00 | <= 0 | GROWS FASTER',
    'merge, ms | 1.000 | 10.00 | 1.00 | 1.00 | <= 1',
    'start, ms | 5.000 | - | - | <= 1']);
});

/** Numbers between -0.5 and 0.5 that are the same in each run. */
function draws(seed) {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1103515245) + 12345) >>> 0;
    return (state >>> 8) / 2 ** 24 - 0.5;
  };
}

test('trend: a line as it is, and the textbook error of one', () => {
  const line = trend([[0, 1], [1, 3], [2, 5], [3, 7]]);
  near(line.slope, 2);
  near(line.error, 0);
  const bent = trend([[1, 1], [2, 2], [3, 2], [4, 3], [5, 3]]); // left over: -0.2 0.3 -0.2 0.3 -0.2, no neighbours alike
  near(bent.slope, 0.5);
  near(bent.error, Math.sqrt(0.3 / 3 / 10));
  assert.ok(Number.isNaN(trend([[0, 1], [1, 2], [2, 3]]).slope));
});

test('trend: the true slope is within twice the error, with steps too', () => {
  for (const kept of [0, 0.9]) {
    let within = 0;
    for (let seed = 1; seed <= 200; seed++) {
      const draw = draws(seed);
      let level = 0;
      const { slope: by, error } = trend(Array.from({ length: 200 }, (_, x) => [x, 0.3 * x + (level = kept * level + draw())]));
      if (Math.abs(by - 0.3) < 2 * error) within++;
    }
    assert.ok(within >= 170, `${within} of 200 with ${kept} kept`);
  }
});
