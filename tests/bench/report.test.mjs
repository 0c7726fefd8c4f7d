import assert from 'node:assert/strict';
import test from 'node:test';
import { begin, judge, note, ratios, results, spread, targetLines } from './report.mjs';
import { targets } from './targets.mjs';

const RATE = { section: 'ingest', note: 'decode', unit: 'x', atLeast: 10 };
const SIZE = { section: 'bytes', note: 'rows', unit: 'MiB', atMost: 4 };
const NONE = { section: 'bytes', note: 'refused', unit: 'requests', atMost: 0 };
const AWAY = { section: null, note: 'pods', unit: 'seconds', atMost: 1 };
const one = (x) => ({ min: x, median: x, max: x });
const done = (...names) => new Map(names.map((n) => [n, 'done']));
const verdicts = (list) => list.map((t) => [t.note, t.verdict, t.why]);

test('spread: the median of rounds and its extremes; one number is all three', () => {
  assert.deepEqual(spread([3, 1, 2]), { min: 1, median: 2, max: 3 });
  assert.deepEqual(spread([10, 9]), { min: 9, median: 10, max: 10 });
  assert.deepEqual(spread(7), one(7));
});

test('ratios: above 1 if ours is better; extremes are worst against best', () => {
  const ours = { min: 1, median: 2, max: 4 }, theirs = { min: 8, median: 10, max: 16 };
  assert.deepEqual(ratios(ours, theirs, false), { min: 2, median: 5, max: 16 });
  assert.deepEqual(ratios(theirs, ours, true), { min: 2, median: 5, max: 16 });
});

test('a target is reached by the median, its limit included', () => {
  const rows = (ratio, ours) => [{ section: 'ingest', what: 'decode', unit: 'profiles/s', ours: one(1), ratio },
    { section: 'bytes', what: 'rows', unit: 'MiB', ours }];
  const of = (ratio, ours) => judge([RATE, SIZE], rows(ratio, ours), done('ingest', 'bytes')).map((t) => [t.verdict, t.of]);
  assert.deepEqual(of({ min: 5, median: 10, max: 11 }, { min: 3, median: 4, max: 9 }), [['reached', 1], ['reached', 1]]);
  assert.deepEqual(of({ min: 5, median: 9, max: 11 }, { min: 3, median: 5, max: 9 }), [['missed', 0.9], ['missed', 1.25]]);
});

test('a target of 0 has no multiple', () => {
  const of = (n) => judge([NONE], [{ section: 'bytes', what: 'refused', unit: 'requests', ours: one(n) }], done('bytes'))[0];
  assert.deepEqual([of(0).verdict, of(0).of, of(1).verdict], ['reached', undefined, 'missed']);
});

test('a target that was not measured says why', () => {
  const all = [RATE, SIZE, AWAY];
  assert.deepEqual(verdicts(judge(all, [], new Map([['ingest', 'failed'], ['bytes', 'done']]))), [
    ['decode', 'not measured', 'section failed'], ['rows', 'not measured', 'other sizes'],
    ['pods', 'not measured', 'no section measures it']]);
  assert.deepEqual(verdicts(judge(all, [
    { section: 'ingest', what: 'decode', unit: 'profiles/s', ours: one(1) },
    { section: 'bytes', what: 'rows', unit: 'MB', ours: one(1) },
    { section: 'bytes', what: 'pods', unit: 'seconds', ours: one(1) }], done('ingest', 'bytes'))), [
    ['decode', 'not measured', 'its note has no ratio'], ['rows', 'not measured', 'measured in MB'],
    ['pods', 'not measured', 'no section measures it']]);
  assert.equal(judge([RATE], [], new Map())[0].why, 'section not run');
});

test('the table: missed, reached, not measured', () => {
  const judged = judge([RATE, SIZE, NONE, AWAY, { ...RATE, section: 'merge' }], [
    { section: 'ingest', what: 'decode', unit: 'profiles/s', ours: one(1), ratio: { min: 11, median: 12, max: 13 } },
    { section: 'bytes', what: 'rows', unit: 'MiB', ours: { min: 5, median: 6, max: 7 } }], done('ingest', 'bytes'));
  assert.deepEqual(targetLines(judged).map((l) => l.replace(/ {2,}/g, ' | ')), [
    'target | measured (least-most) | target | of it',
    'rows | 6.000 (5.000-7.000) | <= 4 | 1.50x | MISSED, MiB',
    'decode | 12.00 (11.00-13.00) | >= 10 | 1.20x | reached, x',
    'refused | not measured: other sizes',
    'pods | not measured: no section measures it',
    'not measured, section not run: merge 1',
    'targets: 1 reached, 1 missed, 3 not measured']);
});

test('a note is told and kept with its section; its name is used once', (t) => {
  const log = t.mock.method(console, 'log', () => {});
  begin('ingest');
  note('decode', { ours: [20, 30], theirs: 3, unit: 'profiles/s', faster: true, of: { bytes: 9 } });
  assert.throws(() => note('decode', { ours: 1, unit: 's' }), /two notes are called "decode"/);
  log.mock.restore();
  assert.match(log.mock.calls[0].arguments[0], /^decode +30\.00 +3\.000 +10\.00 \(6\.667-10\.00\) +profiles\/s$/);
  assert.deepEqual(results.at(-1), { section: 'ingest', what: 'decode', unit: 'profiles/s', of: { bytes: 9 },
    ours: { min: 20, median: 30, max: 30 }, theirs: one(3), ratio: { min: 20 / 3, median: 10, max: 10 } });
});

test('targets: one limit each, a unit, and a name of their own', () => {
  assert.equal(new Set(targets.map((t) => t.note)).size, targets.length);
  for (const t of targets) {
    assert.ok((t.atLeast === undefined) !== (t.atMost === undefined), t.note);
    assert.ok(t.unit && t.section !== undefined, t.note);
  }
});

test('judge: a figure with a large error reaches nothing and misses nothing', () => {
  const target = { section: 'memory', note: 'growth', unit: 'MiB', atMost: 0.02, errorAtMost: 0.02 };
  const judged = (error, median) => judge([target], [{ section: 'memory', what: 'growth', unit: 'MiB', error, ours: one(median) }], done('memory'))[0];
  assert.equal(judged(0.01, 0.015).verdict, 'reached');
  assert.equal(judged(0.01, 0.5).verdict, 'missed');
  for (const [error, text] of [[0.03, '0.03000'], [NaN, 'NaN'], [undefined, '']]) {
    const { verdict, why } = judged(error, 0.5);
    assert.deepEqual([verdict, why.trim()], ['not measured', `cannot tell: the error is ${text}`.trim()]);
  }
});
