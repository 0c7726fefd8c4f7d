import assert from 'node:assert/strict';
import test from 'node:test';
import { foldedStacks, questions, ten } from './columns/questions.mjs';

test('ten: costs in order; those that share the last place have no name', () => {
  assert.deepEqual(ten([['b', 2], ['a', 3], ['c', 1]]), [[3, 2, 1], [['a', 3], ['b', 2]]]);
  assert.deepEqual(ten([['a', 3], ['d', 1], ['b', 2]]), ten([['c', 1], ['b', 2], ['a', 3]]));
  assert.notDeepEqual(ten([['a', 3], ['b', 2], ['c', 1]]), ten([['b', 3], ['a', 2], ['c', 1]]));
});

test('folded: stacks of one name are one, comments are left out', () => {
  assert.deepEqual(foldedStacks('# unit: count\nb;a x 2\na 1\nb;a x 3\n'), [['a', 1], ['b;a x', 5]]);
});

test('questions: windows, and answers in the same form', () => {
  const list = questions({ start: 1200, hour: 0, scrapes: 60, folded: ['a;b', 'a'], name: 'net.(*T).f', n: '600' });
  assert.equal(new Set(list.map((q) => q.what)).size, list.length);
  const of = (sql) => list.find((q) => q.sql === sql);
  assert.deepEqual(of('merge').window, { start: 1200, end: 1800 });
  assert.deepEqual(of('flat').window, { start: 1783 - 86400, end: 1783 });
  assert.deepEqual(of('cum, hours').window, { start: 3600 - 86400, end: 3600 });
  assert.match(of('filtered').params.query, /"\^net\[\.\]\[\(\]\[\*\]T\[\)\]\[\.\]f\$"/);
  assert.deepEqual(of('merge').theirs([[1, 5], [0, 2]]), of('merge').ours('a;b 2\na 5\n'));
  const series = { metric: { instance: 'pod1' }, values: [[1210, '7']] };
  assert.deepEqual(of('by pod').theirs([[31, 1210, 7]]), of('by pod').ours({ result: [series] }));
  assert.deepEqual(of('flat').theirs([['f', 2], ['g', 9]]), of('flat').ours({ result: [{ rows: [{ function: 'g', flat: 9 }, { function: 'f', flat: 2 }] }] }));
  assert.deepEqual(of('values').theirs([['pod1'], ['pod0']]), of('values').ours(['pod0', 'pod1']));
  assert.equal(of('filtered').theirs([[4]]), of('filtered').ours({ result: [{ value: [0, '4'] }] }));
});
