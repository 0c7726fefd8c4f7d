// Writes answers.txt: what Prometheus 3 answers to the queries below over the numbers below.
//
//	node tests/promql/oracle/record.mjs >tests/promql/oracle/answers.txt
//
// main.go asks Prometheus's own engine, which is a Go module: go fetches and builds it. With an argument, DIR, it is built
// there and stays; `node record.mjs DIR <ROWS` answers other rows, as main.go says.
import { execFileSync } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const PROMETHEUS = "v0.316.0"; // the module's version of 3.16
const T0 = 1209600000; // as main.go

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
	// Counters: one that begins anew, with gaps, from nothing, by fractions, with odd values.
	"hits_total,job=a": "0 10 30 5 25 45",
	"hits_total,job=b": "100 _ 160 _ _ 400",
	"hits_total,job=c": "_ _ 3 8 _ 13",
	"hits_total,job=d": "0.1 0.2 0.4 0.8 1.6 3.2",
	"hits_total,job=e": "1 NaN 3 4 Inf 6",
	"hits_total,job=f": "7",
	"hits_total,job=g": "5 6 7 stale _ 9",
	"line,v=up": "0 2 4 6 8 10",
	"line,v=down": "5 4 3 2 1 0",
	"line,v=level": "3 3 3 3 3 3",
	"line,v=noisy": "1 4 2 8 5 7",
	"line,v=inf": "Inf Inf Inf Inf Inf Inf",
	"line,v=two": "_ _ _ _ 1 4",
	"pod,name=p-10": "1", "pod,name=p-2": "1", "pod,name=p-1a": "1", "pod,name=p-01": "1", "pod,name=q": "1",
	"when,v=0": "0", "when,v=leap": "1709208000", "when,v=before": "-1", "when,v=nan": "NaN", "when,v=far": "1e15",
	"when,v=new year": "1735689599.9",
};

// Names that need quotes; {"..."} is written as it is.
const quoted = {
	'{"http.requests","host.name"="a b",job="x"}': "1 2 3 4 5 6",
	'{"http.requests","host.name"="c",job="y"}': "10 20 30 40 50 60",
	'{"\u6e29\u5ea6","\u5834\u6240"="k"}': "20 21 22 23 24 25",
	'{"bool",a="b"}': "1 1 1 1 1 1",
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

	// windows of numbers
	...["rate", "increase", "delta", "irate", "idelta", "deriv", "resets", "changes"].flatMap((f) =>
		["hits_total[5m]", "hits_total[6m]", "hits_total[2m]", "hits_total[90s] offset 1m", "line[5m]", "line[4m] @ end()",
			"hits_total[30s]", "line[5m] offset -30s"].map((w) => `${f}(${w})`)),
	...["sum", "avg", "min", "max", "count", "first", "last", "stddev", "stdvar", "present", "mad", "ts_of_first", "ts_of_last",
		"ts_of_min", "ts_of_max"].flatMap((f) => ["hits_total[6m]", "line[3m]", "odd[5m]"].map((w) => `${f}_over_time(${w})`)),
	"predict_linear(line[5m], 600)", "predict_linear(line[5m], -1h)", "predict_linear(line[5m] offset 1m, 0)",
	"predict_linear(hits_total[6m], 4h)", "predict_linear(line[5m:30s], NaN)",
	"double_exponential_smoothing(line[6m], 0.5, 0.1)", "double_exponential_smoothing(line[6m], 1, 0.1)",
	"double_exponential_smoothing(line[6m], 0.1, 0)", "double_exponential_smoothing(nothing[6m], 2, 2)",
	"double_exponential_smoothing(hits_total[6m], 0.99, 0.01)",
	"integral(line[6m])", "integral(line[6m], 0)", "integral(line[6m], 1)", "integral(line[6m], 7)", "integral(hits_total[6m])",
	"quantile_over_time(0.9, line[6m])", "quantile_over_time(2, line[6m])", "quantile_over_time(-1, line[6m])",
	"quantile_over_time(NaN, line[6m])", "quantile_over_time(0.5, odd[6m])", "quantile_over_time(scalar(line{v='up'}) / 20, line[6m])",
	"rate({__name__=~'hits_total|line'}[5m])", "last_over_time({__name__=~'hits_total|line'}[5m])", "absent_over_time(hits_total[1s])",
	"sum(rate(hits_total[5m])) by (job)", "rate(hits_total[5m]) > 0.1", "rate(req[5m])", "increase(line[3m]) + on () group_left () vector(1)",
	"hits_total[2m]", "(hits_total[90s] offset 1m)", "{__name__='line', v=~'u.*'}[3m]", "nothing[5m]",

	// subqueries
	"line[3m:1m]", "line[3m:]", "line[100s:40s]", "line[3m:1m] offset 30s", `line[2m:30s] @ ${T0 + 180}`, "nothing[5m:1m]", "(line * 2)[2m:1m]",
	"sum_over_time(line[5m:1m])", "sum_over_time(line[5m:7s])", "avg_over_time(rate(hits_total[2m])[4m:30s])",
	"max_over_time(sum(line{v!='inf'})[10m:1m])", "rate(hits_total[5m:10s])", "increase(hits_total[5m:1m] offset 1m)",
	"deriv(line[5m:15s])", "max_over_time((time() - timestamp(line))[5m:10s])", "count_over_time(vector(1)[5m:7s])",
	"min_over_time(max_over_time(line[2m:30s])[3m:1m])", `sum_over_time(line[2m:30s] @ ${T0 + 200} offset 10s)`,
	"sum_over_time(line[2m:30s] @ end())", "absent_over_time(nothing{a='b'}[5m:1m])", "absent_over_time(line[5m:1m])",
	"last_over_time(line[5m:1m])", "changes((line > 3)[6m:1m])", "present_over_time((line > 100)[5m:1m])",
	"sum_over_time(count_values('v', line)[3m:1m])", "ts_of_last_over_time(line[95s:20s])", "sum_over_time({__name__=~'line|odd',v='inf'}[2m:1m])",
	"line[10s:1m]", "sum_over_time(line[59s:1m])", "sum_over_time(line[61s:1m])", "avg_over_time(time()[5m:1m])",
	"max_over_time(line{v='up'}[1h:1m]) - on (v) line", "quantile_over_time(0.5, line[5m:1m])", "avg_over_time(vector(step() + range())[2m:1m])",

	// times and dates
	"timestamp(line)", "timestamp(line offset 90s)", `timestamp(line @ ${T0 + 70})`, "timestamp((line))", "timestamp(line + 1)", "timestamp(vector(3))",
	"timestamp(timestamp(line))", "timestamp(nothing)", "timestamp(hits_total) - time()",
	...["minute", "hour", "day_of_week", "day_of_month", "day_of_year", "days_in_month", "month", "year"].flatMap((f) =>
		[`${f}()`, `${f}(when offset 5m)`, `${f}(vector(951782400))`, `${f}(vector(time() + 86400 * 200))`]),
	"step()", "range()", "start() - time()", "end() - start()", "min_of(3, 2)", "max_of(-1, NaN)", "max_of(Inf, NaN)", "pi() * 2",

	// one by one
	...["sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "deg", "rad"]
		.flatMap((f) => [`${f}(odd)`, `${f}(line / 10)`]),

	// which ones
	"limitk(2, line)", "limitk(1, req) by (job)", "limitk(0, line)", "limitk(-3, line)", "limitk(NaN, line)", "limitk(1e30, line)",
	"limitk(2.9, line)", "limit_ratio(1, line)", "limit_ratio(-1, line)", "limit_ratio(0, line)", "limit_ratio(NaN, line)",
	"limit_ratio(0.3, line) or limit_ratio(-0.7, line)", "limit_ratio(0.3, line) and limit_ratio(-0.7, line)",
	"sort_by_label(pod offset 5m, 'name')", "sort_by_label_desc(pod offset 5m, 'name')", "sort_by_label(req, 'job', 'pod')",
	"sort_by_label(req)", "sort_by_label_desc(req, 'missing')",

	// names with quotes
	'{"http.requests"}', '{"http.requests", job="x"}', '{"http.requests", "host.name"=~"a.*"}', '{"http.requests"} * 2',
	'sum by ("host.name") ({"http.requests"})', 'sum without ("host.name", "job") ({"http.requests"})', '{"\u6e29\u5ea6"}', '{"bool"}',
	'max_over_time({"http.requests"}[3m])', '{"http.requests"}[2m:1m]', 'rate({"http.requests"}[3m])', '{"req", job="c"}', '{"req"} == on ("job") {"req"}',
	'{"http.requests"} / on (job) group_left ("host.name") {"http.requests"}', 'count({"host.name"!=""})', '{__name__="http.requests"}',
	'label_replace({"http.requests"}, "host.name", "$1", "host.name", "(.).*")', 'label_join({"http.requests"}, "a.b", "/", "host.name", "job")',
	'count_values("v.w", {"http.requests"})', 'label_replace(vector(1), "", "a", "b", "")', 'absent({"no.such", "a.b"="c"})',

	// durations and numbers
	"5m * 2", "1h30m", "-5m", "line > 4s", "line * 1ms", "sum_over_time(line[180])", "line offset 60", "line offset 0x3c", "line offset -0s",
	"sum_over_time(line[120:60])", `line @ ${T0 / 60}m`, "vector(1d)", "topk(2s, line)", "line[1.5]", "0s", "time() - 5m",
];

// From 0 to 300 s by 60 s.
const range = [
	"req", "abs(req)", "round(req, 2)", "clamp(req, 0, 5)", "req > 3", "req > bool 3", "time() - time()", "vector(7)", "1 + 1",
	"time() - scalar(vector(time()))", "sort_desc(req)", "topk(1, req)", "req @ start()", "req @ end()", "req offset 1m",
	"req offset -1m", "req @ end() offset -1m", "sum by (job) (req)", "quantile(0.5, req)", "stddev(req)",
	'count_values("v", req)', "absent(req > 1e299)", 'absent(nothing{job="a"})', 'label_replace(req, "x", "$1", "job", "(.*)")',
	'label_join(req, "x", "-", "job", "pod")', "req / on (job) group_left lim", "req and on (job) (lim > 2)", "lim unless on (job) req",
	"sum_over_time(req[2m])", "last_over_time(req[1m] offset 1m)", "avg_over_time(req[2m] @ end())", "scalar(req)", "sgn(req)",
	"rate(hits_total[2m])", "increase(hits_total[5m])", "delta(line[90s])", "irate(hits_total[2m])", "deriv(line[3m])",
	"predict_linear(line[3m], 60)", "resets(hits_total[5m])", "timestamp(hits_total)", "hits_total", "limitk(1, line)", "step()", "range()",
	"start()", "end()", "hour()", "minute(vector(time()))", "sort_by_label(line, 'v')", "first_over_time(line[2m])", "5m", "line > 3s",
	"sum_over_time(line[2m:30s])", "avg_over_time(rate(hits_total[2m])[3m:30s])", "max_over_time(line[3m:1m] offset 1m)",
	"sum_over_time(line[2m:1m] @ start())", "sum_over_time(line[2m:1m] @ end())", `sum_over_time(line[2m:50s] @ ${T0 + 130})`,
	"min_over_time(max_over_time(line[2m:30s])[3m:1m])", "count_over_time(hits_total[5m:7s])", "sum_over_time(line[30s:10s])",
	"max_over_time(vector(step())[2m:30s])", "sum_over_time(line[10s:1m])", "last_over_time((line > 3)[2m:1m])", "line[2m:1m]", "line[2m]",
	"absent_over_time(hits_total{job='f'}[1m:30s])", 'max by ("host.name") ({"http.requests"})', "sum_over_time((time() > bool 0)[1m:1m])",
];

// From 0 to 300 s by 7 s, and with gaps between the windows.
const odd_steps = ["sum_over_time(line[30s:10s])", "rate(hits_total[90s])", "avg_over_time(rate(hits_total[2m])[1m:20s])", "increase(line[1m:7s])"];
const far_steps = ["sum_over_time(line[30s:10s])", "count_over_time(line[1m])", "max_over_time(sum_over_time(line[20s:5s])[30s:10s])"];

const rows = [
	...Object.entries(series).map(([key, values]) => {
		const [name, ...labels] = key.split(",");
		return `number 60 ${name}{${labels.map((l) => l.replace(/=(.*)/, '="$1"')).join(",")}} ${values}`;
	}),
	...Object.entries(quoted).map(([labels, values]) => `number 60 ${labels} ${values}`),
	...instant.map((query) => `at 300 ${query}`),
	...range.map((query) => `range 0 300 60 ${query}`),
	...odd_steps.map((query) => `range 0 300 7 ${query}`),
	...far_steps.map((query) => `range 60 300 120 ${query}`),
];

const [dir = mkdtempSync(join(tmpdir(), "epi-oracle-"))] = process.argv.slice(2);
try {
	mkdirSync(dir, { recursive: true });
	copyFileSync(new URL("main.go", import.meta.url), join(dir, "main.go"));
	writeFileSync(join(dir, "go.mod"), `module oracle\n\ngo 1.26\n\nrequire github.com/prometheus/prometheus ${PROMETHEUS}\n`);
	for (const args of [["mod", "tidy"], ["build", "-o", "oracle", "."]])
		execFileSync("go", args, { cwd: dir, stdio: ["ignore", "ignore", "inherit"] });
	const input = process.argv[2] ? undefined : rows.join("\n");
	execFileSync(join(dir, "oracle"), [], { input, stdio: [input === undefined ? "inherit" : "pipe", "inherit", "inherit"] });
} finally {
	if (!process.argv[2])
		rmSync(dir, { recursive: true });
}
