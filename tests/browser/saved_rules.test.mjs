// Rules that users save: from the drawer onto the server, on the page Rules with who and when, edited, deleted, undone;
// one version against another; and what the drawer says where nothing can be saved.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { after, before } from "node:test";
import { closeBrowser, comes, countComes, explore, flameReady, fleetApi, HEAP_ALONE, openFleet, openPage, params, shot, startServer } from "./page.mjs";

// bcrypt of "secret", cost 4, as `htpasswd -nbB -C 4` writes it.
const HASH = "$2b$04$dmpZqExj/u8TGBoVsL10Z.nT5488xB4GECFwppKfqrg0hArqnCz/K";
const users = `
basic_auth_users: {alice: "${HASH}", reader: "${HASH}", team: "${HASH}"}
users: [{name: alice, roles: [admin]}, {name: reader, roles: [read]}, {name: team, roles: [read], matchers: '{job="shop"}'}]
`;
const header = (user) => ({ Authorization: `Basic ${Buffer.from(`${user}:secret`).toString("base64")}` });

let server;
const own = mkdtempSync(join(tmpdir(), "epi-saved-"));
before(async () => {
	const { activeTargets } = await fleetApi("targets");
	const host = new URL(activeTargets.find((a) => a.labels.job === "demo").scrapeUrl).host;
	const config = `
global: {scrape_interval: 2s, scrape_timeout: 1s}
scrape_configs:
  - job_name: shop
    profiling_config: {pprof_config: ${HEAP_ALONE}}
    static_configs: [{targets: ["${host}"]}]
`;
	writeFileSync(join(own, "web.yml"), users);
	server = await startServer({
		files: { "e.yml": config },
		flags: [`--web.config.file=${join(own, "web.yml")}`, "--web.enable-rules"],
	});
});
after(async () => {
	await closeBrowser();
	await server?.stop();
	rmSync(own, { recursive: true, force: true });
});

const drawer = (page) => page.getByRole("dialog", { name: /alert/i });
const ruleText = (page) => drawer(page).getByRole("region", { name: "Rule", exact: true }).locator("pre").textContent();
const open = (t, path, user = "alice") =>
	openPage(t, server.base + path, { before: (page) => page.context().setExtraHTTPHeaders(header(user)) });
const groupPanel = (page, name) => page.locator("section.group-panel").filter({ has: page.getByRole("heading", { name, exact: true }) });

const drawn = new URLSearchParams({ alert: "total(merge by (job) (heap))", aover: "1", afor: "0s", aname: "HeapCostsMore" });

test("a rule is saved from the drawer, edited, deleted, and comes back by undo", async (t) => {
	const { page, problems } = await open(t, `explore?query=heap&${drawn}`);
	await drawer(page).locator(".alert-texts[aria-busy=false]").waitFor();
	await drawer(page).getByRole("button", { name: "Save rule" }).click();
	await drawer(page).getByText("Saved and running.").waitFor();
	await shot(page, "alert-saved");
	await drawer(page).getByRole("link", { name: "Rules" }).click();
	const panel = groupPanel(page, "HeapCostsMore");
	await panel.getByText(/^Saved by alice, /).waitFor();
	await page.getByText(/^Saved rules: save HeapCostsMore \(alice, /).waitFor();
	await shot(page, "rules-saved");

	// Edit opens the drawer with what was saved; another limit replaces it.
	await panel.getByRole("button", { name: "Edit HeapCostsMore" }).click();
	await drawer(page).locator(".alert-texts[aria-busy=false]").waitFor();
	assert.deepEqual([params(page).alert, params(page).aover, params(page).aseverity], ["total(merge by (job) (heap))", "1", "warning"]);
	await drawer(page).getByLabel(/^Above/).fill("2");
	await comes(() => ruleText(page).then((text) => /\) > 2$/m.test(text)), true, "the new limit");
	await drawer(page).getByRole("button", { name: "Replace saved rule" }).click();
	await drawer(page).getByText("Saved and running.").waitFor();
	await page.keyboard.press("Escape");
	await panel.getByText("> 2").waitFor();

	await panel.getByRole("button", { name: "Delete HeapCostsMore" }).click();
	await panel.waitFor({ state: "detached" });
	await page.getByRole("button", { name: "Undo" }).click();
	await panel.getByText("> 2").waitFor();
	await page.getByText(/^Saved rules: restore version 2 /).waitFor();
	assert.deepEqual(problems, []);
});

test("without the role nothing can be changed, and the drawer says who may", async (t) => {
	const { page, problems } = await open(t, `rules?${drawn}`, "reader");
	await drawer(page).getByText("Users with the role admin can save this rule.").waitFor();
	await countComes(page.getByRole("button", { name: /^(Save rule|Undo|Delete)/ }), 0);
	assert.deepEqual(problems, []);
});

test("of a user with matchers saved rules are not asked", async (t) => {
	const asked = [];
	const { page } = await openPage(t, `${server.base}explore?query=heap&${drawn}`, {
		before: async (p) => {
			await p.context().setExtraHTTPHeaders(header("team"));
			p.on("response", (r) => asked.push([new URL(r.url()).pathname, r.status()]));
		},
	});
	await drawer(page).locator(".alert-texts[aria-busy=false]").waitFor();
	await comes(() => asked.some(([path]) => path === "/api/v1/features"), true, "what the user may");
	await flameReady(page);
	assert.deepEqual(asked.filter(([path]) => path.startsWith("/api/v1/rules/saved")), []);
	await countComes(drawer(page).locator(".alert-save"), 0);
});

test("without the flag the drawer names it; two versions are compared", async (t) => {
	const { page, problems } = await openFleet(t, explore({ query: 'cpu{job="demo"}', range: "15m", view: "flame" }));
	await flameReady(page);
	const alert = 'cum(merge by (job) (rate(cpu{job="demo"}[5m])), {function="main.scoreItems"}) / 1e9';
	await page.goto(`${page.url()}&${new URLSearchParams({ alert })}`);
	await drawer(page).getByText(/^Not saved by this page: .* start with --web\.enable-rules, /).waitFor();
	await drawer(page).getByRole("button", { name: "v2 − v1" }).click();
	await drawer(page).locator(".alert-texts[aria-busy=false]").waitFor();
	const side = (v) => `cum_share(merge by (job) (rate(cpu{job="demo",version="${v}"}[5m])), {function="main.scoreItems"})`;
	assert.equal(params(page).alert, `${side("v2")} - ${side("v1")}`);
	await comes(() => ruleText(page).then((text) => text.includes("more of the total in v2 than in v1")), true, "the summary");
	await drawer(page).getByRole("region", { name: "Rule test" }).waitFor();
	await drawer(page).getByRole("button", { name: "v2 / v1" }).click();
	await comes(() => params(page).alert, `${side("v2")} / ${side("v1")}`, "the quotient");
	await drawer(page).getByRole("button", { name: "Limit", exact: true }).click();
	await comes(() => params(page).alert.includes("version"), false, "one selection again");
	assert.deepEqual(problems, []);
});
