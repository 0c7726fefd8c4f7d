// The pages of alerts and rules, the way from an alert to its flame graph, and the pages of status.
//
// The profiles are the server's. The groups of rules are made up and replace the answer of
// /api/v1/rules, so that each state occurs however busy the machine is.
import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import {
	closeBrowser,
	comes,
	complete,
	countComes,
	fixedWindow,
	flameReady,
	FLEET as base,
	fleetApi as api,
	openFleet,
	params,
	shot,
	verdictReady,
} from "./page.mjs";

const iso = (t) => new Date(t * 1000).toISOString();

let at, dear;
const EXPR = (name) => `cum_share(merge by (job) (cpu{job=~"de.*"}[1m]), {function="${name}"}) > 0`;

before(async () => {
	at = Number((await fixedWindow(60)).to); // profiles that ended by then are stored
	const top = await api("query", { query: 'top(5, merge(cpu{job="demo"}[1m]))', time: at });
	dear = top.result[0].rows[0].function;
});
after(closeBrowser);

function groups(began = at - 900) {
	const times = { lastEvaluation: iso(at), evaluationTime: 0.0021 };
	const alerting = (name, state, more) => ({
		type: "alerting",
		name,
		state,
		duration: 0,
		keepFiringFor: 0,
		labels: {},
		annotations: {},
		alerts: [],
		health: "ok",
		...times,
		...more,
	});
	return [
		{
			name: "costs",
			file: "/etc/epimetheus/rules/costs.yml",
			interval: 60,
			limit: 0,
			...times,
			rules: [
				alerting("FunctionTooExpensive", "firing", {
					query: EXPR(dear),
					duration: 600,
					keepFiringFor: 90,
					labels: { severity: "page" },
					annotations: { summary: "{{ $labels.job }} costs" },
					alerts: [
						{
							labels: { alertname: "FunctionTooExpensive", job: "demo", severity: "page" },
							annotations: { summary: "demo costs" },
							state: "firing",
							activeAt: iso(began),
							value: "2.5e-01",
						},
					],
				}),
				alerting("TargetDown", "pending", {
					query: "up == 0",
					alerts: [
						{
							labels: { alertname: "TargetDown", job: "demo" },
							annotations: {},
							state: "pending",
							activeAt: iso(at - 60),
							value: "0e+00",
						},
					],
				}),
				alerting("TooManyGoroutines", "inactive", { query: "total(goroutine) > 1e6" }),
			],
		},
		{
			name: "records",
			file: "/etc/epimetheus/rules/records.yml",
			interval: 15,
			limit: 0,
			...times,
			rules: [
				{
					type: "recording",
					name: "job:cpu:total",
					query: "total(merge by (job) (cpu[1m]))",
					health: "err",
					lastError: "evaluation took longer than 15s",
					...times,
				},
			],
		},
	];
}

/** Opens a page; `rules` replaces the server's answer, unless it is null; `more` is what else the answer has. */
const open = (t, path, rules = null, options = {}, more = {}) =>
	openFleet(t, path, { ...options, before: (page) => rules && answerRules(page, rules, more) });

function answerRules(page, rules, { data = {}, ...more }) {
	return page.route("**/api/v1/rules*", (route) => {
		const type = new URL(route.request().url()).searchParams.get("type");
		const list = rules
			.map((g) => ({
				...g,
				rules: g.rules.filter((r) => !type || r.type === `${type}ing`),
			}))
			.filter((g) => g.rules.length);
		return route.fulfill({ json: { status: "success", data: { groups: list, ...data }, ...more } });
	});
}

/** The share of a function in profiles. */
async function shareOf(of, profiles, name, time) {
	const query = `${of}_share(${profiles}, {function=${JSON.stringify(name)}})`;
	return Number((await api("query", { query, time })).result[0]?.value[1] ?? 0);
}

const names = (page) => page.locator(".rule-name").allInnerTexts();

test("without rules the pages say how to write some", async (t) => {
	for (const path of ["alerts", "rules"]) {
		const { page, problems } = await open(t, path, []);
		await page.getByText("rule_files:").waitFor();
		assert.match(await page.locator(".no-rules").innerText(), /alert: FunctionTooExpensive/);
		assert.deepEqual(problems, []);
		await shot(page, `no-${path}`);
	}
});

test("a query node says which one evaluates, and how old the answer is", async (t) => {
	const warning = "rules are evaluated by query-0; the state is 50s old";
	for (const path of ["alerts", "rules"]) {
		const more = {
			data: { evaluatedBy: "query-0", evaluatedAt: iso(Date.now() / 1000 - 50) },
			infos: ["rules are evaluated by query-0"],
			warnings: [warning],
		};
		const { page, problems } = await open(t, path, groups(), {}, more);
		await page.getByText(/^Evaluated by query-0, as of \d+ s ago$/).waitFor();
		assert.equal(await page.locator(".notice.warning").innerText(), warning);
		assert.ok((await names(page)).includes("FunctionTooExpensive"));
		if (path === "alerts") await page.getByText("Firing 1", { exact: true }).waitFor();
		assert.deepEqual(problems, []);
		await shot(page, `elsewhere-${path}`);
	}
	// Without rules there is nothing to write: others may have them.
	const { page } = await open(t, "alerts", [], {}, { warnings: ["no query node has evaluated the rules yet"] });
	await page.locator(".notice.warning").waitFor();
	await countComes(page.locator(".no-rules"), 0);
});

test("the server's own answers are read", async (t) => {
	for (const path of ["alerts", "rules"]) {
		const { page, problems } = await open(t, path);
		await page.locator(".no-rules, .group-panel").first().waitFor();
		await countComes(page.getByRole("alert"), 0);
		assert.deepEqual(problems, []);
	}
});

test("the example of a rule file is one the server's language has", async (t) => {
	const { page } = await open(t, "alerts", []);
	const text = await page.locator(".no-rules pre").last().innerText();
	const exprs = [...text.matchAll(/^\s*expr: (.*)$/gm)].map((m) => m[1]);
	assert.equal(exprs.length, 2);
	for (const query of exprs) await api("query", { query, time: at });
});

test("alerts by state and text, with labels, annotations, value and time", async (t) => {
	const { page, problems } = await open(t, "alerts", groups());
	const rule = page.locator(".rule").first();
	await rule.locator(".alerts tbody tr").first().waitFor();
	assert.deepEqual(await names(page), ["FunctionTooExpensive", "TargetDown", "TooManyGoroutines"]);
	const text = (await rule.innerText()).replace(/\s+/g, " ");
	for (const want of [
		EXPR(dear).replace(/\s+/g, " "),
		"For 10m",
		"Keep firing for 1m30s",
		"severitypage",
		"summary demo costs",
		"alertnameFunctionTooExpensive",
		"0.25",
		"1 firing",
		"2.1 ms",
	])
		assert.ok(text.includes(want), `${want} in ${text}`);
	const minutes = Math.round((Date.now() / 1000 - (at - 900)) / 60); // now; the page was opened before
	assert.ok([minutes - 1, minutes].some((n) => text.includes(`${n} min ago`)), `${minutes} min ago in ${text}`);
	for (const [button, want] of [
		["Firing 1", ["FunctionTooExpensive"]],
		["Pending 1", ["TargetDown"]],
		["Inactive 1", ["TooManyGoroutines"]],
		["All", ["FunctionTooExpensive", "TargetDown", "TooManyGoroutines"]],
	]) {
		await page.getByRole("button", { name: button, exact: true }).click();
		assert.deepEqual(await names(page), want, button);
	}
	await page.getByRole("textbox", { name: /^Filter/ }).fill("GOROUTINE");
	await page.waitForURL(/filter=GOROUTINE/);
	assert.deepEqual(await names(page), ["TooManyGoroutines"]);
	await page.getByRole("textbox", { name: /^Filter/ }).fill("nothing at all");
	await page.getByText("No matching alert").waitFor();
	assert.deepEqual(problems, []);
});

test("a firing limit shows its window against the one before it began, as counted", async (t) => {
	const { page, problems } = await open(t, "alerts", groups(at - 20));
	await page.getByRole("button", { name: "Flame graph" }).first().click();
	await flameReady(page);
	await page.getByText("before the alert began").waitFor();
	await page.setViewportSize({ width: 1200, height: 750 });
	const cut = () =>
		page.evaluate(() => {
			const all = [...document.querySelectorAll(".measured, .measured *")];
			return all.filter((e) => e.getBoundingClientRect().right > innerWidth).map((e) => e.className);
		});
	await comes(cut, [], "the graph fits");
	const sides = ['merge(cpu{job="demo"}[1m])', 'merge(cpu{job="demo"}[1m] offset 1m20s)'];
	const ask = `diff(${sides.join(", ")})`;
	const data = await api("query", { query: ask, time: at });
	const top = await api("query", { query: `top(5000, ${ask})`, time: at });
	await page.locator(".measured .vtable-body > div").first().waitFor();
	const rows = await page.evaluate(() => window.__epi.table());
	assert.deepEqual(
		Object.fromEntries(rows.map((r) => [r.function, [r.flat, r.cum]])),
		Object.fromEntries(top.result[0].rows.map((r) => [r.function, [r.flat, r.cum]])),
	);
	assert.ok(data.result[0].profiles > 0);
	// The sentence is about the rule's function: cum_share, exactly.
	const of = await verdictReady(page);
	const shares = await Promise.all(sides.map((side) => shareOf("cum", side, dear, at)));
	assert.deepEqual([of.name, of.of, of.by], [dear, "cum", "share"]);
	assert.deepEqual([of.costs.next, of.costs.base], shares);
	await page.locator(".picked").waitFor();
	assert.match(await page.locator(".picked").getAttribute("title"), new RegExp("highlighted"));
	await shot(page, "alert");
	// A reload shows the same.
	await page.reload();
	await flameReady(page);
	await page.getByRole("link", { name: "Open in Compare" }).click();
	await page.waitForURL(/\/compare\?/);
	await flameReady(page);
	assert.deepEqual(params(page), {
		new: 'cpu{job="demo"}',
		base: 'cpu{job="demo"}',
		from: String(at - 60),
		to: String(at),
		bfrom: String(at - 140),
		bto: String(at - 80),
		pick: dear,
		about: dear,
		measure: "cum_share",
	});
	assert.equal(await page.locator(".asked code").textContent(), ask);
	assert.deepEqual(problems, []);
});

test("an alert's link opens its expression at its time, with the flame graph below", async (t) => {
	const { page, problems } = await open(t, "alerts", groups());
	await page.getByRole("link", { name: "Explore", exact: true }).nth(1).click();
	await page.waitForURL(/\/explore\?/);
	const want = { query: EXPR(dear), at: String(at), since: String(at - 900), match: '{job="demo"}' };
	assert.deepEqual(params(page), want);
	await flameReady(page);
	await page.getByRole("heading", { name: "Measured profiles" }).waitFor();
	const exact = 'merge(cpu{job="demo"}[1m])';
	assert.equal(await page.locator(".asked code").textContent(), exact);
	const data = await api("query", { query: exact, time: at });
	const flame = await page.evaluate(() => window.__epi.flame());
	assert.equal(flame.nodes[0].total ?? data.result[0].total, data.result[0].total);
	await countComes(page.locator(".picked"), 1, "the function is highlighted");
	const value = await api("query", { query: want.query, time: at });
	const share = Number(value.result[0].value[1]);
	await page.waitForFunction(() => window.__epi.search()?.percent !== undefined);
	const search = await page.evaluate(() => window.__epi.search());
	assert.ok(Math.abs(search.percent / 100 - share) < 1e-3, `${search.percent} % against ${share}`);
	assert.deepEqual(problems, []);
	await shot(page, "alert-explore");
	// A link as rules write it, opened from elsewhere.
	await page.goto(`${base}explore?${new URLSearchParams(want)}`);
	await flameReady(page);
	await page.getByRole("button", { name: "Over the time range instead" }).click();
	await page.waitForFunction(() => !/[?&](at|match|since)=/.test(location.search));
	assert.deepEqual(params(page), {
		query: want.query,
		from: String(at - 3600),
		to: String(at),
	});
	await page.getByRole("button", { name: "Flame graph behind these costs" }).click();
	await page.waitForURL(/[?&]at=/);
	await flameReady(page);
});

test("what looks at no profiles says so", async (t) => {
	const { page } = await open(t, "alerts", groups());
	await page.getByRole("button", { name: "Flame graph" }).nth(1).click();
	await page.getByText("the expression selects no profiles").waitFor();
	const expr = new URLSearchParams({ expr: "up == 0", at: String(at) });
	await page.goto(`${base}compare?${expr}`);
	await page.getByRole("link", { name: "Open it in Explore" }).waitFor();
});

test("Compare takes an expression", async (t) => {
	const { page, problems } = await open(
		t,
		"compare?" +
			new URLSearchParams({
				expr: 'changed(cpu{version="v2"}[1m], cpu{version="v1"}[1m])',
				at: String(at),
				match: '{job="demo",function="f"}',
			}),
	);
	await page.waitForFunction(() => new URLSearchParams(location.search).has("new"));
	assert.deepEqual(params(page), {
		new: 'cpu{version="v2",job="demo"}',
		base: 'cpu{version="v1",job="demo"}',
		from: String(at - 60),
		to: String(at),
		bfrom: String(at - 60),
		bto: String(at),
		norm: "1",
		pick: "f",
		about: "f",
		measure: "flat_share",
	});
	await flameReady(page);
	assert.deepEqual(problems, []);
});

test("the demo's alert opens v2 against v1, about the function that it names", async (t) => {
	const NAME = "FunctionCostsMoreInNewVersion";
	const firing = async () => (await api("alerts")).alerts.filter((a) => a.labels.alertname === NAME && a.state === "firing");
	await comes(async () => (await firing()).length > 0, true, "the demo's alert");
	const [{ labels }] = await firing();
	const { page, problems } = await open(t, `alerts?filter=${NAME}`);
	const row = page.locator(".alerts tbody tr", { hasText: labels.function }).first();
	await row.getByRole("button", { name: "Flame graph" }).click();
	await flameReady(page);
	const shown = await verdictReady(page);
	await page.getByRole("link", { name: "Open in Compare" }).click();
	await page.waitForURL(/\/compare\?/);
	await flameReady(page);
	const { from, to, bfrom, bto, ...rest } = params(page);
	await complete(Number(to)); // a profile may have ended before the evaluation and come after it
	await page.reload();
	await flameReady(page);
	const side = (version) => `cpu{job="demo",version="${version}",service="shop"}`;
	assert.deepEqual(rest, {
		new: side("v2"),
		base: side("v1"),
		norm: "1",
		pick: labels.function,
		about: labels.function,
		measure: "flat_share",
	});
	assert.deepEqual([bfrom, bto], [from, to]);
	assert.equal(Math.round(1000 * (to - from)), 120000);
	// The same sentence, and the shares whose difference is the alert's value at that time.
	const of = await verdictReady(page);
	assert.deepEqual([of.name, of.of, of.by], [shown.name, shown.of, shown.by]);
	assert.deepEqual([of.name, of.of, of.by], [labels.function, "flat", "share"]);
	const [v2, v1] = await Promise.all(["v2", "v1"].map((v) => shareOf("flat", `merge(${side(v)}[2m])`, labels.function, to)));
	assert.deepEqual(of.costs, { base: v1, next: v2 });
	const { groups: rules } = await api("rules");
	const { query } = rules.flatMap((g) => g.rules).find((r) => r.name === NAME);
	const value = (await api("query", { query, time: to })).result.find((e) => e.metric.function === labels.function);
	assert.ok(Math.abs(Number(value.value[1]) - (v2 - v1)) < 1e-12, `${value.value[1]} against ${v2 - v1}`);
	const verdict = page.getByRole("region", { name: "Verdict" });
	const text = (await verdict.locator("p").first().innerText()).replace(/\s+/g, " ");
	assert.match(text, new RegExp(`^${labels.function.replace(/[.*()]/g, "\\$&")} itself [\\d.]+% → [\\d.]+% \\([\\d.]+×, \\+[\\d.]+ pp of CPU\\)`));
	await shot(page, "alert-compare");
	await verdict.getByRole("button", { name: "Largest change instead" }).click();
	await page.waitForFunction(() => !new URLSearchParams(location.search).has("about"));
	assert.equal((await verdictReady(page)).by, undefined);
	assert.deepEqual(problems, []);
});

test("rules by kind and health, with their errors", async (t) => {
	const { page, problems } = await open(t, "rules", groups());
	await page.locator(".rules").first().waitFor();
	assert.equal((await names(page)).length, 4);
	await page.getByText("4 rules in 2 groups").waitFor();
	await shot(page, "rules");
	for (const [button, want] of [
		["Recording", ["job:cpu:total"]],
		["Failing 1", ["job:cpu:total"]],
		["Alerting", ["FunctionTooExpensive", "TargetDown", "TooManyGoroutines"]],
	]) {
		await page.getByRole("button", { name: button, exact: true }).click();
		assert.deepEqual(await names(page), want, button);
	}
	await page.getByRole("button", { name: "Recording" }).click();
	await page.getByText("evaluation took longer than 15s").waitFor();
	await page.getByRole("link", { name: "total(merge by (job) (cpu[1m]))" }).click();
	await page.waitForFunction(
		() =>
			new URLSearchParams(location.search).get("query") === "total(merge by (job) (cpu[1m]))",
	);
	await page.locator(".vtable-body > div").first().waitFor();
	assert.deepEqual(problems, []);
});

test("dark, and on a narrow screen", async (t) => {
	for (const [name, options] of [
		["dark", { colorScheme: "dark" }],
		["narrow", { viewport: { width: 420, height: 800 } }],
	]) {
		const { page, problems } = await open(t, "alerts", groups(), options);
		await page.locator(".alerts").first().waitFor();
		const wide = await page.evaluate(
			() => document.documentElement.scrollWidth - document.documentElement.clientWidth,
		);
		assert.ok(wide <= 0, `${name}: ${wide} px wider than the window`);
		assert.deepEqual(problems, []);
		await shot(page, `alerts-${name}`);
	}
});

test("the pages of status: configuration, flags, TSDB, as the API has them", async (t) => {
	const { page, problems } = await open(t, "status");
	await page.getByRole("rowheader", { name: /^Version$/ }).waitFor();
	const tab = (name) =>
		page.getByRole("navigation", { name: "Status pages" }).getByRole("link", { name });
	await page.getByRole("heading", { name: "Alertmanagers" }).waitFor();
	await tab("Configuration").click();
	const { yaml } = await api("status/config", {});
	await page.locator(".yaml").waitFor();
	assert.equal(await page.locator(".yaml").textContent(), yaml);
	await tab("Flags").click();
	await page.locator(".status-flags tr").first().waitFor();
	const flags = Object.keys(await api("status/flags", {}));
	assert.deepEqual(await page.locator(".status-flags th").allTextContents(), flags);
	await tab("TSDB").click();
	await page.getByRole("rowheader", { name: "State" }).waitFor();
	await page.getByRole("heading", { name: "Windows and blocks" }).waitFor();
	await page.getByText("open window").first().waitFor();
	const pages = page.getByRole("navigation", { name: "Pages", exact: true });
	assert.equal(await pages.locator("[aria-current]").innerText(), "Status");
	await shot(page, "tsdb");
	assert.deepEqual(problems, []);
});
