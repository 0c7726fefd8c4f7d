import assert from "node:assert/strict";
import test from "node:test";
import { page } from "./page.mjs";

const { verdict } = page;

function pair(name, word, low, high) {
	return [
		["low", low],
		["high", high],
	].map(([bound, v]) => ({
		metric: { function: name, verdict: word, bound },
		value: [0, String(v)],
	}));
}

const answer = [
	...pair("main.hot", "changed", 0.184, 0.258),
	...pair("main.gone", "changed", -0.05, -0.03),
	...pair("main.slow", "rises", 0.042, 0.086),
	...pair("main.less", "falls", -0.08, -0.06),
	...pair("main.calm", "not changed", -0.004, 0.012),
	...pair("main.loud", "cannot tell", -0.06, 0.092),
];

test("a bound has two digits and is rounded up", () => {
	for (const [high, words] of [
		[0.0138, "< 1.4 pp"],
		[0.012, "< 1.2 pp"],
		[0.01201, "< 1.3 pp"],
		[0.0951, "< 9.6 pp"],
		[0.0996, "< 10 pp"],
		[0.153, "< 16 pp"],
		[0.00871, "< 0.88 pp"],
		[0.00004, "< 0.01 pp"],
		[0, "< 0.01 pp"],
	])
		assert.equal(verdict.wordsOf({ verdict: "not changed", low: -high / 2, high }), words);
});

test("verdicts in words", () => {
	const changes = verdict.changesOf(answer);
	assert.equal(changes.size, 6);
	for (const [name, words, bounds] of [
		["main.hot", "+22.10 pp", "+18.40 pp and +25.80 pp"],
		["main.gone", "−4.00 pp", "−5.00 pp and −3.00 pp"],
		["main.slow", "+6.40 pp, rising", "+4.20 pp and +8.60 pp"],
		["main.less", "−7.00 pp, falling", "−8.00 pp and −6.00 pp"],
		["main.calm", "< 1.2 pp", "−0.40 pp and +1.20 pp"],
		["main.loud", "not enough data yet", "−6.00 pp and +9.20 pp"],
	]) {
		assert.equal(verdict.wordsOf(changes.get(name)), words);
		assert.equal(verdict.boundsOf(changes.get(name)), bounds);
	}
});

test("what changed comes first, then what cannot be told", () => {
	const changes = verdict.changesOf(answer);
	const names = ["main.none", "main.calm", "main.loud", "main.gone", "main.slow", "main.less", "main.hot"];
	const ranks = names.map((n) => verdict.rankOf(changes.get(n)));
	assert.deepEqual(ranks, [...ranks].sort((a, b) => a - b));
	assert.equal(new Set(ranks).size, names.length);
});

test("bounds of all functions are of none", () => {
	const all = pair("", "cannot tell", -1, 1).map(({ metric, value }) => ({
		metric: { bound: metric.bound, verdict: metric.verdict },
		value,
	}));
	assert.equal(verdict.changesOf(all).size, 0);
});

test("a change of one series alone is named beside that of all", () => {
	const one = pair("main.hot", "changed", 0.2, 0.3).map(({ metric, value }) => ({ metric: { ...metric, pod: "api-7" }, value }));
	const changes = verdict.changesOf([...pair("main.hot", "cannot tell", -0.01, 0.05), ...one]);
	assert.equal(changes.size, 1);
	const hot = changes.get("main.hot");
	assert.equal(hot.verdict, "cannot tell");
	assert.equal(verdict.isProved(hot), true);
	assert.equal(verdict.wordsOf(hot), '+25.00 pp in pod="api-7"');
	assert.equal(verdict.boundsOf(hot), "−1.00 pp and +5.00 pp");
	assert.ok(verdict.rankOf(hot) > verdict.rankOf(verdict.changesOf(pair("x", "cannot tell", -0.5, 0.5)).get("x")));
	const both = verdict.changesOf([...pair("main.hot", "changed", 0.02, 0.04), ...one]).get("main.hot");
	assert.equal(verdict.wordsOf(both), "+3.00 pp");
});
