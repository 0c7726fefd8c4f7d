// What the section columns asks: in the server's language, in SQL (stores.py has it by name), and how two answers are compared.
import { PODS, SERVICE, STEP_S, jobOf } from './input.mjs';

export const JOB = jobOf(SERVICE);
const DAY_S = 86400, HOUR_S = 3600;
const LEFT_OUT = 2; // scrapes: the last, of a window aligned to nothing

/** Sums by key, sorted by it. */
function byKey(pairs) {
  const sums = new Map();
  for (const [key, value] of pairs) sums.set(key, (sums.get(key) ?? 0) + value);
  return [...sums].sort(([a], [b]) => (a < b ? -1 : 1));
}

/** Costs in descending order, and names; any of those that have the tenth cost may be the tenth. */
export function ten(rows) {
  const all = rows.map(([, cost]) => cost).sort((a, b) => b - a);
  return [all, byKey(rows.filter(([, cost]) => cost > all.at(-1)))];
}

export function foldedStacks(text) {
  return byKey(text.trim().split('\n').filter((line) => !line.startsWith('#')).map((line) => {
    const at = line.lastIndexOf(' ');
    return [line.slice(0, at), Number(line.slice(at + 1))];
  }));
}

/** `exact`: parameters of a whole answer as text, where the timed one is abridged. `ours`, `theirs`: an answer to compare. */
const mergeOf = (whole, n, folded) => ({
  what: `merge of ${n}, named JSON (other: ids)`, sql: 'merge', path: 'query', exact: { format: 'folded' },
  params: { query: `merge(cpu:samples{job="${JOB}"})`, max_nodes: 2048, ...whole }, window: whole,
  ours: foldedStacks,
  theirs: (rows) => byKey(rows.map(([stack, sum]) => [folded[stack], sum])),
});

const byPod = (whole, n, sql, suffix = '') => ({
  what: `sum over time by pod of ${n}${suffix}`, sql, path: 'query_range', window: whole,
  params: { query: `sum by (instance) (total(cpu:samples{job="${JOB}"}))`, step: STEP_S, ...whole, start: whole.start + STEP_S },
  ours: (a) => byKey(a.result.flatMap((s) => s.values.map(([at, v]) => [`${s.metric.instance} ${at}`, Number(v)]))),
  theirs: (rows) => byKey(rows.map(([series, at, sum]) => [`pod${series - SERVICE * PODS} ${at}`, sum])),
});

const flat = (window, what, sql) => ({
  what: `flat top 10, 24 h ${what}`, sql, path: 'query', window, params: { query: 'top(10, merge(cpu:samples))', ...window },
  ours: (a) => ten(a.result[0].rows.map((r) => [r.function, Number(r.flat)])), theirs: ten,
});

const cum = (window, what, sql) => ({
  what: `cum top 10, 24 h ${what}`, sql, path: 'query', window, params: { query: 'topk(10, cum(merge(cpu:samples)))', ...window },
  ours: (a) => ten(a.result.map((r) => [r.metric.function, Number(r.value[1])])), theirs: ten,
});

const valuesOf = (window) => ({
  what: 'values of a label', sql: 'values', path: 'label/instance/values', window,
  params: { 'match[]': `cpu:samples{job="${JOB}"}`, ...window },
  ours: (a) => [...a].sort(), theirs: (rows) => rows.flat().sort(),
});

const filteredBy = (window, name) => ({
  what: 'stacks with one function, 24 h to any second', sql: 'filtered', path: 'query', window,
  params: { query: `sum(total(focus(merge(cpu:samples), "^${name.replace(/[.*+()[\]]/g, '[$&]')}$")))`, ...window },
  ours: (a) => Number(a.result[0].value[1]), theirs: ([[sum]]) => sum,
});

/**
 * All questions. Profiles end STEP_S apart after `start`, which is in the hour that begins at `hour`; `folded`: stacks of
 * SERVICE by id; `name`: a function.
 */
export function questions({ start, hour, scrapes, folded, name, n }) {
  const whole = { start, end: start + STEP_S * scrapes };
  const end = whole.end - LEFT_OUT * STEP_S + 3, odd = { start: end - DAY_S, end };
  const hours = { start: hour + HOUR_S - DAY_S, end: hour + HOUR_S };
  return [
    mergeOf(whole, n, folded),
    byPod(whole, n, 'by pod'), byPod(whole, n, 'by pod, totals', ' (other: kept)'),
    flat(odd, 'to any second', 'flat'), cum(odd, 'to any second', 'cum'),
    flat(hours, 'to the hour (other: kept)', 'flat, hours'), cum(hours, 'to the hour (other: kept)', 'cum, hours'),
    valuesOf(whole), filteredBy(odd, name)];
}
