// Drives what queries are written and asked with, and checks it against the API.
import assert from "node:assert/strict";
import test, { after } from "node:test";
import { closeBrowser, fixedWindow, FLEET as base, flameReady, openPage } from "./page.mjs";

const QUERY = 'cpu{job="demo"}';

after(closeBrowser);

const open = (t, path, options) => openPage(t, base + path, options);
const explore = (args) => "explore?" + new URLSearchParams(args);

test("a slow query can be given up and asked again", async (t) => {
	let slow = true;
	const { page, problems } = await open(t, explore({ query: QUERY, ...fixedWindow(120) }), {
		before: (p) =>
			p.route("**/api/v1/query?*", async (route) => {
				if (!slow) return route.continue();
				// Never answered: the page has to give it up.
			}),
	});
	const aborted = page.waitForEvent("requestfailed", (r) => r.url().includes("/api/v1/query?"));
	await page.getByText(/Under way/).waitFor();
	await page.getByRole("button", { name: "Cancel", exact: true }).click();
	assert.match((await aborted).failure().errorText, /ABORTED/);
	await page.getByText("Cancelled.").waitFor();
	assert.equal(await page.getByText("Loading").count(), 0);
	slow = false;
	await page.getByRole("button", { name: "Run again" }).click();
	await flameReady(page);
	assert.equal(await page.getByText("Cancelled.").count(), 0);
	assert.deepEqual(problems, []);
});
