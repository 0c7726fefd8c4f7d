// Writes answers.txt: what Prometheus answers to the queries below over the numbers below.
//
//	node tests/promql/oracle/record.mjs DIR >tests/promql/oracle/answers.txt
//
// DIR has usr/bin/prometheus and usr/bin/promtool, as Debian's package unpacks (2.42):
//	apt-get download prometheus && dpkg -x prometheus_*.deb DIR
// The numbers become blocks by promtool; a server over them is asked by its API, and ended.
import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

const T0 = 1700000040; // a whole minute
const series = {
	"req,job=a,pod=p": "1 2 3.5 -4 5 6",
	"req,job=a,pod=q": "10 20 30 40 50 60",
	"req,job=b,pod=r": "0.1 0.2 0.30000000000000004 NaN 7 1e300",
	"req,job=c": "-1 -0 0 +Inf -Inf 100",
	"lim,job=a,zone=z1": "2 2 2 2 2 2",
	"lim,job=b,zone=z2": "3 3 3 3 3 3",
	"lim,job=d,zone=z3": "9 9 9 9 9 9",
	"dup,job=a,n=1": "1 1 1 1 1 1",
	"dup,job=a,n=2": "2 2 2 2 2 2",
	"info,job=a,pod=p,version=v1": "1 1 1 1 1 1",
	"info,job=a,pod=q,version=v2": "1 1 1 1 1 1",
	"odd,v=nan": "NaN NaN NaN NaN NaN NaN",
	"odd,v=inf": "+Inf +Inf +Inf +Inf +Inf +Inf",
	"odd,v=-inf": "-Inf -Inf -Inf -Inf -Inf -Inf",
	"odd,v=neg": "-2.5 -2.5 -2.5 -2.5 -2.5 -2.5",
	"odd,v=pos": "2.5 2.5 2.5 2.5 2.5 2.5",
	"odd,v=big": "1e308 1e308 1e308 1e308 1e308 1e308",
	"odd,v=big2": "1.5e308 1.5e308 1.5e308 1.5e308 1.5e308 1.5e308",
	"odd,v=zero": "0 0 0 0 0 0",
	"odd,v=minuszero": "-0 -0 -0 -0 -0 -0",
	"odd,v=half": "0.5 0.5 0.5 0.5 0.5 0.5",
	"odd,v=tiny": "1e-7 1e-7 1e-7 1e-7 1e-7 1e-7",
};

// Asked at 300 s.
const instant = [
	...["abs", "ceil", "floor", "sgn", "sqrt", "exp", "ln", "log2", "log10", "round", "sort", "sort_desc", "-", "+"]
		.map((f) => `${f}(odd)`),
	"ceil(req)", "abs(nothing)", "sort(nothing)", "round(odd, 2)", "round(odd, 0.1)", "round(odd, 0)", "round(odd, NaN)",
	"round(req, -3)", "round(req, 5)", "clamp(odd, -1, 1)", "clamp(odd, 1, -1)", "clamp(odd, NaN, 1)",
	"clamp(odd, -1, NaN)", "clamp(odd, -Inf, Inf)", "clamp_min(odd, 0)", "clamp_max(odd, 0)", "clamp_min(odd, NaN)",
	"clamp_max(odd, NaN)", "clamp_min(odd, Inf)", "clamp_max(odd, -Inf)", "clamp_min(req, scalar(dup))",
	"clamp_min(nothing, 1)", "sort(req)", "sort_desc(req)", "sgn(req - 6)",
	'label_replace(req, "x", "$1-$2", "pod", "(.)(.*)")', 'label_replace(req, "x", "v", "pod", "p")',
	'label_replace(req, "x", "v", "missing", "")', 'label_replace(req, "pod", "", "pod", ".*")',
	'label_replace(req, "pod", "same", "pod", ".+")', 'label_replace(req, "job", "", "job", "c")',
	'label_replace(req, "x", "${name}!", "job", "(?P<name>[ab])")', 'label_replace(req, "x", "$$1", "job", "(a)")',
	'label_replace(req, "x", "a$1_b", "job", "(a)")', 'label_replace(req, "x", "v", "pod", "(")',
	'label_replace(req, "0x", "v", "pod", "p")', 'label_replace(req, "__name__", "other", "pod", "p")',
	'label_replace(nothing, "x", "v", "pod", "p")', 'label_replace(dup, "n", "", "", "")',
	'label_replace(req, "x", "v", "pod", "o|p")', 'sum(label_replace(dup, "n", "", "n", ".*"))',
	'label_join(req, "x", "-", "job", "pod")', 'label_join(req, "x", "-")', 'label_join(req, "pod", "", "job")',
	'label_join(req, "pod", "", "missing")', 'label_join(req, "x", ",", "missing", "job", "missing")',
	'label_join(req, "0x", "-", "job")', 'label_join(req, "x", "-", "0job")', 'label_join(dup, "n", "-", "job")',
	'label_join(req, "__name__", "_", "__name__", "job")',
	"absent(nothing)", "absent(req)", 'absent(nothing{job="a"})', 'absent(nothing{job="a",pod=~"x",n!="1"})',
	'absent(nothing{job="a",job="b",pod="c"})', 'absent({__name__="nothing",job="a"})', "absent(sum(nothing))",
	"absent(req > 1e301)", 'absent((nothing{job="a"}))', 'absent(-nothing{job="a"})', 'absent(req{job="z"} offset 1m)',
	...["sum", "avg", "min", "max", "count", "group", "stddev", "stdvar"].flatMap((f) =>
		[`${f}(req)`, `${f} by (job) (req)`, `${f} without (pod) (req)`, `${f}(odd{v=~"pos|neg|half|zero"})`,
			`${f}(odd{v=~"big.*"})`, `${f}(odd{v=~"inf|pos"})`, `${f}(odd{v=~"inf|nan|pos"})`, `${f}(odd{v=~"-?inf"})`,
			`${f}(nothing)`]),
	"stddev(odd{v='inf'})", "stdvar(odd{v='nan'})", "stddev by (v) (odd)", "min(odd)", "max(odd)", "max(odd{v='nan'})",
	...["0", "0.5", "0.25", "1", "-1", "1.1", "NaN", "0.999"].flatMap((q) =>
		[`quantile(${q}, req)`, `quantile by (job) (${q}, req)`, `quantile(${q}, odd)`]),
	"quantile(0.5, nothing)", "quantile without (pod, zone) (0.3, req)", "quantile(scalar(lim{job='a'}) / 4, req)",
	'count_values("value", req)', 'count_values("v", lim)', 'count_values("v", odd)', 'count_values("job", dup)',
	'count_values by (job) ("v", dup)', 'count_values without (n) ("v", dup)', 'count_values("0v", dup)',
	'count_values without (v) ("v", odd)', 'count_values("x", dup * 1e21)', 'count_values("x", dup / 3e10)',
	'count_values("x", dup * 123456789012345680)', "count_values(\"v\", nothing)",
	"topk(2, req)", "bottomk(2, req)", "topk(1, req) by (job)", "topk(0, req)", "topk(-1, req)", "topk(NaN, req)",
	"topk(20, req)", "bottomk by (job) (1, req)", "topk(1.9, req)",
	...["+", "-", "*", "/", "%", "^", "atan2"].flatMap((op) =>
		[`req ${op} on (job) group_left lim`, `odd ${op} 2`, `2 ${op} odd`, `odd ${op} odd`, `odd ${op} 0`, `0 ${op} odd`,
			`odd ${op} ignoring (v) dup`, `7 ${op} -3`, `0 ${op} 0`, `req ${op} nothing`]),
	...["==", "!=", "<", "<=", ">", ">="].flatMap((op) =>
		[`odd ${op} 0`, `0 ${op} odd`, `odd ${op} bool 0`, `odd ${op} odd`, `odd ${op} bool odd`, `1 ${op} bool 1`,
			`NaN ${op} bool NaN`, `req ${op} on (job) group_left lim`, `req ${op} bool on (job) group_left lim`,
			`lim ${op} on (job) group_right req`, `req ${op} ignoring (pod, zone) group_left lim`,
			`lim{job='a'} ${op} on (job) req{pod='p'}`, `lim{job='a'} ${op} ignoring (zone, pod) req{pod='p'}`,
			`lim{job='a'} ${op} bool on (job) req{pod='p'}`]),
	"req + req", "req + on () req", "req + on (job) lim", "req{job='b'} + on (job) lim", "lim + on (job) req",
	"req{pod='p'} + ignoring (pod, zone) lim", "req + on (job) group_left (zone) lim", "lim + on (job) group_right (zone) req",
	"req + on (job) group_left (pod) lim", "dup * on (job) group_left (pod) lim", "req * on (job, pod) group_left (version) info",
	"info * on (job, pod) group_left (job) req", "req + on (job) group_left dup", "req + ignoring (pod, n) dup",
	"dup + on (job) group_right req", "dup + on (job) dup", "lim * on (job) group_left (n) dup{n='1'}",
	"req * on (job) group_left (missing) lim", "req > on (job) group_left (zone) lim", "req + on (job) group_left (job) lim",
	"req{pod='p'} == on (job) group_left (zone) lim", "-req", "-(req > 5)", "+req", "- - req",
	...["and", "or", "unless"].flatMap((op) =>
		[`req ${op} lim`, `req ${op} on (job) lim`, `lim ${op} on (job) req`, `req ${op} ignoring (pod, zone) lim`,
			`req ${op} on () lim`, `req ${op} nothing`, `nothing ${op} req`, `req ${op} on () nothing`, `dup ${op} on (job) req`,
			`lim ${op} (req > 5)`, `req ${op} on (job) dup`]),
	"dup or on (job) lim", "dup or ignoring (n) lim", "lim and on (job) req > 5", "req + 1 and on (job) lim",
	"sum({job='a'} * 1)", "-{job='a'}", "{job='a'} * 1", "abs({__name__=~'req|lim',job='a'})", "abs({job='a'})",
	"scalar(lim)", "scalar(lim{job='a'})", "scalar(nothing)", "vector(scalar(lim{job='a'}))", "vector(1) + on () lim{job='a'}",
	"1 + 2 * 3 ^ 2 ^ 0.5", "-1 ^ 2", "2 ^ -1", "7 % 0", "-7 % 3", "-7.5 % 2", "Inf % 2", "2 % Inf", "1 / 0", "-1 / 0", "0 / 0",
	"0x10 atan2 -0", "time() - time()", "req offset 1m", "req offset -1m", "req @ start()", "req @ end() offset 2m",
	"req offset 2m > 3", "sum(req offset -2m)", "sum by (job) (req) / on (job) lim", "sum by () (req)", "sum without () (dup)",
	"count(count by (job) (req))", "max by (job) (req) - min by (job) (req)", "avg(req) + avg(lim)",
	"sum_over_time(req[3m])", "avg_over_time(req[3m])", "max_over_time(req[3m]) > 5", "quantile_over_time(0.5, req[5m])",
	"stddev_over_time(req[5m])", "last_over_time(req[90s] offset 1m)", "count_over_time(req[2m] @ start())",
	"changes(req[5m])", "present_over_time(req[1m])", "absent_over_time(nothing{job='a'}[5m])", "sort(sum_over_time(req{job='a'}[3m]))",
	"nothing + on (job) dup", "dup + on (job) nothing", "nothing * on (job) group_left dup", "nothing and on (job) dup", "topk(1e30, req)",
	"label_replace(label_join(req, 'x', '/', 'job', 'pod'), 'y', '$2', 'x', '(.*)/(.*)')", "atan2 + 1", "sum(req) atan2 sum(lim)",
	"clamp_max(sum by (job) (req), 10) * 2 > bool 5", "round(avg_over_time(req{job='a'}[5m]), 0.01)",
];

// From 0 to 300 s by 60 s.
const range = [
	"req", "abs(req)", "round(req, 2)", "clamp(req, 0, 5)", "req > 3", "req > bool 3", "time() - time()", "vector(7)", "1 + 1",
	"time() - scalar(vector(time()))", "sort_desc(req)", "topk(1, req)", "req @ start()", "req @ end()", "req offset 1m",
	"req offset -1m", "req @ end() offset -1m", "sum by (job) (req)", "quantile(0.5, req)", "stddev(req)",
	'count_values("v", req)', "absent(req > 1e299)", 'absent(nothing{job="a"})', 'label_replace(req, "x", "$1", "job", "(.*)")',
	'label_join(req, "x", "-", "job", "pod")', "req / on (job) group_left lim", "req and on (job) (lim > 2)", "lim unless on (job) req",
	"sum_over_time(req[2m])", "last_over_time(req[1m] offset 1m)", "avg_over_time(req[2m] @ end())", "scalar(req)", "sgn(req)",
];

const bin = join(process.argv[2], "usr/bin");
const dir = mkdtempSync(join(tmpdir(), "epi-oracle-"));
const port = await new Promise((done) => {
	const s = createServer().listen(0, "127.0.0.1", () => {
		const { port } = s.address();
		s.close(() => done(port));
	});
});

let text = "";
for (const [key, values] of Object.entries(series)) {
	const [name, ...labels] = key.split(",");
	const set = labels.map((l) => l.replace(/=(.*)/, '="$1"')).join(",");
	values.split(" ").forEach((v, i) => (text += `${name}{${set}} ${v} ${T0 + i * 60}\n`));
}
writeFileSync(join(dir, "numbers.om"), text + "# EOF\n");
writeFileSync(join(dir, "empty.yml"), "");
execFileSync(join(bin, "promtool"), ["tsdb", "create-blocks-from", "openmetrics", join(dir, "numbers.om"), join(dir, "data")]);
const server = spawn(join(bin, "prometheus"), [`--config.file=${dir}/empty.yml`, `--storage.tsdb.path=${dir}/data`,
	"--storage.tsdb.retention.time=100y", `--web.listen-address=127.0.0.1:${port}`, "--log.level=error"],
	{ stdio: ["ignore", "ignore", "inherit"] });
const ask = async (path, args) => (await fetch(`http://127.0.0.1:${port}/api/v1/${path}?${new URLSearchParams(args)}`)).json();
const metric = ({ __name__: name = "", ...rest }) =>
	name && !Object.keys(rest).length ? name :
		`${name}{${Object.keys(rest).sort().map((k) => `${k}="${rest[k]}"`).join(", ")}}`;

function answer(a) {
	if (a.status !== "success")
		return a.errorType === "execution" ? `error: ${a.error}` : "refused";
	const { resultType, result } = a.data;
	if (resultType === "scalar")
		return result[1];
	return result.map((r) => metric(r.metric) + (resultType === "vector" ? ` ${r.value[1]}` :
		r.values.map(([t, v]) => ` ${t - T0}=${v}`).join(""))).join("\n");
}

try {
	for (let i = 0; ; i++) {
		const ready = await fetch(`http://127.0.0.1:${port}/-/ready`).then((r) => r.ok, () => false);
		if (ready)
			break;
		if (i === 100)
			throw new Error("the server does not get ready");
		await new Promise((done) => setTimeout(done, 100));
	}
	const out = Object.entries(series).map(([key, values]) => `number __name__=${key} ${values}`);
	const row = (kind, query, a) => out.push(`${kind} ${query}`, ...answer(a).split("\n").map((l) => `\t${l}`));
	for (const query of instant)
		row("at", query, await ask("query", { query, time: T0 + 300 }));
	for (const query of range)
		row("range", query, await ask("query_range", { query, start: T0, end: T0 + 300, step: 60 }));
	process.stdout.write(out.join("\n") + "\n");
} finally {
	server.kill();
	await new Promise((done) => server.once("exit", done));
	rmSync(dir, { recursive: true });
}
