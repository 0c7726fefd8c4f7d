// A person who has never seen the page: begins at its start, sees names and roles, has three clicks and
// presses no key.
import assert from "node:assert/strict";
import { FLEET, openPage, settled, WAIT_MS } from "./page.mjs";

export const CLICKS_MAX = 3;

/**
 * In the page: reports each press of the mouse and of a key. Where something else has moved below the mouse in the
 * meantime, a click's press is held back at the window and made again: the page sees it once.
 */
function reportPresses() {
	for (const kind of ["pointerdown", "keydown"])
		document.addEventListener(kind, (e) => void window.__pressed(kind, e.key ?? ""), true);
}

/** Opens the start of the page at `base`. Ends with `done`, which looks back at what was pressed and what went wrong. */
export async function visit(t, base = FLEET) {
	const answers = [];
	const keys = [];
	let clicks = 0;
	let presses = 0;
	const { page, problems } = await openPage(t, base, {
		before: async (p) => {
			await p.exposeFunction("__pressed", (kind, key) => {
				if (kind === "keydown") keys.push(key);
				else presses++;
			});
			await p.addInitScript(reportPresses);
			p.on("response", (r) => {
				const [, name] = /\/api\/v1\/([^?]*)/.exec(r.url()) ?? [];
				const sent = r.request().postData() ?? new URL(r.url()).search;
				const args = Object.fromEntries(new URLSearchParams(sent));
				// A question that the page gave up has no answer.
				if (name) answers.push({ name, args, body: r.json().catch(() => null) });
			});
		},
	});
	const spend = (n, on) => {
		clicks += n;
		assert.ok(clicks <= CLICKS_MAX, `${on} takes click ${clicks}, ${CLICKS_MAX} must do`);
	};
	return {
		page,
		clicks: () => clicks,
		async click(locator) {
			spend(1, locator);
			await locator.click();
		},
		/** A click that opens a list and one that takes an entry; the browser's own list is no part of the page. */
		async choose(select, label) {
			spend(2, select);
			await select.selectOption({ label });
		},
		/** A click on what is drawn. */
		async clickAt({ x, y }, on) {
			spend(1, on);
			await page.mouse.click(x, y);
		},
		/** The data of the newest answer that the page got to such a question; waits for the first. */
		async answer(what, fits) {
			for (let i = 0; i < WAIT_MS / 100; i++) {
				for (const a of answers.filter((x) => fits(x)).reverse()) {
					const body = await a.body;
					if (body?.status === "success") return { data: body.data, args: a.args };
				}
				await page.waitForTimeout(100);
			}
			assert.fail(`no answer to the page's question about ${what}`);
		},
		/** Nothing went wrong, and nothing was pressed but what was counted. */
		done() {
			assert.deepEqual(problems, []);
			assert.deepEqual(keys, []);
			assert.ok(presses <= clicks, `${presses} presses, ${clicks} of them counted`);
		},
	};
}

/** Waits until the flame graph of an answer is drawn, and no longer changes. */
export async function drawnTotal(page, total) {
	await page.waitForFunction(
		(v) => window.__epi?.flame?.() && window.__epi.drawn().find((n) => n.level === 0)?.total === v,
		total,
	);
	await settled(page);
}

const SCALES = { ns: 1, µs: 1e3, us: 1e3, ms: 1e6, s: 1e9, min: 60e9, h: 3600e9, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30, k: 1e3, M: 1e6 };

/** "1.23 s" in nanoseconds, "3.4 MiB" in bytes, "1.2 k" as a count. */
export function amount(text) {
	const [, number, unit] = /^[+−-]?\s*([\d.,]+)\s*([A-Za-zµ]*)/.exec(text.trim()) ?? [];
	const scale = unit ? (SCALES[unit] ?? (unit === "B" ? 1 : NaN)) : 1;
	const value = Number((number ?? "NaN").replace(/,/g, "")) * scale;
	assert.ok(Number.isFinite(value), `"${text}" is no amount`);
	return value;
}

/** What is shown is `want`, as far as its digits go. */
export function same(shown, want, what, part = 0.01) {
	assert.ok(Math.abs(shown - want) <= part * Math.abs(want), `${what}: ${shown} is shown, ${want} is true`);
}

/** What a function that does not call itself cost on both sides of a difference, with all it calls. */
export function sidesOf({ result: [e] }, name) {
	const { names, levels } = e.flamebearer;
	const of = names.indexOf(name);
	const out = { base: 0, next: 0, baseTotal: e.left_total, nextTotal: e.right_total };
	for (const row of levels)
		for (let k = 0; k < row.length; k += 7)
			if (row[k + 6] === of) {
				out.base += row[k + 1];
				out.next += row[k + 4];
			}
	return out;
}
