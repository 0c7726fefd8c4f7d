// The table of measurements and goals, and the same as a file.
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';

export const results = [];

/** Median and extremes of rounds; one number stands for itself. */
export function spread(list) {
  const sorted = [list].flat().slice().sort((a, b) => a - b);
  return { min: sorted[0], median: sorted[sorted.length >> 1], max: sorted.at(-1) };
}

function number(x) {
  if (x === undefined) return '';
  return Math.abs(x) >= 1000 ? x.toFixed(0) : x.toPrecision(4);
}

/** Theirs divided by ours for times; ours divided by theirs for speeds (faster). */
function ratios(ours, theirs, faster) {
  const div = (a, b) => (faster ? a / b : b / a);
  const [low, high] = faster ? [div(ours.min, theirs.max), div(ours.max, theirs.min)] :
    [div(ours.max, theirs.min), div(ours.min, theirs.max)];
  return { min: low, median: div(ours.median, theirs.median), max: high };
}

const WIDTHS = [56, 10, 10, 16, 24, 10];

function line(cells) {
  const last = cells.length - 1;
  console.log(cells.map((c, i) => (i === 1 || i === 2 ? c.padStart(WIDTHS[i]) : i < last ? c.padEnd(WIDTHS[i]) : c))
    .join(' ').trimEnd());
}

export function header() {
  line(['', 'this', 'other', 'unit', 'ratio (least-most)', 'target', '']);
}

/**
 * ours, theirs: a number or rounds of it. faster: more is better. ratioAtLeast, atMost, atLeast: the target, of
 * the medians. of: what the figure stands on, for the file.
 */
export function note(what, { ours, theirs, unit, faster = false, ratioAtLeast, ratioAtMost, atMost, atLeast, of }) {
  const row = { what, unit, ours: spread(ours), of };
  let target = '';
  if (theirs !== undefined) {
    row.theirs = spread(theirs);
    row.ratio = ratios(row.ours, row.theirs, faster);
  }
  if (ratioAtLeast !== undefined) {
    target = `>= ${ratioAtLeast}x`;
    row.reached = row.ratio.median >= ratioAtLeast;
  } else if (ratioAtMost !== undefined) {
    target = `<= ${ratioAtMost}x`;
    row.reached = row.ratio.median <= ratioAtMost;
  } else if (atMost !== undefined) {
    target = `<= ${atMost}`;
    row.reached = row.ours.median <= atMost;
  } else if (atLeast !== undefined) {
    target = `>= ${atLeast}`;
    row.reached = row.ours.median >= atLeast;
  }
  row.target = target || undefined;
  results.push(row);
  const r = row.ratio;
  line([what, number(row.ours.median), number(row.theirs?.median), unit,
    r ? `${number(r.median)} (${number(r.min)}-${number(r.max)})` : '', target,
    row.reached === undefined ? '' : row.reached ? 'reached' : 'NOT REACHED']);
}

export function failed(what, why) {
  results.push({ what, failed: String(why.message ?? why) });
  console.log(`${what}: FAILED: ${why.message ?? why}`);
}

export function write(file, rest) {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, `${JSON.stringify({ results, ...rest }, null, 1)}\n`);
}
