// What was measured, as lines while it is measured; then the targets, reached or missed; and both as a file.
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';

export const results = [];
/** Sections that ran: name to 'done' or 'failed'. */
export const ran = new Map();
let section;

/** Median and extremes of rounds; one number stands for itself. */
export function spread(list) {
  const sorted = [list].flat().slice().sort((a, b) => a - b);
  return { min: sorted[0], median: sorted[sorted.length >> 1], max: sorted.at(-1) };
}

export function number(x) {
  if (x === undefined) return '';
  return Math.abs(x) >= 1000 ? x.toFixed(0) : x.toPrecision(4);
}

export const count = (n) => n.toLocaleString('en-US');

/** Theirs divided by ours for times; ours divided by theirs for speeds (faster). */
export function ratios(ours, theirs, faster) {
  const div = (a, b) => (faster ? a / b : b / a);
  const [low, high] = faster ? [div(ours.min, theirs.max), div(ours.max, theirs.min)] :
    [div(ours.max, theirs.min), div(ours.min, theirs.max)];
  return { min: low, median: div(ours.median, theirs.median), max: high };
}

/** Cells in columns: the first to the left, the others to the right, the last as it is. */
export function row(cells, widths) {
  return cells.map((c, i) => (i === 0 ? c.padEnd(widths[i]) : i < widths.length ? c.padStart(widths[i]) : c)).join(' ').trimEnd();
}

const extremes = (s) => number(s.median) + (s.min === s.max ? '' : ` (${number(s.min)}-${number(s.max)})`);
const NOTE_WIDTHS = [64, 10, 10, 26];

export function begin(name) {
  section = name;
  ran.set(name, 'done');
}

export function header() {
  console.log(row(['', 'this', 'other', 'ratio (least-most)', ' unit'], NOTE_WIDTHS));
}

/**
 * ours, theirs: a number or rounds of it. faster: more is better. of: what the figure stands on, for the file. What it
 * has to reach is in targets.mjs, under this name; so a name is used once. error: standard error of ours.
 */
export function note(what, { ours, theirs, unit, faster = false, of, error }) {
  if (results.some((r) => r.what === what)) throw new Error(`two notes are called "${what}"`);
  const result = { section, what, unit, ours: spread(ours), of, ...(error === undefined ? {} : { error }) };
  if (theirs !== undefined) {
    result.theirs = spread(theirs);
    result.ratio = ratios(result.ours, result.theirs, faster);
  }
  results.push(result);
  const beside = result.ratio ? extremes(result.ratio) : error === undefined ? '' : `+- ${number(error)}`;
  console.log(row([what, number(result.ours.median), number(result.theirs?.median), beside,
    ` ${unit}`], NOTE_WIDTHS));
}

export function failed(what, why) {
  ran.set(what, 'failed');
  results.push({ section: what, what, failed: String(why.message ?? why) });
  console.log(`${what}: FAILED: ${why.message ?? why}`);
}

const NOT_RUN = 'section not run';

/** Why a target has no figure. */
function missing(target, notes, sections) {
  if (target.section === null) return 'no section measures it';
  const found = notes.find((r) => r.section === target.section && r.what === target.note);
  if (found && target.unit === 'x') return 'its note has no ratio';
  if (found) return `measured in ${found.unit}`;
  const how = sections.get(target.section);
  if (!how) return NOT_RUN;
  return how === 'failed' ? 'section failed' : 'other sizes';
}

/**
 * Each target with its figure, `of` (the figure as a multiple of the target) and `verdict`: reached, missed, or not
 * measured, and then `why`. Medians are compared.
 */
export function judge(targets, notes, sections) {
  return targets.map((target) => {
    const found = notes.find((r) => r.section === target.section && r.what === target.note && r.ours);
    const measured = target.unit === 'x' ? found?.ratio : found?.unit === target.unit ? found.ours : undefined;
    if (!measured) return { ...target, verdict: 'not measured', why: missing(target, notes, sections) };
    if (target.errorAtMost !== undefined && !(found.error <= target.errorAtMost))
      return { ...target, verdict: 'not measured', why: `cannot tell: the error is ${number(found.error)}` };
    const limit = target.atLeast ?? target.atMost;
    const reached = target.atLeast !== undefined ? measured.median >= limit : measured.median <= limit;
    return { ...target, measured, of: limit ? measured.median / limit : undefined, verdict: reached ? 'reached' : 'missed' };
  });
}

const TARGET_WIDTHS = [64, 26, 9, 10];

/** The table of judged targets: missed, reached, not measured; those of sections that did not run only by section. */
export function targetLines(judged) {
  const of = (verdict) => judged.filter((t) => t.verdict === verdict);
  const lines = [row(['target', 'measured (least-most)', 'target', 'of it'], TARGET_WIDTHS)];
  for (const t of [...of('missed'), ...of('reached')]) {
    lines.push(row([t.note, extremes(t.measured), `${t.atLeast === undefined ? '<=' : '>='} ${t.atLeast ?? t.atMost}`,
      t.of === undefined ? '' : `${t.of.toFixed(2)}x`, ` ${t.verdict === 'missed' ? 'MISSED' : 'reached'}, ${t.unit}`], TARGET_WIDTHS));
  }
  const absent = new Map();
  for (const t of of('not measured')) {
    if (t.why === NOT_RUN) absent.set(t.section, (absent.get(t.section) ?? 0) + 1);
    else lines.push(row([t.note, '', '', '', ` not measured: ${t.why}`], TARGET_WIDTHS));
  }
  if (absent.size) lines.push(`not measured, ${NOT_RUN}: ${[...absent].map(([name, n]) => `${name} ${n}`).join(', ')}`);
  lines.push(`targets: ${of('reached').length} reached, ${of('missed').length} missed, ${of('not measured').length} not measured`);
  return lines;
}

export function write(file, rest) {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, `${JSON.stringify({ results, ...rest }, null, 1)}\n`);
}
