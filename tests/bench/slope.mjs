// How a cost grows with a size: sizes to measure, the exponent, and the table. How a level moves in time.
import { count, number, row } from './report.mjs';

const WORSE = 0.15; // above the exponent that is expected

/** Powers of ten from 1,000 to a third of most, and most itself; a tenth and a hundredth of it, if it is less than 10,000. */
export function sizes(most) {
  if (!(most >= 100)) throw new Error(`BENCH_SERIES is ${most}, at least 100`);
  if (most < 10000) return [Math.ceil(most / 100), Math.ceil(most / 10), most];
  const list = [];
  for (let n = 1000; n <= most / 3; n *= 10) list.push(n);
  return [...list, most];
}

/**
 * The slope of log cost over log size by least squares: 1 is linear. Costs of 0, below what the clock shows, are left out;
 * NaN without two others.
 */
export function slope(all) {
  const points = all.filter(([, cost]) => cost > 0);
  const x = points.map(([size]) => Math.log(size)), y = points.map(([, cost]) => Math.log(cost));
  const mean = (list) => list.reduce((a, b) => a + b, 0) / list.length;
  const mx = mean(x), my = mean(y);
  const over = x.reduce((sum, v, i) => sum + (v - mx) * (y[i] - my), 0), under = x.reduce((sum, v) => sum + (v - mx) ** 2, 0);
  return over / under;
}

/**
 * The line through measurements in the order in which they were taken, [[x, y]...], by least squares: its slope and the standard
 * error of that. What is left over is mostly like what was left over just before (memory goes up in steps), so there is less to learn
 * from n points than from n independent ones: the error is widened by the correlation of neighbours. NaN: fewer than four points.
 */
export function trend(points) {
  const n = points.length;
  if (n < 4) return { slope: NaN, error: NaN };
  const mx = points.reduce((sum, [x]) => sum + x, 0) / n, my = points.reduce((sum, [, y]) => sum + y, 0) / n;
  const under = points.reduce((sum, [x]) => sum + (x - mx) ** 2, 0);
  const by = points.reduce((sum, [x, y]) => sum + (x - mx) * (y - my), 0) / under;
  const left = points.map(([x, y]) => y - my - by * (x - mx));
  const squares = left.reduce((sum, r) => sum + r * r, 0);
  const neighbours = left.slice(1).reduce((sum, r, i) => sum + r * left[i], 0);
  const same = squares ? Math.min(Math.max(neighbours / squares, 0), 1 - 1 / n) : 0;
  return { slope: by, error: Math.sqrt((squares / (n - 2) / under) * ((1 + same) / (1 - same))) };
}

/** A cost at each size, [[size, cost]...]: its exponent, that of the last step alone, and whether it grows faster than expected. */
export function growthOf(points, expected) {
  const exponent = slope(points), last = slope(points.slice(-2));
  return { points, expected, exponent, last, faster: exponent > expected + WORSE || last > expected + WORSE };
}

const exponent = (x) => (Number.isFinite(x) ? x.toFixed(2) : '-');

/** list: { what, unit, points, expected, exponent, last, faster }. */
export function growthLines(list) {
  const all = [...new Set(list.flatMap((g) => g.points.map(([size]) => size)))].sort((a, b) => a - b);
  const widths = [44, ...all.map(() => 11), 9, 9, 9];
  const lines = [row(['series', ...all.map(count), 'exponent', 'last', 'expected'], widths)];
  for (const g of list) {
    const costs = new Map(g.points);
    lines.push(row([`${g.what}, ${g.unit}`, ...all.map((size) => number(costs.get(size))), exponent(g.exponent), exponent(g.last),
      `<= ${g.expected}`, g.faster ? ' GROWS FASTER' : ''], widths));
  }
  return lines;
}
