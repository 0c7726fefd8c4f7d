import assert from "node:assert/strict";
import test from "node:test";
import { page } from "./page.mjs";

const { units } = page;

test("values in their unit", () => {
	for (const [value, unit, want] of [
		[0, "nanoseconds", "0 s"],
		[999, "nanoseconds", "999 ns"],
		[1234, "nanoseconds", "1.23 µs"],
		[12345678, "nanoseconds", "12.3 ms"],
		[1e9, "nanoseconds", "1 s"],
		[90e9, "nanoseconds", "90 s"],
		[120e9, "nanoseconds", "2 min"],
		[7200e9, "nanoseconds", "2 h"],
		[3 * 86400e9, "nanoseconds", "3 d"],
		[2500, "milliseconds", "2.5 s"],
		[0, "bytes", "0 B"],
		[1023, "bytes", "1023 B"],
		[1536, "bytes", "1.5 KiB"],
		[5 * 1024 ** 3, "bytes", "5 GiB"],
		[999, "count", "999"],
		[999.6, "count", "1 k"],
		[12345, "count", "12.3 k"],
		[1e12, "objects", "1 T"],
		[0.05, "", "0.05"],
		[0.123, "ratio", "12.30%"],
		[-1536, "bytes", "-1.5 KiB"],
	])
		assert.equal(units.formatValue(value, unit), want, `${value} ${unit}`);
});

test("signs", () => {
	assert.equal(units.formatSigned(1e9, "nanoseconds"), "+1 s");
	assert.equal(units.formatSigned(-2048, "bytes"), "−2 KiB");
	assert.equal(units.formatSigned(0, "count"), "0");
});

test("percentages and points", () => {
	assert.equal(units.formatPercent(0), "0.00%");
	assert.equal(units.formatPercent(0.001), "<0.01%");
	assert.equal(units.formatPercent(12.345), "12.35%");
	assert.equal(units.formatPercent(100), "100%");
	assert.equal(units.formatPercent(-3.1), "−3.10%");
	assert.equal(units.formatPercent(NaN), "–");
	assert.equal(units.formatPoints(0.76), "+0.76 pp");
	assert.equal(units.formatPoints(-1.5), "−1.50 pp");
	assert.equal(units.formatPoints(0.001), "±0 pp");
	assert.equal(units.share(1, 4), 25);
	assert.equal(units.share(1, 0), 0);
});

test("CPU nanoseconds per window are cores", () => {
	const u = units.chartUnit(
		"process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta",
		"nanoseconds",
		20,
	);
	assert.equal(u.label, "cores");
	assert.equal(30e9 * u.factor, 1.5);
	assert.equal(u.format(1.5), "1.5");
	assert.equal(u.format(0.00052345), "0.000523");
});

test("other delta types are rates, gauges stay", () => {
	const delay = units.chartUnit(
		"block:delay:nanoseconds:contentions:count:delta",
		"nanoseconds",
		10,
	);
	assert.equal(delay.label, "seconds per second");
	assert.equal(delay.format(0.5), "0.5 s/s");
	const alloc = units.chartUnit("memory:alloc_space:bytes:space:bytes:delta", "bytes", 10);
	assert.equal(alloc.label, "bytes per second");
	assert.equal(alloc.format(10240 * alloc.factor), "1 KiB/s");
	const inuse = units.chartUnit("memory:inuse_space:bytes:space:bytes", "bytes", 10);
	assert.equal(inuse.factor, 1);
	assert.equal(inuse.format(2048), "2 KiB");
	assert.equal(units.chartUnit("", "", 10).label, "value");
});

test("ages", () => {
	assert.equal(units.formatAgo(-1), "just now");
	assert.equal(units.formatAgo(4.21), "4.2 s ago");
	assert.equal(units.formatAgo(600), "10 min ago");
	assert.equal(units.formatAgo(7200), "2 h ago");
	assert.equal(units.formatAgo(172800), "2 d ago");
});

test("a difference's share has the sign of its value", () => {
	const row = { flat: -4, flat_percent: 0.4, cum: 2, cum_percent: 0.2 };
	assert.equal(units.signedPercent(row, "flat"), -0.4);
	assert.equal(units.signedPercent(row, "cum"), 0.2);
	assert.equal(units.signedPercent({ ...row, flat: -4, flat_percent: -0.4 }, "flat"), -0.4);
	assert.equal(units.formatPercent(units.signedPercent({ ...row, flat: 0 }, "flat")), "0.00%");
});

test("nothing counted is said in words of what is counted", () => {
	for (const [type, unit, n, want] of [
		[
			"process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta",
			"nanoseconds",
			13,
			"No CPU time in this window: 13 profiles without samples.",
		],
		[
			"memory:alloc_space:bytes:space:bytes:delta",
			"bytes",
			1,
			"No allocations in this window: 1 profile without samples.",
		],
		[
			"memory:inuse_space:bytes:space:bytes",
			"bytes",
			2,
			"No memory in use in this window: 2 profiles without samples.",
		],
		[
			"mutex:delay:nanoseconds:contentions:count:delta",
			"nanoseconds",
			2,
			"No waiting in this window: 2 profiles without samples.",
		],
		["", "", 2, "Nothing counted in this window: 2 profiles without samples."],
	])
		assert.equal(units.nothingCounted(type, unit, n), want);
});

test("ticks of bytes are binary, of other units decimal", () => {
	assert.equal(units.chartUnit("memory:inuse_space:bytes:space:bytes", "bytes", 10).binary, true);
	assert.equal(units.chartUnit("goroutine:goroutine:count:g:count", "count", 10).binary, false);
});

test("values that are no finite numbers are read and said as the server writes them", () => {
	const said = ["+Inf", "-Inf", "NaN", "-1.5e3"].map((s) => units.parseSample(s));
	assert.deepEqual(said, [Infinity, -Infinity, NaN, -1500]);
	const shown = said.slice(0, 3).map((v) => units.formatValue(v, "ratio"));
	assert.deepEqual(shown, ["Inf", "-Inf", "NaN"]);
});

test("a count with its noun", () => {
	const { counted } = page.units;
	assert.deepEqual(
		[counted(0, "group"), counted(1, "group"), counted(2, "group"), counted(1200, "process"), counted(1, "process")],
		["0 groups", "1 group", "2 groups", "1,200 processes", "1 process"],
	);
	assert.deepEqual([counted(1, "series"), counted(3, "series")], ["1 series", "3 series"]);
	assert.deepEqual([counted(1, "shard is", "shards are"), counted(2, "shard is", "shards are")], ["1 shard is", "2 shards are"]);
});
