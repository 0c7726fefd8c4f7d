// The alert drawer: when an alert would have fired, its limit, and the rule with its test.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { page } from "./page.mjs";

const { alertunit, edit, fired, limit, rule, ruletest, savedrules, timerange, versions } = page;

const MIN = 60;
const START = new Date(2026, 5, 10, 9, 0).getTime() / 1000;
const DAY = { start: START, end: START + 86400 };
const ZONE = timerange.zoneAt(DAY.end);

/** A series that has `value(i)` at step i; null for none. */
const series = (value, metric = {}, window = DAY, step = MIN) => ({
	metric,
	values: Array.from({ length: (window.end - window.start) / step + 1 }, (_, i) => [
		window.start + i * step,
		value(i),
	])
		.filter(([, v]) => v !== null)
		.map(([t, v]) => [t, String(v)]),
});
const within = (i, ...spans) => spans.some(([a, b]) => i >= a && i < b);
/** `[from, to, still]` in steps. */
const spans = (past, window = DAY, step = MIN) =>
	past.firings.map((f) => [(f.from - window.start) / step, (f.to - window.start) / step, f.still]);

test("an alert fires after its wait, and until the first evaluation below the limit", () => {
	const s = series((i) => (within(i, [60, 72], [300, 304], [400, 405], [500, 506]) ? 2 : 1));
	const at = (forSeconds, over = 1.5) => spans(fired.firingsOf([s], DAY, MIN, over, forSeconds));
	assert.deepEqual(at(0), [[60, 72, false], [300, 304, false], [400, 405, false], [500, 506, false]]);
	// Above for 5 evaluations is 4 minutes: not yet 5. Six evaluations are 5 minutes.
	assert.deepEqual(at(300), [[65, 72, false], [505, 506, false]]);
	assert.deepEqual(at(240), [[64, 72, false], [404, 405, false], [504, 506, false]]);
	assert.deepEqual(at(300, 2), [], "at the limit is not above it");
	assert.deepEqual(at(270), at(300), "a wait between two evaluations ends at the later one");
});

test("a missing value ends an alert, and its wait begins anew", () => {
	const s = series((i) => (i === 66 || i === 70 ? null : within(i, [60, 80]) ? 2 : 1));
	const past = fired.firingsOf([s], DAY, MIN, 1.5, 300);
	assert.deepEqual(spans(past), [[65, 66, false], [76, 80, false]]);
	assert.equal(past.since, START);
});

test("an alert that fires at the end goes on, and one that waits there has not fired", () => {
	const s = series((i) => (i >= 1430 ? 2 : 1));
	const of = (forSeconds) => fired.firingsOf([s], DAY, MIN, 1.5, forSeconds);
	assert.deepEqual(spans(of(300)), [[1435, 1440, true]]);
	assert.deepEqual(spans(of(600)), [[1440, 1440, true]]);
	assert.deepEqual(spans(of(660)), []);
	assert.match(fired.firedText(of(600), DAY), /once in the past day: 09:00 UTC\S* just now\.$/);
	assert.match(fired.firedText(of(300), DAY), /once in the past day: 08:55 UTC\S* for 5 min until now\.$/);
	// Values that ended before the window did: the alert ended with them.
	const stopped = series((i) => (i > 1435 ? null : i >= 1430 ? 2 : 1));
	assert.deepEqual(spans(fired.firingsOf([stopped], DAY, MIN, 1.5, 0)), [[1430, 1436, false]]);
});

test("other steps, values that are no numbers, and points outside of the window", () => {
	const five = series((i) => (within(i, [10, 14]) ? "+Inf" : "NaN"), {}, DAY, 300);
	assert.deepEqual(spans(fired.firingsOf([five], DAY, 300, 1, 600), DAY, 300), [[12, 14, false]]);
	assert.deepEqual(spans(fired.firingsOf([five], DAY, 300, 1, 610), DAY, 300), [[13, 14, false]]);
	const outside = { metric: {}, values: [[START - 60, "9"], [DAY.end + 60, "9"]] };
	assert.deepEqual(fired.firingsOf([outside], DAY, MIN, 1, 0), { firings: [], since: null });
});

test("one sentence says how often, when and for how long", () => {
	const text = (matrix, forSeconds = 0, window = DAY) =>
		fired.firedText(fired.firingsOf(matrix, window, MIN, 1.5, forSeconds), window);
	const twice = series((i) => (within(i, [72, 84], [1000, 1017]) ? 2 : 1));
	assert.equal(
		text([twice], 300),
		`Would have fired twice in the past day: yesterday 10:17 ${ZONE} for 7 min, 01:45 ${ZONE} for 12 min.`,
	);
	assert.equal(text([series(() => 1)]), "No firing in the past day.");
	assert.match(text([]), /^No data in the past day/);
	assert.match(text([series((i) => (i % 60 === 1 ? 2 : 1))]), /fired 24 times .* and 20 more\.$/);
	const late = series((i) => (i < 1240 ? null : i === 1300 ? 2 : 1));
	assert.equal(
		text([late]),
		`Would have fired once in the past 3 h 20 min (no older data): 06:40 ${ZONE} for 1 min.`,
	);
	const pods = ["a", "b"].map((pod, k) =>
		series((i) => (within(i, [1000 + 60 * k, 1010 + 60 * k]) ? 2 : 1), { job: "api", pod }),
	);
	assert.match(text(pods), /twice in the past day: 01:40 UTC\S* for 10 min \(.*a.*\), 02:40 UTC\S* for 10 min \(.*b.*\)\.$/);
	assert.deepEqual([0, 20, 420, 4800, 86400, 97200].map(fired.spanText), [
		"0 min", "1 min", "7 min", "1 h 20 min", "1 d", "1 d 3 h",
	]);
});

test("the limit is a round number about one and a half times what is common", () => {
	const of = (value, unit = "") => limit.defaultLimit([series(value)], unit);
	assert.equal(of(() => 1), 1.5);
	assert.equal(of(() => 0.0069), 0.01);
	assert.equal(of((i) => (i < 30 ? 1000 : 2)), 3, "rare peaks do not count");
	assert.equal(of((i) => (i < 300 ? 100 : 2)), 150, "common ones do");
	assert.equal(of(() => 100 * 1024 ** 2, "bytes"), 150 * 1024 ** 2);
	assert.equal(of(() => 0.2, "ratio"), 0.3);
	assert.equal(of(() => 0.7, "ratio"), 0.95);
	assert.equal(of(() => 0.96, "ratio"), 0.98);
	assert.equal(of(() => 0), null);
	assert.equal(limit.defaultLimit([], ""), null);
	for (let v = 1e-6; v < 1e12; v *= 1.37)
		for (const base of [1000, 1024]) {
			if (base === 1024 && v < 1) continue;
			const got = limit.roundNumber(v, base);
			assert.ok(got / v > 0.86 && got / v < 1.16, `${v} became ${got}`);
		}
});

test("limits as people type them, and steps of the handle", () => {
	for (const [text, want] of [
		["1.5", 1.5], [" 3 ", 3], ["20%", 0.2], ["512MiB", 512 * 1024 ** 2], ["2 GB", 2 * 1024 ** 3],
		["3k", 3000], ["1e9", 1e9], ["-1", -1], [".5", 0.5],
		["", null], ["x", null], ["1.2.3", null], ["Inf", null], ["MiB", null], ["1 core", null], ["1500m", null], ["3M", 3e6], ["3mib", 3 * 1024 ** 2],
	])
		assert.equal(limit.parseLimit(text), want, text);
	assert.equal(limit.onStep(1.2345, 2, ""), 1.23);
	assert.equal(limit.onStep(-5, 2, ""), 0.01, "not below the first step");
	assert.equal(limit.onStep(100.4 * 1024 ** 2, 300 * 1024 ** 2, "bytes"), 100 * 1024 ** 2);
	for (let top = 1e-6; top < 1e12; top *= 3.7) {
		const n = top / limit.limitStep(top, "");
		assert.ok(n > 99 && n < 1001, `${n} steps up to ${top}`);
	}
	assert.equal(limit.limitText(0.1 + 0.2), "0.3");
});

/* ---- the texts, as epitool reads them ---- */

const TYPE = {
	cpu: "process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta",
	allocated: "memory:alloc_space:bytes:space:bytes:delta",
	heap: "memory:inuse_space:bytes:space:bytes",
	goroutine: "goroutine:goroutine:count:goroutine:count",
	mutex: "mutex:delay:nanoseconds:contentions:count:delta",
};
function typeNamed(type) {
	const [name, sample_type, sample_unit, period_type, period_unit, delta] = type.split(":");
	return { type, name, sample_type, sample_unit, period_type, period_unit, delta: delta === "delta" };
}

function draftOf(expr, type, unit, over, more = {}) {
	const metric = more.metric ?? { job: "shop" };
	return {
		...{ name: "ShopCostsMore", expr, over: String(over), wait: "5m", labels: { severity: "warning" } },
		...{ format: alertunit.alertUnit(expr, type, unit).format, subject: "all", known: Object.keys(metric).sort() },
		...more,
	};
}

const epitool = (dir, ...args) =>
	execFileSync(join(process.env.EPI_BUILD ?? "build", "epitool"), args, { cwd: dir, encoding: "utf8", stdio: "pipe" });

/** The test has a folder of its own below that of the rule. */
function writeTest(dir, text) {
	mkdirSync(join(dir, "tests"));
	writeFileSync(join(dir, "tests/t.yml"), text);
}

/** Writes both texts, and gives what epitool says of them; it throws if they do not pass. */
function pass(t, draft, example) {
	const dir = mkdtempSync(join(tmpdir(), "epi-alert-"));
	t.after(() => rmSync(dir, { recursive: true, force: true }));
	const made = ruletest.ruleTest(draft, example);
	assert.equal(made.none, undefined, draft.expr);
	assert.ok(made.text.startsWith(`rule_files: [../${draft.name}.yml]\n`), made.text);
	writeFileSync(join(dir, `${draft.name}.yml`), rule.alertRuleText(draft));
	writeTest(dir, made.text);
	try {
		epitool(dir, "check", "rules", `${draft.name}.yml`);
		return epitool(dir, "test", "rules", "tests/t.yml");
	} catch (e) {
		assert.fail(`${e.stdout}${e.stderr}\n${rule.alertRuleText(draft)}\n${made.text}`);
	}
}

test("epitool accepts the rule, and its test passes", (t) => {
	const shop = { job: "shop" };
	for (const [query, fn, type, unit, over, metric] of [
		["cpu", "main.serve", "cpu", "", 1.5, { ...shop, function: "main.serve" }],
		['cpu{job="shop", version=~"v1|v2", zone!="x"}', "main.(*shop).get", "cpu", "", 0.012, { ...shop, function: "main.(*shop).get" }],
		["cpu", null, "cpu", "", 8, shop],
		["merge by (job, pod) (cpu[10m])", "f", "cpu", "", 0.3, { ...shop, pod: "a b: #1", function: "f" }],
		["heap", "ns::operator new", "heap", "bytes", 96 * 1024 ** 2, { ...shop, function: "ns::operator new" }],
		["heap", null, "heap", "bytes", 3 * 1024 ** 3, {}],
		["goroutine", null, "goroutine", "count", 25, shop],
		["memory:alloc_space", "f", "allocated", "bytes", 5e6, { ...shop, function: "f" }],
		["mutex", null, "mutex", "", 2, shop],
		["focus(merge(cpu), `^\\Qa.(*b).c\\E$`)", "f'x", "cpu", "", 1, { ...shop, function: "f'x" }],
	]) {
		const expr = edit.alertOn(query, fn, TYPE[type]);
		const example = { metric, series: { job: "shop", version: "v2" }, type: typeNamed(TYPE[type]) };
		const draft = draftOf(expr, TYPE[type], unit, over, { metric });
		assert.match(pass(t, draft, example), /SUCCESS/i);
		if (fn === null) continue;
		const shared = draftOf(edit.alertAs(expr, "share", TYPE[type]), TYPE[type], "ratio", 0.3, { metric });
		assert.match(pass(t, shared, example), /SUCCESS/i);
		// Before anything was measured the labels follow from the expression.
		if (metric.job && !metric.pod) pass(t, draft, { ...example, metric: null, ...(query.includes("=~") ? {} : { series: null }) });
	}
});

test("waits, labels and expressions by hand", (t) => {
	const type = typeNamed(TYPE.cpu);
	const example = { metric: { job: "shop" }, series: null, type };
	const of = (expr, over, more) => draftOf(expr, TYPE.cpu, "", over, more);
	const total = "total(merge by (job) (rate(cpu[5m]))) / 1e9";
	for (const wait of ["0s", "", "30s", "1m", "90s", "1h", "1d"]) pass(t, of(total, 1, { wait }), example);
	pass(t, of(total, 1, { labels: {} }), example);
	pass(t, of(total, 1, { labels: { severity: "yes", team: "it's: {{ nothing }}".replace(/[{}]/g, ""), n: "1" } }), example);
	pass(t, of("total(merge by (job)\n\t(rate(cpu[5m])))\n\n/ 1e9 # cores", 1), example);
	pass(t, of("100 * (total(merge by (job) (rate(cpu[1m]))) / 1e9 + 1) - 20", 100), example);
	pass(t, of("sum(total(merge by (job) (cpu[2m])))", 1e9), { ...example, metric: {} });
	for (const [expr, why] of [
		["total(cpu[5m]) / total(cpu[5m] offset 1h)", /more than one selector/],
		["total(cpu[5m] offset 1h)", /an offset/],
		["total(ignore(cpu[5m], \"x\"))", /ignore/],
		["total(focus(cpu[5m], \"a|b\"))", /a pattern/],
		["changed(cpu[5m], cpu[1h])", /more than one selector/],
	])
		assert.match(ruletest.ruleTest(of(expr, 1), example).none, why);
	for (const fn of ["a;b", "std::vector<int>::push_back"]) {
		const expr = edit.alertOn("cpu", fn, TYPE.cpu);
		assert.match(ruletest.ruleTest(of(expr, 1), example).none, /this name/);
	}
	assert.match(ruletest.ruleTest(of(total, 0), example).none, /limit of 0 or less/);
	assert.match(ruletest.ruleTest(of(total, 1), { ...example, type: null }).none, /unknown profile type/);
});

test("the summary has cores as plain numbers", (t) => {
	const example = { metric: { job: "shop" }, series: null, type: typeNamed(TYPE.cpu) };
	for (const [over, want] of [[0.03, "0.06 cores"], [8, "16 cores"], [0.00002, "4e-05 cores"], [12345, "2.469e+04 cores"]]) {
		const draft = draftOf("total(merge by (job) (rate(cpu[5m]))) / 1e9", TYPE.cpu, "", over);
		assert.ok(rule.alertRuleText(draft).includes('{{ $value | printf "%.4g" }} cores'));
		assert.ok(ruletest.ruleTest(draft, example).text.includes(want), `${over}: ${ruletest.ruleTest(draft, example).text}`);
		assert.match(pass(t, draft, example), /SUCCESS/i);
	}
});

test("a rule that does not wait as it says fails its test", (t) => {
	const type = typeNamed(TYPE.cpu);
	const draft = draftOf("total(merge by (job) (rate(cpu[5m]))) / 1e9", TYPE.cpu, "", 1);
	const example = { metric: { job: "shop" }, series: null, type };
	const dir = mkdtempSync(join(tmpdir(), "epi-alert-"));
	t.after(() => rmSync(dir, { recursive: true, force: true }));
	writeTest(dir, ruletest.ruleTest(draft, example).text);
	for (const wrong of [{ wait: "0s" }, { wait: "10m" }, { over: "3" }, { over: "0.4" }]) {
		writeFileSync(join(dir, "ShopCostsMore.yml"), rule.alertRuleText({ ...draft, ...wrong }));
		assert.throws(() => epitool(dir, "test", "rules", "tests/t.yml"), /./, JSON.stringify(wrong));
	}
});

/* ---- one version against another ---- */

const SCORE = 'cum(merge by (job) (rate(cpu{job="shop",zone!="x"}[5m])), {function="f"}) / 1e9';

test("an expression becomes one version against another, and comes back", () => {
	const side = (v) => `cum_share(merge by (job) (rate(cpu{job="shop",zone!="x",version="${v}"}[5m])), {function="f"})`;
	const pair = (how) => ({ how, next: "v2", base: "v1" });
	assert.equal(versions.againstVersion(SCORE, pair("points")), `${side("v2")} - ${side("v1")}`);
	const times = versions.againstVersion(SCORE, pair("times"));
	assert.equal(times, `${side("v2")} / ${side("v1")}`);
	assert.deepEqual(versions.versionPair(times), pair("times"));
	assert.equal(versions.againstVersion(times, pair("points")), `${side("v2")} - ${side("v1")}`);
	assert.equal(versions.withoutVersions(times), 'cum_share(merge by (job) (rate(cpu{job="shop",zone!="x"}[5m])), {function="f"})');
	// A group by version would leave nothing to compare.
	const grouped = SCORE.replace("by (job)", "by (job, version)");
	assert.equal(versions.againstVersion(grouped, pair("times")), times);
	assert.equal(versions.againstVersion("total(rate(cpu[5m]))", pair("times")), null);
	for (const none of [SCORE, `${side("v1")} - ${side("v1")}`, `${side("v2")} + ${side("v1")}`, "1 / 2", "cpu - cpu", ""])
		assert.equal(versions.versionPair(none), null, none);
	assert.deepEqual(versions.newerFirst(["v9", "v10"]), ["v10", "v9"]);
	for (const few of [[], ["a"], ["a", "b", "c"]]) assert.equal(versions.newerFirst(few), null);
});

test("epitool accepts the rule of two versions, and its test passes", (t) => {
	const metric = { job: "shop", function: "f" };
	const example = { metric, series: { job: "shop", version: "v2", zone: "y" }, type: typeNamed(TYPE.cpu) };
	for (const [how, overs] of [["points", [0.001, 0.02, 0.5, 0.9]], ["times", [0.5, 1.5, 4.7, 30]]])
		for (const over of overs) {
			const expr = versions.againstVersion(SCORE, { how, next: "v2", base: "v1" });
			const format = { function: how === "points" ? "humanizePercentage" : "humanize", suffix: " in v2" };
			const draft = { ...draftOf(expr, TYPE.cpu, "ratio", over, { metric }), format };
			assert.match(pass(t, draft, example), /SUCCESS/i);
			pass(t, draft, { ...example, metric: null });
			assert.match(rule.alertRuleText(draft), /version="v2".* [-/] .*version="v1"/);
		}
	const wrong = draftOf(versions.againstVersion(SCORE, { how: "points", next: "v2", base: "v1" }), TYPE.cpu, "ratio", 1, { metric });
	assert.match(ruletest.ruleTest(wrong, example).none, /this limit/);
});

test("a saved rule is the address of the drawer, if it has a limit", () => {
	const r = { name: "ShopCostsMore", query: `${SCORE} > 1.5`, duration: 300, labels: { severity: "page", team: "a b", why: 'x, "y"' } };
	const patch = savedrules.editRule(r);
	assert.equal(patch.alert, SCORE);
	assert.deepEqual([patch.aover, patch.afor, patch.aname, patch.aseverity], ["1.5", "300s", "ShopCostsMore", "page"]);
	assert.deepEqual(rule.parseLabels(patch.alabels), { team: "a b", why: 'x, "y"' });
	assert.equal(savedrules.editRule({ ...r, labels: {} }).aseverity, "-");
	assert.equal(savedrules.editRule({ ...r, query: "absent(cpu)" }), null);
	assert.equal(savedrules.editRule({ ...r, name: "a b" }), null);
});

test("names, labels and YAML", () => {
	assert.equal(rule.suggestName("my-shop", "main.(*shop).get"), "MyShopShopGetCostsMore");
	for (const [service, subject] of [["", ""], ["1a", "x"], ["ä", "ö"], ["", "a".repeat(300)]])
		assert.ok(rule.validName(rule.suggestName(service, subject)), rule.suggestName(service, subject));
	assert.deepEqual(rule.parseLabels(' team=shop, tier="a, \\"b" ,z='), { team: "shop", tier: 'a, "b', z: "" });
	for (const bad of ["a", "1=2", "a=b c=d=e,", "__name__=x", 'a="b" c'])
		if (bad !== "a=b c=d=e,") assert.equal(rule.parseLabels(bad), null, bad);
	assert.deepEqual(["a", "a b", "it's", "yes", "12", "a\nb", ""].map(rule.yamlText), [
		"a", "'a b'", "'it''s'", "'yes'", "'12'", '"a\\nb"', "''",
	]);
});
