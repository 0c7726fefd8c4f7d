import assert from "node:assert/strict";
import test from "node:test";
import { page } from "./page.mjs";

const { relabel } = page;

const plain = { separator: ";", regex: "(.*)", replacement: "$1", action: "replace" };

test("a rule in the words of the configuration", () => {
	for (const [rule, want] of [
		[{ sourceLabels: ["a", "b"], targetLabel: "c" }, "source_labels: [a, b], target_label: c"],
		[{ regex: "x.*", action: "drop", sourceLabels: ["a"] }, "source_labels: [a], regex: 'x.*', action: drop"],
		[{ regex: "", action: "keep" }, "regex: '', action: keep"],
		[{ separator: "", targetLabel: "t", replacement: undefined }, "separator: '', target_label: t, replacement: ''"],
		[{ modulus: 7, targetLabel: "t", action: "hashmod" }, "modulus: 7, target_label: t, action: hashmod"],
		[{ targetLabel: "t", replacement: "it's" }, "target_label: t, replacement: 'it''s'"],
	])
		assert.equal(relabel.relabelText({ ...plain, ...rule }), want);
});

test("what a rule changed", () => {
	assert.deepEqual(relabel.labelChanges({ a: "1", b: "2", c: "3" }, { a: "1", c: "4", d: "5" }), [
		{ name: "b", before: "2", after: undefined },
		{ name: "c", before: "3", after: "4" },
		{ name: "d", before: undefined, after: "5" },
	]);
	assert.deepEqual(relabel.labelChanges({ a: "1" }, { a: "1" }), []);
});
