// Access: axe finds nothing on any page, light and dark, on a wide screen and on a phone. On a phone
// the flame graph comes first, and nothing scrolls sideways but tables in their own areas.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import test, { after, before } from "node:test";
import { QUERY_NODE } from "./cluster_answer.mjs";
import { api, closeBrowser, comes, editComparison, explore, flameReady, openPage, shot, startServer } from "./page.mjs";
import { cpuProfile, levelProfile, push } from "./pprof.mjs";
import { sendersAt } from "./senders_answer.mjs";
import { SYMBOLS } from "./symbols_answer.mjs";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
const WIDE = { width: 1440, height: 900 };
const PHONE = { width: 390, height: 844 };

/** The profiles are of these 20 minutes. */
const END = Math.floor(Date.now() / 1000) - 30;
const STEPS = 20;
const W = { from: String(END - 60 * STEPS), to: String(END) };

const config = `
rule_files: [rules.yml]
scrape_configs:
  - job_name: silent
    static_configs: [{targets: ["127.0.0.1:1", "127.0.0.1:2"]}]
    relabel_configs:
      - {source_labels: [__address__], regex: ".*:2", action: drop}
`;
const rules = `
groups:
  - name: costs
    interval: 1s
    rules:
      - alert: TooExpensive
        expr: total(merge by (job) (cpu{job="shop"}[1h])) > 0
        labels: {severity: page}
        annotations: {summary: "{{ $labels.job }} costs"}
      - alert: NotDear
        expr: total(merge by (job) (cpu{job="shop"}[1h])) < 0
      - record: job:cpu:1h
        expr: total(merge by (job) (cpu{job="shop"}[1h]))
`;
const FUNCTIONS = ["main.main", "main.serve", "encoding/json.Marshal", "main.(*cache).fill"];

let server;
/** One page per size. */
let pages;
before(async () => {
	server = await startServer({
		files: { "e.yml": config, "rules.yml": rules },
		flags: ["--web.enable-ingest", "--web.enable-admin-api"],
	});
	for (let i = 0; i < STEPS; i++)
		for (const version of ["v1", "v2"]) await pushVersion(i, version);
	// One deploy alone, and two that are one flag.
	for (const seconds of [300, 900, 905]) {
		const mark = { time: END - seconds, text: `deploy ${seconds}`, labels: { job: "shop" } };
		const headers = { "Content-Type": "application/json" };
		const response = await fetch(`${server.base}api/v1/annotations`, { method: "POST", headers, body: JSON.stringify(mark) });
		assert.equal(response.status, 200);
	}
	await state("rules", (d) => d.groups[0]?.rules[0].state === "firing");
	await state("targets", (d) => d.activeTargets.some((t) => t.lastError));
	pages = await Promise.all([WIDE, PHONE].map(openWhole));
});
after(async () => {
	await closeBrowser();
	await server?.stop();
});

async function pushVersion(i, version) {
	const profile = {
		functions: FUNCTIONS.map((name) => ({ name, file: "/src/main.go", line: 7 })),
		samples: [
			{ stack: [0, 1, 2], value: version === "v2" ? 900e6 : 300e6 },
			{ stack: [0, 1, 3], value: 500e6 },
			{ stack: [0, 1], value: 200e6 },
		],
		time: 1000 * (END - 60 * (STEPS - i) + 15),
	};
	const level = levelProfile("inuse_space", "bytes", profile);
	for (const [name, body] of [["process_cpu", cpuProfile(profile)], ["memory", level]]) {
		await push(server.base, { name, job: "shop", version, instance: `${version}:1` }, body);
	}
}

/** Waits until an answer of the API is as wanted. */
async function state(name, wanted) {
	for (let i = 0; i < 1200; i++) {
		if (wanted(await api(server.base, name))) return;
		await new Promise((done) => setTimeout(done, 100));
	}
	assert.fail(`${name} does not come to be as wanted`);
}

/* ---- screens ---- */

const QUERY = 'cpu{job="shop"}';
const COMPARE = `compare?${new URLSearchParams({
	new: 'cpu{job="shop",version="v2"}', base: 'cpu{job="shop",version="v1"}', ...W, shift: "0",
})}`;
const on = (args) => explore({ query: QUERY, ...W, ...args });
const button = (page, name) => page.getByRole("button", { name, exact: true });
const graph = (page) => page.getByRole("img", { name: /Flame graph/ }).first();
const panels = (page) => page.locator("main .panel").first().waitFor();
const rows = (page) => page.locator(".vtable-body > [role=row]").first().waitFor();

/** Shows what a phone has behind a button. */
async function unfold(page) {
	const folded = page.locator("main .narrow-more[aria-expanded=false]:visible");
	while (await folded.count()) await folded.first().click();
}

/** Selects a frame: its card is shown. */
async function card(page) {
	await flameReady(page);
	await graph(page).focus();
	await page.keyboard.press("ArrowDown");
	await page.getByRole("tooltip").waitFor();
}

async function frameMenu(page) {
	await card(page);
	await page.keyboard.press("Shift+F10");
	await page.getByRole("menu").waitFor();
}

async function completions(page) {
	await flameReady(page);
	await page.locator(".query-bar textarea").focus();
	await page.keyboard.press("Home");
	await page.keyboard.press("Control+Space");
	await page.getByRole("listbox", { name: "Completions" }).waitFor();
}

/** Opens `popup` by the button of this name. */
const opened = (name, popup) => async (page) => {
	await flameReady(page);
	await unfold(page);
	await button(page, name).click();
	await page.locator(popup).waitFor();
};

/** Each page, and what opens on it: its address, what to do until it is there, and the part that is looked at. */
const SCREENS = [
	["Explore", on({}), flameReady],
	["Explore, all controls", on({ labels: "job" }), async (page) => {
		await flameReady(page);
		await unfold(page);
		await page.locator(".label-column [aria-pressed]").first().waitFor();
	}],
	["Explore, flame graph", on({ view: "flame", search: "json", by: "version" }), flameReady],
	["Explore, table", on({ view: "table" }), rows],
	["Explore, tree", on({ view: "tree" }), rows],
	["Explore, top functions", on({ by: "function", stack: "1" }), flameReady],
	["Explore, a function", on({ fn: "main.serve" }), (page) =>
		page.waitForFunction(() => window.__epi?.flame("callees")?.nodes.length > 1)],
	["Explore, lines of a function", on({ src: "main.serve" }), (page) =>
		page.waitForFunction(() => window.__epi?.source()?.length > 0)],
	["Explore, a level", explore({ query: 'heap{job="shop"}', ...W, limit: "8GiB" }), flameReady],
	["Explore, costs", explore({ query: `flat(merge(${QUERY}))`, ...W }), rows],
	["Explore, a wrong query", explore({ query: "cpu{", ...W }), (page) =>
		page.locator(".notice.error").waitFor()],
	["Explore, heatmap", on({ chart: "heatmap", by: "version" }), async (page) => {
		await page.waitForFunction(() => window.__epi?.heat());
		await page.locator(".heat canvas").focus();
		await page.keyboard.press("ArrowRight");
		await page.locator(".heat-tip").waitFor();
	}],
	["Explore, one scrape", on({ cfrom: W.from, cto: W.to, from: String(END - 120) }), flameReady],
	// What opens over a page is looked at alone; what it covers is on other screens.
	["card of a frame", on({}), card, "[role=tooltip]"],
	["menu of a frame", on({}), frameMenu, "[role=menu]"],
	["list of completions", on({}), completions, ".offers"],
	["time picker", on({}), async (page) => {
		await flameReady(page);
		await page.locator(".time-text").click();
		await page.getByRole("dialog", { name: "Time range" }).waitFor();
	}, ".time-popup"],
	["view menu", on({}), opened("View", ".look-popup"), ".look-popup"],
	["export menu", on({}), opened("Export", ".menu-items"), ".menu-items"],
	["list of keys", on({}), async (page) => {
		await flameReady(page);
		await page.keyboard.press("?");
		await page.getByRole("dialog", { name: "Keys" }).waitFor();
	}, "dialog"],
	["Compare", COMPARE, card],
	["Compare, the editor", COMPARE, async (page) => {
		await flameReady(page);
		await editComparison(page);
		await page.locator(".choices.open").waitFor();
	}, ".choices"],
	["Compare, full screen", `${COMPARE}&full=1`, flameReady],
	["list of deploys", on({}), async (page) => {
		await flameReady(page);
		await unfold(page);
		await page.locator(".mark-flag.many").click();
		await page.locator(".mark-tip a").first().waitFor();
	}, ".marks"],
	["Services", `services?${new URLSearchParams(W)}`, rows],
	["Alerts", "alerts", panels],
	["Alerts, flame graph", "alerts", async (page) => {
		await page.getByRole("button", { name: "Flame graph" }).first().click();
		await flameReady(page);
	}],
	["Rules", "rules", panels],
	["Targets", "targets", async (page) => {
		await page.getByRole("button", { name: /^why/ }).first().click();
		await page.locator(".relabel").first().waitFor();
	}],
	["Service discovery", "service-discovery?opened=silent", (page) => page.locator(".found").waitFor()],
	["Senders", "senders", (page) => page.locator(".targets .err").first().waitFor()],
	["Status", "status", async (page) => {
		await panels(page);
		// On a phone the pages are a menu.
		if (await page.locator(".menu-button").isVisible()) await page.locator(".menu-button").click();
	}],
	["TSDB", "tsdb-status", (page) => page.locator(".blocks").waitFor()],
	["Cluster", "cluster", rows],
	["Symbols", "symbols", rows],
	["Symbols, a binary", `symbols?open=gnu:${SYMBOLS.binaries[0].id}`, (page) =>
		page.locator(".symbol-details").waitFor()],
	["Configuration", "config", (page) => page.locator(".yaml").waitFor()],
	["Flags", "flags", (page) => page.locator(".pairs").waitFor()],
];

const recorded = (data) => (route) => route.fulfill({ json: { status: "success", data } });

const open = (t, path, options) =>
	openPage(t, server.base + path, {
		...options,
		before: async (p) => {
			await p.route(/\/api\/v1\/symbols(\?|$)/, recorded(SYMBOLS));
			await p.route(/\/api\/v1\/status\/cluster$/, recorded(QUERY_NODE));
			await p.route(/\/api\/v1\/senders$/, recorded(sendersAt(Math.floor(Date.now() / 1000))));
		},
	});

/** What axe finds on the page, or in the first element of `within`: rule, place, what is wrong. */
async function found(page, { rules = null, within = null } = {}) {
	if (!(await page.evaluate(() => "axe" in window))) await page.evaluate(AXE);
	const { violations, looked } = await page.evaluate(
		async ({ tags, rules, within }) => {
			const result = await window.axe.run(within ?? document, {
				runOnly: rules ? { type: "rule", values: rules } : { type: "tag", values: tags },
				rules: rules ? {} : { "target-size": { enabled: true } },
				resultTypes: ["violations"], // axe writes a selector for each element of these
				preload: false, // no rule of ours reads the style sheets' text
			});
			return { violations: result.violations, looked: [...result.passes, ...result.violations].length };
		},
		{ tags: TAGS, rules, within },
	);
	assert.ok(looked > (rules ? 0 : within ? 3 : 10), `${looked} rules applied`);
	return violations.flatMap((v) =>
		v.nodes.map((n) => {
			const why = [...n.any, ...n.all, ...n.none].map((c) => c.message).join("; ");
			return `${v.id} ${n.target.join(" ")}: ${v.help} (${why})`;
		}),
	);
}

/** A theme moves no element: in the second one only the rules about colours are asked again. */
const COLOUR_RULES = ["color-contrast", "link-in-text-block"];

async function theme(page, colorScheme) {
	await page.emulateMedia({ colorScheme });
	// A page hears of it when it draws a frame, and one on which nothing moves may draw none. A picture makes it draw.
	await comes(
		async () => {
			await page.screenshot({ clip: { x: 0, y: 0, width: 1, height: 1 } });
			return page.evaluate(() => document.documentElement.dataset.theme);
		},
		colorScheme,
		`no ${colorScheme} theme`,
	);
}

/** Looks at what is on the page in both themes; gives `[what is wrong, where]`. Ends with the light theme. */
async function bothThemes(page, name, within) {
	const wrong = [];
	const { width } = page.viewportSize();
	for (const [th, rules] of [["light", null], ["dark", COLOUR_RULES]]) {
		await theme(page, th);
		await page.waitForFunction(() => !document.querySelector("main .busy, main .spinner"));
		await shot(page, `access-${name.replace(/\W+/g, "-")}-${width}-${th}`);
		for (const f of await found(page, { rules, within })) wrong.push([f, `${width} ${th}`]);
	}
	await theme(page, "light");
	return wrong;
}

/** A page that goes from screen to screen; closeBrowser closes it. */
async function openWhole(viewport) {
	const { page } = await open({ after() {} }, "flags", { viewport, colorScheme: "light" });
	return page;
}

test("the check finds what is wrong", async () => {
	const rulesOf = async (page) => [...new Set((await bothThemes(page, "wrong")).map(([f, at]) => `${f.split(" ")[0]} ${at}`))];
	for (const page of pages) {
		await page.goto(`${server.base}flags`);
		await page.locator(".pairs").waitFor();
		// The page's policy allows no style in an attribute, but in properties.
		await page.evaluate(() => {
			const made = ["button", "img", "input"].map((e) => document.createElement(e));
			const small = ["a", "b"].map((name) => Object.assign(document.createElement("button"), { textContent: name }));
			for (const e of small) e.style.cssText = "all: revert; width: 9px; height: 9px; padding: 0";
			const text = Object.assign(document.createElement("p"), { textContent: "black in both themes" });
			text.style.color = "#000";
			const row = document.createElement("div");
			row.style.cssText = "display: flex; gap: 1px; padding: 30px";
			row.append(...small);
			document.querySelector("main").prepend(...made, text, row);
		});
		const { width } = page.viewportSize();
		const rules = await rulesOf(page);
		for (const rule of ["button-name", "image-alt", "label", "target-size"]) assert.ok(rules.includes(`${rule} ${width} light`), `${rule} in ${rules}`);
		assert.ok(rules.includes(`color-contrast ${width} dark`), `contrast in ${rules}`);
		assert.ok(!rules.includes(`color-contrast ${width} light`), `no contrast in ${rules}`);
	}
});

for (const [name, path, arrive, within] of SCREENS)
	test(name, async () => {
		const wrong = new Map(); // what is wrong: where
		const look = async (page) => {
			await page.goto(server.base + path);
			await arrive(page);
			for (const [f, at] of await bothThemes(page, name, within)) wrong.set(f, [...(wrong.get(f) ?? []), at]);
			const wide = await page.evaluate(() => [
				document.documentElement.scrollWidth - innerWidth,
				document.querySelector("main").scrollWidth - innerWidth,
			]);
			assert.ok(Math.max(...wide) <= 0, `${page.viewportSize().width}: ${wide} px wider than the screen`);
		};
		await Promise.all(pages.map(look));
		assert.equal([...wrong].map(([f, at]) => `${f} [${at.join(", ")}]`).join("\n"), "");
	});

test("on a phone the flame graph is on the first screen, before the chart", async (t) => {
	const { page } = await open(t, on({}), { viewport: PHONE, hasTouch: true });
	await flameReady(page);
	const box = await graph(page).boundingBox();
	assert.ok(box.y < PHONE.height / 2, `the flame graph begins at ${box.y} px`);
	assert.ok(box.width > PHONE.width - 60, `${box.width} px wide`);
	const chart = await page.locator(".chart-panel").boundingBox();
	assert.ok(chart.y > box.y, "the chart is below");
	await shot(page, "phone-first");
});

test("on a phone the first buttons have room for a finger", async (t) => {
	const { page } = await open(t, on({}), { viewport: PHONE, hasTouch: true });
	await flameReady(page);
	for (const [what, one] of [
		["Run", button(page, "Run")],
		["pages", page.locator(".menu-button")],
		["docs", page.getByRole("link", { name: "Docs of this view" })],
		["time", page.locator(".time-text")],
		["a view", button(page, "Flame")],
	]) {
		const { width, height } = await one.boundingBox();
		assert.ok(Math.min(width, height) >= 44, `${what}: ${width} x ${height}`);
	}
});
