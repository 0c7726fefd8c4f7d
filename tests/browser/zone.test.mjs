// Times say their zone; the switch in the header, links with tz=utc, and typed times.
import assert from "node:assert/strict";
import test, { after } from "node:test";
import {
	addressHas,
	closeBrowser,
	explore,
	fixedWindow,
	flameReady,
	openFleet,
	params,
	QUERY,
	shot,
} from "./page.mjs";

const INDIA = { timezoneId: "Asia/Kolkata" };
const NOON = Date.UTC(2026, 0, 2, 12) / 1000;

after(closeBrowser);

const range = (page) => page.locator(".time-text").innerText();
const toggle = (page) => page.locator("header .zone");
const chartZone = (page) => page.evaluate(() => window.__epi.chart().zone);
const chartDrawn = (page) => page.waitForFunction(() => window.__epi?.chart?.());

test("times are in the zone of the browser, or in UTC, and say so", async (t) => {
	const path = explore({ query: QUERY, from: NOON, to: NOON + 900 });
	const { page, problems } = await openFleet(t, path, INDIA);
	await chartDrawn(page);
	assert.equal(await range(page), "2026-01-02 17:30:00 – 17:45:00 UTC+5:30");
	assert.equal(await toggle(page).innerText(), "UTC+5:30");
	assert.equal(await chartZone(page), "UTC+5:30");
	await toggle(page).click();
	assert.equal(await range(page), "2026-01-02 12:00:00 – 12:15:00 UTC");
	await page.waitForFunction(() => window.__epi.chart()?.zone === "UTC");
	assert.equal(await toggle(page).innerText(), "UTC");
	assert.equal(params(page).tz, undefined, "the choice is the browser's, not the link's");
	await page.locator(".time-text").click();
	assert.match(await page.getByLabel(/^From/).inputValue(), /^2026-01-02T12:00/);
	await page.getByRole("textbox", { name: "Range" }).fill("2026-01-02 10:00 to 11:00");
	await page.keyboard.press("Enter");
	await addressHas(page, { from: String(NOON - 7200), to: String(NOON - 3600) });
	await page.reload();
	await chartDrawn(page);
	assert.equal(await range(page), "2026-01-02 10:00:00 – 11:00:00 UTC", "it outlives the page");
	await toggle(page).click();
	assert.equal(await range(page), "2026-01-02 15:30:00 – 16:30:00 UTC+5:30");
	await page.locator(".time-text").click();
	await page.getByRole("textbox", { name: "Range" }).fill("2026-01-02 10:00 to 11:00");
	await page.keyboard.press("Enter");
	await addressHas(page, { from: String(NOON - 7200 - 19800) });
	assert.deepEqual(problems, []);
});

test("a link with tz=utc wins, and is not kept", async (t) => {
	const window = { query: QUERY, from: NOON, to: NOON + 900 };
	const { page, problems } = await openFleet(t, explore({ ...window, tz: "utc" }), INDIA);
	await chartDrawn(page);
	assert.equal(await range(page), "2026-01-02 12:00:00 – 12:15:00 UTC");
	await page.goto(page.url().replace("tz=utc", ""));
	await chartDrawn(page);
	assert.equal(await toggle(page).innerText(), "UTC+5:30");
	await page.goBack();
	await chartDrawn(page);
	assert.equal(await toggle(page).innerText(), "UTC");
	await toggle(page).click();
	await addressHas(page, { tz: undefined });
	assert.equal(await toggle(page).innerText(), "UTC+5:30", "the switch wins over the link");
	assert.deepEqual(problems, []);
});

test("a shared link has the zone if it is UTC; narrow, the switch is in the header", async (t) => {
	const path = explore({ query: QUERY, ...(await fixedWindow(120)), view: "flame" });
	const { page, problems } = await openFleet(t, path, {
		...INDIA,
		viewport: { width: 390, height: 844 },
		before: (p) =>
			p.addInitScript(() => Object.defineProperty(window, "isSecureContext", { value: false })),
	});
	await flameReady(page);
	const share = async () => {
		const button = page.getByRole("button", { name: "Share" });
		if (!(await button.isVisible()))
			await page.getByRole("button", { name: "More", exact: true }).click();
		await button.click();
		const field = page.getByRole("textbox", { name: "Link to this view at these times" });
		const link = new URL(await field.inputValue());
		await page.keyboard.press("Escape");
		return link.searchParams.get("tz");
	};
	assert.equal(await share(), null);
	await toggle(page).click();
	assert.equal(await share(), "utc");
	const box = await toggle(page).boundingBox();
	assert.ok(box.x + box.width <= 390 && box.height >= 44, JSON.stringify(box));
	const theme = await page.locator("header .theme").boundingBox();
	assert.ok(theme.x + theme.width <= 390, "nothing of the header is cut off");
	await shot(page, "zone-narrow");
	assert.deepEqual(problems, []);
});
