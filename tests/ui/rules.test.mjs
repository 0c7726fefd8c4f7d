import assert from "node:assert/strict";
import test from "node:test";
import { page } from "./page.mjs";

const { rules } = page;

const alert = (state, labels, annotations = {}) => ({
	state,
	labels,
	annotations,
	activeAt: "2026-01-01T00:00:00Z",
	value: "1e+00",
});
const rule = (name, more = {}) => ({
	type: "alerting",
	name,
	query: `total(${name})`,
	health: "ok",
	evaluationTime: 0,
	lastEvaluation: "2026-01-01T00:00:00Z",
	...more,
});
const group = (name, ...list) => ({
	name,
	file: `${name}.yml`,
	interval: 60,
	evaluationTime: 0,
	lastEvaluation: "",
	rules: list,
});
const groups = [
	group(
		"shop",
		rule("Dear", {
			labels: { severity: "page" },
			alerts: [
				alert("pending", { alertname: "Dear", job: "api", severity: "page" }),
				alert("firing", { alertname: "Dear", job: "web", severity: "page" }, { summary: "Look" }),
			],
		}),
		rule("Slow", { state: "inactive" }),
	),
	group("records", rule("job:cpu", { type: "recording" }), rule("Late", { state: "pending" })),
];

test("a rule is in the worst of its alerts' states", () => {
	assert.deepEqual(
		groups.flatMap((g) => g.rules.map((r) => rules.stateOf(r))),
		["firing", "inactive", "inactive", "pending"],
	);
	assert.equal(rules.stateOf(rule("New", { state: "unknown" })), "inactive");
	assert.deepEqual(rules.countStates(groups), { firing: 1, pending: 1, inactive: 1 });
	assert.deepEqual(rules.countStates([]), { firing: 0, pending: 0, inactive: 0 });
});

test("a filter looks at all of a rule and of its alerts", () => {
	const names = (filter, keep = () => true) =>
		rules.filterGroups(groups, filter, keep).flatMap((g) => g.rules.map((r) => r.name));
	for (const [filter, want] of [
		["", ["Dear", "Slow", "job:cpu", "Late"]],
		["  LOOK ", ["Dear"]],
		['severity="page"', ["Dear"]],
		["total(slow)", ["Slow"]],
		["records.yml", ["job:cpu", "Late"]],
		["nothing", []],
	])
		assert.deepEqual(names(filter), want, filter);
	assert.deepEqual(
		names("", (r) => r.type === "recording"),
		["job:cpu"],
	);
	assert.equal(rules.filterGroups(groups, "job:cpu", () => true).length, 1, "no empty group");
});

test("an element's labels are those its rule did not give", () => {
	const r = groups[0].rules[0];
	assert.deepEqual(rules.elementLabels(r, r.alerts[0]), { job: "api" });
	assert.deepEqual(rules.elementLabels(rule("x"), alert("firing", { alertname: "x", a: "b" })), {
		a: "b",
	});
	const odd = alert("firing", { alertname: "x", constructor: "b" });
	assert.deepEqual(rules.elementLabels(rule("x", { labels: {} }), odd), { constructor: "b" });
});

test("an alert's key is of its group and labels, in whatever order", () => {
	const [a, b] = groups[0].rules[0].alerts;
	const turned = { ...a, labels: Object.fromEntries(Object.entries(a.labels).reverse()) };
	assert.match(rules.alertKey(groups[0], a), /^[0-9a-f]{8}$/);
	assert.equal(rules.alertKey(groups[0], a), rules.alertKey(groups[0], turned));
	assert.notEqual(rules.alertKey(groups[0], a), rules.alertKey(groups[0], b));
	assert.notEqual(rules.alertKey(groups[0], a), rules.alertKey(groups[1], a));
});

test("Go's zero time is no time", () => {
	assert.equal(rules.timeOf("2026-01-01T00:00:00.5Z"), 1767225600.5);
	for (const text of ["0001-01-01T00:00:00Z", "", undefined, "soon"])
		assert.equal(rules.timeOf(text), null, text);
});
