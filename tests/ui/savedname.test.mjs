// Names of saved files; tests/web/api/saved_name_test.c has the same rows for the server.
import assert from "node:assert/strict";
import test from "node:test";
import { page } from "./page.mjs";

const { savedname, api } = page;

const T0 = Date.UTC(2026, 10, 23, 14, 5) / 1000;
const CPU = "process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta";
const ALLOC = "memory:alloc_space:bytes:space:bytes:delta";

const nameOf = (service, type, begin, length, query = "cpu") =>
	savedname.savedName(
		query,
		{ start: String(T0 + begin), end: String(T0 + begin + length) },
		[{ metric: service ? { job: service } : {}, type }],
		"pb.gz",
	);

test("service, type and time", () => {
	for (const [service, type, begin, length, want] of [
		["shop", CPU, 0, 900, "shop-cpu-2026-11-23T14-05Z-15m.pb.gz"],
		["shop", ALLOC, 0, 5400, "shop-memory-alloc_space-2026-11-23T14-05Z-1h30m.pb.gz"],
		["", CPU, 0, 86400, "cpu-2026-11-23T14-05Z-1d.pb.gz"],
		["", "", 0, 0, "2026-11-23T14-05Z.pb.gz"],
		["a", "b:b", 7, 93784, "a-b-2026-11-23T14-05Z-1d2h.pb.gz"],
		["a", "b:b", 7, 59, "a-b-2026-11-23T14-05-07Z-59s.pb.gz"],
		["a", "b:b", 7, 60, "a-b-2026-11-23T14-05Z-1m.pb.gz"],
		["a", "b:b", 7, 0, "a-b-2026-11-23T14-05-07Z.pb.gz"],
		["a", "b:b", 0, 9, "a-b-2026-11-23T14-05Z-9s.pb.gz"],
		["../../etc/passwd", CPU, 0, 60, "etc_passwd-cpu-2026-11-23T14-05Z-1m.pb.gz"],
		['a"b\\c:d*e?f|g<h>\r\n', "x.y:x.y", 0, 60, "a_b_c_d_e_f_g_h-x_y-2026-11-23T14-05Z-1m.pb.gz"],
		["con.shop", CPU, 0, 60, "con_shop-cpu-2026-11-23T14-05Z-1m.pb.gz"],
		["\u043c\u0430\u0433", CPU, 0, 60, "cpu-2026-11-23T14-05Z-1m.pb.gz"],
		["--my-shop__", CPU, 0, 60, "my-shop-cpu-2026-11-23T14-05Z-1m.pb.gz"],
		["x".repeat(300), CPU, 0, 60, `${"x".repeat(48)}-cpu-2026-11-23T14-05Z-1m.pb.gz`],
	])
		assert.equal(nameOf(service, type, begin, length), want);
});

test("the service is that of all elements, else the one that the query selects", () => {
	const of = (query, ...metrics) =>
		savedname.savedName(query, { time: String(T0) }, metrics.map((metric) => ({ metric, type: CPU })), "svg");
	const named = (s) => `${s}cpu-2026-11-23T14-05Z.svg`;
	assert.equal(of("cpu", { job: "a", pod: "1" }, { job: "a", pod: "2" }), named("a-"));
	assert.equal(of("cpu", { job: "a" }, { job: "b" }), named(""));
	assert.equal(of("cpu", { job: "a", service: "s" }), named("s-"), "a service is more than a job");
	assert.equal(of('merge(cpu{job="shop"}[5m])', {}), named("shop-"));
	assert.equal(of('merge(cpu{job=~"shop"}[5m])', {}), named(""));
	assert.equal(of('merge(cpu{job="a"}) - merge(cpu{job="b"})', {}), named(""));
	assert.equal(of('merge({__name__="process_cpu",job="shop"})', {}), named("shop-"));
});

test("types in words", () => {
	for (const [type, want] of [
		[CPU, "cpu"],
		["process_cpu:samples:count:cpu:nanoseconds:delta", "cpu samples"],
		["memory:inuse_space:bytes:space:bytes", "memory"],
		[ALLOC, "memory alloc_space"],
		["mutex:delay:nanoseconds:contentions:count:delta", "mutex"],
		["goroutine:goroutine:count:goroutine:count", "goroutine"],
		["", ""],
	])
		assert.equal(api.typeInWords(type), want, type);
});
