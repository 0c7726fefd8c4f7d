// The base's costs in the table of a difference.
import assert from "node:assert/strict";
import test from "node:test";
import { page } from "./page.mjs";

const { basesOf, withSearched } = page.bases;

const row = (name, flat) => ({ function: name, flat, flat_percent: 0, sum_percent: 0, cum: flat, cum_percent: 0 });
const flats = ({ rows }) => Object.fromEntries([...rows].map(([name, r]) => [name, r.flat]));
const matched = (rows, functions = rows.length) => ({ rows, functions, stacks: 1, names: [], paths: [] });

test("a base is whole if it has a row for each of its functions, or none at all", () => {
	assert.deepEqual(basesOf(undefined), { rows: new Map(), whole: true });
	const table = { metric: {}, unit: "nanoseconds", total: 9, rows: [row("a", 5)] };
	assert.equal(basesOf({ ...table, functions: 1 }).whole, true);
	assert.equal(basesOf({ ...table, functions: 2 }).whole, false);
	assert.equal(basesOf(table).whole, false, "a server that does not say how many");
});

test("what a search finds beyond the loaded rows has its cost in the base", () => {
	const bases = { rows: new Map([["a", row("a", 5)]]), whole: false };
	const next = matched([row("f1", 3), row("f2", 4), row("f3", 1)]);
	const all = withSearched(bases, next, matched([row("f1", 10), row("f2", 20)]));
	assert.deepEqual(flats(all), { f1: 10, f2: 20, f3: 0, a: 5 }, "f3 is new");
	// The base has more matches than its answer: whether it has f3 is not known.
	const part = withSearched(bases, next, matched([row("f1", 10)], 3));
	assert.deepEqual(flats(part), { f1: 10, a: 5 });
	assert.equal(all.whole, false);
});
