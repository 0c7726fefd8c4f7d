// The heatmap's arithmetic: its questions, the grid of cells, what a click opens, places, colours, words.
import assert from "node:assert/strict";
import test from "node:test";
import { page } from "./page.mjs";

const { heatqueries: ask, heatcells: cells, heatgrid: grid, heatpalette: palette } = page;

const unit = { label: "cores", factor: 1e-9, format: (v) => String(v) };
const selector = (query, by = "") => ({ query, kind: "selector", by });
const A = { instance: "a", job: "shop" };
const B = { instance: "b", job: "shop" };
const row = (metric, label, total = 1) => ({ metric, label, total });

/* ---- questions ---- */

test("the rows are series, or what a label or the query groups", () => {
	const rows = (a) => ask.rowsQuery(a);
	assert.equal(rows(selector("cpu{job='a'}")), "topk(500, total(cpu{job='a'}))");
	assert.equal(rows(selector("cpu", "pod")), "topk(500, total(merge by (pod) (cpu)))");
	const merged = { query: "merge(cpu) # all", kind: "profiles", by: "" };
	assert.equal(rows(merged), "topk(500, total(cpu))");
	assert.equal(rows({ ...merged, by: "pod" }), "topk(500, total(merge by (pod) (cpu)))");
	const grouped = { query: "merge by (version) (cpu)", kind: "profiles", by: "" };
	assert.equal(rows(grouped), "topk(500, total(merge by (version) (cpu)))");
	const top = { query: "top(5, merge(cpu))", kind: "top", by: "" };
	assert.equal(rows(top), "topk(500, total(cpu))");
});

test("cells are rates of amounts, the largest profile of levels, and what a window of its own says", () => {
	const q = (query, delta, by = "") => ask.cellsQuery(selector(query, by), delta, 10);
	assert.equal(q("cpu", true), "total(rate(cpu[10s]))");
	assert.equal(q("cpu", true, "pod"), "total(merge by (pod) (rate(cpu[10s])))");
	assert.equal(q("heap", false), "total(max_over_time(heap[10s]))");
	assert.equal(q("cpu", null), "total(cpu)", "the type is not known");
	assert.equal(q("cpu[5m]", true), "total(cpu[5m])");
	assert.equal(q("heap[5m]", false), "total(heap[5m])");
	assert.equal(
		ask.cellsQuery({ query: 'focus(cpu, "x")', kind: "profiles", by: "" }, true, 60),
		'total(focus(rate(cpu[1m]), "x"))',
	);
});

test("profiles are counted where a query only selects and filters", () => {
	const count = (query, by = "") => ask.countsQuery({ query, kind: "profiles", by }, 10);
	assert.equal(count("cpu"), "count_over_time(cpu[10s])");
	assert.equal(count('cpu{job="a"}', "pod"), 'sum by (pod) (count_over_time(cpu{job="a"}[10s]))');
	assert.equal(count('focus((cpu), "x")'), "count_over_time(cpu[10s])");
	assert.equal(count("cpu[5m]"), "", "a window of its own");
	assert.equal(count("cpu offset 1h"), "");
	assert.equal(count("cpu * 2"), "");
	assert.equal(count("cpu - cpu offset 1d"), "");
});

test("only some rows are asked for: by each label in which they differ", () => {
	const all = [A, B, { instance: "c.d", job: "shop" }];
	assert.equal(ask.onlyRows("cpu", all, all), "cpu");
	assert.equal(ask.onlyRows("cpu", [A, all[2]], all), 'cpu{instance=~"a|c\\\\.d"}');
	assert.equal(ask.onlyRows("cpu", [A], all), 'cpu{instance="a"}');
	assert.equal(ask.onlyRows("cpu", [A, {}], [A, {}, B]), 'cpu{instance=~"|a"}');
	const once = 'cpu{job="x",instance=~"a|b|c"}';
	assert.equal(ask.onlyRows(once, [A], all), 'cpu{job="x",instance="a"}');
});

test("a row is opened by its labels, and by those that only others have", () => {
	const all = [A, { ...B, pod: "p" }];
	const open = (a, metric) => ask.openedQuery(a, metric, all);
	assert.equal(open(selector("cpu"), A), 'cpu{instance="a",job="shop",pod=""}');
	assert.equal(open(selector('cpu{job=~"s.*",x!="y"}'), all[1]), 'cpu{x!="y",instance="b",job="shop",pod="p"}');
	const named = { __name__: "process_cpu", job: "a" };
	assert.equal(ask.openedQuery(selector("cpu"), named, [named]), 'cpu{job="a"}');
	const top = { query: "top(5, merge(cpu))", kind: "top", by: "" };
	assert.equal(ask.openedQuery(top, { job: "a" }, [{ job: "a" }]), 'merge(cpu{job="a"})');
});

test("the columns are as far apart as the scrapes of the query's targets", () => {
	const target = (job, profile, scrapeInterval) => ({ labels: { job }, profile, scrapeInterval });
	const targets = [
		target("a", "process_cpu", "5s"),
		target("b", "process_cpu", "15s"),
		target("a", "memory", "1m"),
	];
	const of = (profile, query) => ask.targetsInterval(targets, profile, query);
	assert.equal(of("process_cpu", 'cpu{job="a"}'), 5);
	assert.equal(of("process_cpu", "cpu"), 15);
	assert.equal(of("memory", "heap"), 60);
	assert.equal(of("process_cpu", 'cpu{job="c"}'), null);
	assert.equal(of("process_cpu", 'cpu{job="b",pod="x"}'), 15, "a label that targets do not have");
});

/* ---- cells ---- */

const vector = (...costs) => costs.map(([metric, v]) => ({ metric, value: [0, String(v)] }));

test("rows by their cost, at most 50, and what the rest costs", () => {
	const few = cells.heatRows(vector([A, 1], [B, 3]));
	assert.deepEqual(
		few.rows.map((r) => [r.label, r.total]),
		[
			["b", 3],
			["a", 1],
		],
	);
	assert.equal(cells.restWords(few), "");
	const many = cells.heatRows(vector(...Array.from({ length: 60 }, (_, i) => [{ pod: `p${i}` }, i < 10 ? 5 : 10])));
	assert.equal(many.rows.length, 50);
	assert.ok(many.rows.every((r) => r.total === 10));
	assert.equal(
		cells.restWords(many),
		"Top 50 rows of 60: the other 10 cost 9.09% of all.",
	);
	const most = cells.heatRows(vector(...Array.from({ length: 500 }, (_, i) => [{ pod: `p${i}` }, 1])));
	assert.match(cells.restWords(most), /of at least 500: the other 450 cost 90.00% of these\.$/);
});

const W = { start: 100, end: 140 };
const heat = (values, counts = null, rows = [row(A, "a"), row(B, "b")]) => {
	const matrix = (of) =>
		rows.map(({ metric }, r) => ({
			metric,
			values: of[r].flatMap((v, i) => (v === null ? [] : [[W.start + 10 * i, String(v)]])),
		}));
	return cells.heatOf(rows, matrix(values), counts && matrix(counts), W, 10);
};

test("a gap is not a cost of 0", () => {
	const h = heat([
		[0, null, 2e9, 1, 1],
		[1, 1, 5e9, 0, null],
	]);
	assert.deepEqual(h.times, [100, 110, 120, 130, 140]);
	assert.deepEqual(Array.from(h.values), [0, NaN, 2e9, 1, 1, 1, 1, 5e9, 0, NaN]);
	assert.equal(h.hottest, 7);
	assert.equal(h.max, 5e9);
	const said = (cell) => cells.cellWords(h, unit, cell).value;
	assert.equal(said(0), "0 cores");
	assert.equal(said(1), "no profile");
	assert.equal(said(7), "5 cores");
	const none = heat([Array(5).fill(null), Array(5).fill(null)]);
	assert.equal(none.hottest, -1);
});

test("points beside the grid, of other rows and without a number are left out", () => {
	const of = [
		{ metric: A, values: [[90, "9"], [100, "1"], [150, "9"], [110, "NaN"]] },
		{ metric: { instance: "other" }, values: [[100, "99"]] },
	];
	const h = cells.heatOf([row(A, "a")], of, null, W, 10);
	assert.deepEqual(Array.from(h.values), [1, NaN, NaN, NaN, NaN]);
	assert.equal(h.max, 1);
});

test("how many profiles a cell has, and whether that is one", () => {
	const values = [
		[1, 1, 1, 1, 1],
		[1, 1, 1, 1, null],
	];
	const h = heat(values, [
		[1, 2, null, 1, 1],
		[6, 6, 5, 6, null],
	]);
	assert.equal(cells.countAt(h, 1), 2);
	assert.equal(cells.countAt(h, 2), 0);
	assert.ok(cells.isSingle(h, 0));
	assert.ok(!cells.isSingle(h, 1));
	assert.equal(cells.cellWords(h, unit, 0).profiles, "1 profile");
	assert.equal(cells.cellWords(h, unit, 5).profiles, "6 profiles");
	assert.equal(cells.cellWords(h, unit, 9).profiles, "", "a gap");
	assert.equal(cells.countAt(heat(values), 0), -1, "not known");
	const others = cells.heatOf(h.rows, [], [{ metric: { x: "y" }, values: [[100, "1"]] }], W, 10);
	assert.equal(others.counts, null, "counts of other rows");
});

test("rows at the edge of the columns are drawn half a column earlier", () => {
	const own = [1, 1, 1, 1, 1];
	const of = (...counts) => cells.onEdge(heat([own, [1, null, 1, 1, 1]], counts));
	assert.deepEqual(of([1, 1, 1, 1, 1], [1, null, 1, 1, 1]), []);
	assert.deepEqual(of([1, null, 2, 1, 1], [1, null, 1, 1, 1]), [0], "one came late");
	assert.deepEqual(of([1, 1, 1, 1, 1], [1, null, 2, 1, 1]), [1], "two in one, beside a gap");
	assert.deepEqual(of([6, 7, 6, 5, 6], [1, null, 1, 1, 1]), [], "a column has several anyway");
	assert.deepEqual(cells.onEdge(heat([own, own])), [], "counts are not known");

	const before = heat([own, own], [
		[1, null, 2, 1, 1],
		[1, 1, 1, 1, 1],
	]);
	const again = [{ metric: A, values: [[95, "1"], [105, "7"], [125, "2"], [135, "3"]] }];
	const after = cells.shifted(before, [0], again, -5);
	assert.deepEqual(Array.from(after.values), [1, 7, NaN, 2, 3, ...own]);
	assert.deepEqual(after.shifts, [-5, 0]);
	assert.equal(after.hottest, 1);
	assert.equal(after.max, 7);
	assert.deepEqual([0, 1, 5].map((c) => cells.endOf(after, c)), [95, 105, 100]);
	assert.equal(cells.countAt(after, 1), 1);
	assert.match(cells.cellWords(after, unit, 1).time, /:35 – \S+:45 /);
	assert.deepEqual(Array.from(before.values.slice(0, 5)), own, "the other one stays as it was");
});

test("columns that are mostly empty are too narrow", () => {
	const h = (...rows) => cells.stepsApart(heat(rows));
	assert.equal(h([1, 1, 1, 1, 1], [1, 1, 1, 1, 1]), 1);
	assert.ok(h([1, 1, 1, 1, 1], [1, null, 1, null, 1]) < 1.5, "a missing profile makes none wider");
	assert.equal(h([1, null, 1, null, 1], [1, null, 1, null, 1]), 2);
	assert.equal(h([1, null, null, null, 1], [null, null, null, null, null]), null, "too few");
	// A rate over less than an interval takes a whole one: only the counts have gaps.
	const full = Array(5).fill(1);
	const counted = heat([full, full], [
		[1, null, 1, null, 1],
		[1, null, 1, null, 1],
	]);
	assert.equal(cells.stepsApart(counted), 2);
});

test("keys walk within the grid and begin at the hottest cell", () => {
	const h = heat([
		[1, 1, 9, 1, 1],
		[1, 1, 1, 1, 1],
	]);
	assert.equal(cells.movedCell(h, -1, "ArrowDown"), 2);
	assert.equal(cells.movedCell(h, 2, "ArrowDown"), 7);
	assert.equal(cells.movedCell(h, 7, "ArrowDown"), 7);
	assert.equal(cells.movedCell(h, 7, "ArrowRight"), 8);
	assert.equal(cells.movedCell(h, 4, "ArrowRight"), 4, "not into the next row");
	assert.equal(cells.movedCell(h, 5, "ArrowLeft"), 5, "nor into the one before");
	assert.equal(cells.movedCell(h, 7, "Home"), 5);
	assert.equal(cells.movedCell(h, 0, "End"), 4);
	assert.equal(cells.movedCell(h, 7, "PageUp"), 5);
	assert.equal(cells.movedCell(h, 7, "Enter"), null);
});

test("cells and rows in words, with the zone of the time", () => {
	const h = heat([
		[1e9, null, 3e9, 2e9, 2e9],
		[null, null, null, null, null],
	]);
	const said = cells.spokenCell(h, unit, 2);
	assert.match(said, /^a, 1970-01-01 \d\d:\d\d:50 – \d\d:\d\d:00 UTC(\+|-|,|$)/);
	assert.ok(said.endsWith(", 3 cores"), said);
	const [head, a, b] = cells.describeHeat(h, unit);
	assert.equal(head, "2 rows, 5 columns of 10s, in cores.");
	assert.match(a, /^a: from 1 cores to 3 cores, most at 1970-01-01 \d\d:\d\d:00.*, 1 without a profile\.$/);
	assert.equal(b, "b: no profiles.");
});

/* ---- places ---- */

test("every pixel of the plot is in one cell, and each cell where it is drawn", () => {
	for (const [rows, columns] of [
		[1, 1],
		[3, 7],
		[50, 1000],
	]) {
		const g = grid.gridOf(rows, columns, 1200, 150);
		for (const cell of [0, Math.floor((rows * columns) / 2), rows * columns - 1]) {
			const { x, y, w, h } = grid.boxOf(g, cell);
			assert.equal(grid.cellAt(g, x + w / 2, y + h / 2), cell, `${rows} x ${columns}: ${cell}`);
		}
		assert.equal(grid.cellAt(g, g.left - 1, 1), -1);
		assert.equal(grid.cellAt(g, g.left + g.width, 1), -1);
		assert.equal(grid.cellAt(g, g.left, g.rows * g.rowHeight), -1, "the axis");
	}
});

test("labels leave room for the cells, and columns are no narrower than a pixel", () => {
	const wide = grid.gridOf(50, 1000, 1400, 2000);
	assert.ok(wide.left <= 260 && wide.width >= 1100);
	const phone = grid.gridOf(3, 60, 360, 2000);
	assert.ok(phone.left <= 0.28 * 360 + 1 && phone.width >= 240);
	assert.equal(grid.columnsFor(5000), 1000);
	assert.equal(grid.columnsFor(50), 60);
	for (const width of [360, 800, 1400])
		assert.ok(grid.columnsFor(width) <= grid.gridOf(3, 1, width, 2000).width, `${width}`);
});

test("ticks are on round times, and apart", () => {
	const g = grid.gridOf(2, 360, 1200, 100);
	const day = 86400 * 20000;
	for (const seconds of [60, 3600, 86400, 30 * 86400]) {
		const all = grid.ticksOf(g, { start: day, end: day + seconds });
		assert.ok(all.length >= 2, `${seconds} s: ${all.length} ticks`);
		all.slice(1).forEach((t, i) => assert.ok(t.x - all[i].x >= 70, `${seconds} s`));
		assert.ok(all.every((t) => t.x >= g.left && t.x <= g.left + g.width + 1));
	}
	const hour = grid.ticksOf(g, { start: day + 1, end: day + 3601 });
	assert.match(hour[0].text, /^\d\d:[0-5][05]$/);
});

test("a name that is too long keeps both ends", () => {
	const measure = (t) => t.length;
	assert.equal(grid.fitted("short", 10, measure), "short");
	const cut = grid.fitted("checkout-7f9c-abcde", 10, measure);
	assert.equal(cut.length, 10);
	assert.ok(cut.startsWith("che") && cut.includes("…") && cut.endsWith("abcde"), cut);
	assert.equal(grid.fitted("name", 0, measure), "");
});

/* ---- colours ---- */

const linear = (v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4);
const luminance = (rgb) => 0.2126 * rgb[0] + 0.7152 * rgb[1] + 0.0722 * rgb[2];
/** What people without one kind of cone see, in linear light (Machado, Oliveira, Fernandes 2009). */
const SEEN = {
	everybody: [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
	protanopia: [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
	deuteranopia: [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
	tritanopia: [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
};
const PANEL = { light: [255, 255, 255], dark: [0x1a, 0x1e, 0x26] };

for (const theme of ["light", "dark"])
	test(`costs are told apart by lightness in the ${theme} theme, whatever hues one sees`, () => {
		const { colors } = palette.HEAT_PALETTES[theme];
		assert.equal(colors.length, palette.HEAT_COLORS);
		for (const [who, matrix] of Object.entries(SEEN)) {
			const light = (rgb) => {
				const l = rgb.map(linear);
				return luminance(matrix.map((m) => m[0] * l[0] + m[1] * l[1] + m[2] * l[2]));
			};
			// Relative luminance as L* of CIE Lab, in which equal steps look equal.
			const lstar = colors.map((c) => 116 * Math.cbrt(Math.max(0, light(c))) - 16);
			const steps = Array.from({ length: 9 }, (_, i) => lstar[Math.round((i * 255) / 8)]);
			const sign = theme === "light" ? -1 : 1;
			steps.slice(1).forEach((l, i) =>
				assert.ok(sign * (l - steps[i]) >= 4, `${who}: step ${i}: ${steps[i]} to ${l}`),
			);
		}
		const contrast = (a, b) => {
			const [x, y] = [a, b].map((c) => luminance(c.map(linear)) + 0.05).sort((m, n) => n - m);
			return x / y;
		};
		assert.ok(contrast(colors[0], PANEL[theme]) >= 1.15, "a cost of 0 is not a gap");
		assert.ok(contrast(colors[255], PANEL[theme]) >= 7);
	});

test("colours from 0 to the greatest cost", () => {
	assert.equal(palette.colorIndex(0, 10), 0);
	assert.equal(palette.colorIndex(-1, 10), 0);
	assert.equal(palette.colorIndex(10, 10), 255);
	assert.equal(palette.colorIndex(5, 10), 128);
	assert.equal(palette.colorIndex(0, 0), 0);
	const { pixels, colors } = palette.HEAT_PALETTES.dark;
	assert.deepEqual([...new Uint8Array(pixels.buffer.slice(0, 4))], [...colors[0], 255]);
});
