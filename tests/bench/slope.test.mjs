import assert from 'node:assert/strict';
import test from 'node:test';
import { growthLines, growthOf, sizes, slope } from './slope.mjs';

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
