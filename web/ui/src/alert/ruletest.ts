// A unit test of the rule, for `epitool test rules`: profiles in which the value is first below the
// limit, then above it. What they must hold follows from the expression, whose value is computed for
// two stacks. Of expressions that are more than that, the answer is why there is no test.
import { exactName } from "../query/edit";
import { language } from "../query/language";
import { bare, queryChildren, type QueryNode, readQuery, type SelectorNode } from "../query/read";
import { quote } from "../query/text";
import { profileSelectors } from "../query/types";
import { VERSION, type VersionPair, versionPair } from "../query/versions";
import type { Labels, ProfileType } from "../shared/api";
import { parseDuration } from "../shared/timerange";
import { type AlertDraft, INTERVAL_S, PLAIN_NUMBER, summaryOf, type SummaryFormat, yamlText } from "./rule";

export interface Example {
	/** The labels of an element of the answer; null if there is none. */
	metric: Labels | null;
	/** The labels of a series that the selector takes; null if not known. */
	series: Labels | null;
	/** The type of the profiles. */
	type: ProfileType | null;
}

/** A test, or why there is none. */
export type RuleTest = { text: string } | { none: string };

/* ---- the value of an expression ---- */

/** The cost in the function, and of all; or a number. */
type Value = { fn: number; all: number } | number;

class Unread extends Error {}

const ratio = (p: { fn: number; all: number }): number => (p.all ? p.fn / p.all : 0);
const THROUGH = new Set(["sum", "min", "max", "avg", "topk", "bottomk", "sort", "sort_desc"]);

function operate(op: string, a: number, b: number): number {
	if (op === "+") return a + b;
	if (op === "-") return a - b;
	if (op === "*") return a * b;
	if (op === "/") return a / b;
	throw new Unread(`the operator ${op}`);
}

/** The value of `n` if each profile, one a minute, has these costs. */
function valueFor(text: string, n: QueryNode, each: { fn: number; all: number }, delta: boolean): Value {
	const of = (m: QueryNode): Value => valueFor(text, m, each, delta);
	const times = (p: Value, k: number): Value =>
		typeof p === "number" ? p * k : { fn: p.fn * k, all: p.all * k };
	switch (n.type) {
		case "paren":
			return of(n.inner);
		case "number":
			return Number(text.slice(n.start, n.end));
		case "unary":
			return times(of(n.inner), text[n.start] === "-" ? -1 : 1);
		case "selector":
			return times(each, delta && n.range !== null ? n.range / INTERVAL_S : 1);
		case "binary": {
			const [a, b] = [of(n.lhs), of(n.rhs)];
			if (typeof a === "number" && typeof b === "number") return operate(n.op.name, a, b);
			if (typeof b === "number" && "*/".includes(n.op.name)) return times(a, operate(n.op.name, 1, b));
			throw new Unread(`the operator ${n.op.name} of profiles`);
		}
		case "call":
			return called(n.name, n.args, of, delta);
		default:
			throw new Unread("a text");
	}
}

function called(name: string, args: QueryNode[], of: (n: QueryNode) => Value, delta: boolean): Value {
	const profiles = () => {
		const p = of(args[0]);
		if (typeof p === "number") throw new Unread(`${name} of numbers`);
		return p;
	};
	if (name === "merge") return profiles();
	if (name === "rate") {
		const s = bare(args[0]);
		if (s.type !== "selector" || !s.range || !delta) throw new Unread("this rate");
		const p = profiles();
		return { fn: p.fn / s.range, all: p.all / s.range };
	}
	if (name === "total") return profiles().all;
	if (name === "cum" || name === "flat") return profiles().fn;
	if (name === "cum_share" || name === "flat_share") return ratio(profiles());
	if (THROUGH.has(name.toLowerCase()) && args.length) return of(args[args.length - 1]);
	if (name === "focus" || name === "show_from") return profiles();
	throw new Unread(name);
}

/* ---- the profiles ---- */

const calls = (n: QueryNode): (QueryNode & { type: "call" })[] => [
	...(n.type === "call" ? [n] : []),
	...queryChildren(n).flatMap(calls),
];

/** The frames above the function, so that filters keep its stack; throws for patterns. */
function callersAbove(n: QueryNode): string[] {
	return calls(n).flatMap((c) => {
		if (c.name !== "focus" && c.name !== "show_from") return [];
		const pattern = bare(c.args[1]);
		const name = pattern.type === "string" ? exactName(pattern.value) : null;
		if (name === null) throw new Unread(`${c.name} by a pattern`);
		return [name];
	});
}

/** The function in `{function="..."}`. */
export function functionIn(expr: string): string | null {
	const { tree } = readQuery(expr);
	for (const c of tree ? calls(tree) : []) {
		const frames = c.args[1] && bare(c.args[1]);
		if (frames?.type !== "frames") continue;
		const m = /function\s*=\s*("(?:[^"\\]|\\.)*"|`[^`]*`)/.exec(expr.slice(frames.start, frames.end));
		if (m) return m[1][0] === "`" ? m[1].slice(1, -1) : (JSON.parse(m[1]) as string);
	}
	return null;
}

/** The labels of the profiles: those of the element, and those that the matchers want. */
function seriesLabels(s: SelectorNode, metric: Labels, { series }: Example): Labels {
	const out: Labels = {};
	for (const [k, v] of Object.entries(metric))
		if (!["function", "filename", "line", "__name__"].includes(k)) out[k] = v;
	for (const { label, op, value } of s.matchers) {
		if (label in out || label === "__name__") continue;
		const real = op === "=" ? value : series?.[label];
		if (real !== undefined) out[label] = real;
		else if (op === "=~") throw new Unread(`the matcher of ${label}: no series has this label`);
	}
	return out;
}

/** The labels of the answer if nothing was measured yet. */
function likelyMetric(tree: QueryNode, s: SelectorNode, fn: string | null, series: Labels | null): Labels {
	const merge = calls(tree).find((c) => c.name === "merge" && c.modifier?.word === "by");
	const out: Labels = {};
	for (const l of merge?.modifier?.labels ?? []) {
		const value = s.matchers.find((m) => m.label === l && m.op === "=")?.value ?? series?.[l];
		out[l] = value ?? "a";
	}
	if (fn !== null && calls(tree).some((c) => /^(cum|flat)/.test(c.name))) out.function = fn;
	return out;
}

/** Four digits, as templates have them. */
const four = (v: number): string => String(Number(v.toPrecision(4)));
/** The same in the form %.4g of Go: powers of ten below 0.0001 and from 10000 on. */
function general(v: number): string {
	const [digits, power] = v.toExponential(3).split("e");
	const exponent = Number(power);
	if (v === 0 || (exponent >= -4 && exponent < 4)) return four(v);
	const sign = exponent < 0 ? "-" : "+";
	return `${Number(digits)}e${sign}${String(Math.abs(exponent)).padStart(2, "0")}`;
}
const SMALL = ["m", "u", "n", "p", "f", "a", "z", "y"];
const LARGE = ["k", "M", "G", "T", "P", "E", "Z", "Y"];

/** A value as the functions of templates write it. */
export function humanized(v: number, how: SummaryFormat["function"]): string {
	if (how === PLAIN_NUMBER) return general(v);
	if (how === "humanizePercentage") return `${four(v * 100)}%`;
	const base = how === "humanize" ? 1000 : 1024;
	let prefix = "";
	for (let i = 0; i < 8 && Math.abs(v) >= base; i++, v /= base)
		prefix = LARGE[i] + (base === 1024 ? "i" : "");
	if (base === 1000 && v !== 0)
		for (let i = 0; i < 8 && Math.abs(v) < 1; i++, v *= 1000) prefix = SMALL[i];
	return four(v) + prefix;
}

const PARTS = 100000; // of a share
const MOST = 2 ** 61;

/** The values of both stacks for which the expression gives about `want`. */
function stacksFor(text: string, tree: QueryNode, delta: boolean, want: number) {
	const of = (fn: number, other: number) => {
		const v = valueFor(text, tree, { fn, all: fn + other }, delta);
		if (typeof v !== "number") throw new Unread("profiles instead of costs");
		return v;
	};
	if (calls(tree).some((c) => /_share$/.test(c.name))) {
		const part = Math.round(want * PARTS);
		return { fn: part, other: PARTS - part, value: of(part, PARTS - part) };
	}
	const zero = of(0, 0);
	const each = of(1, 0) - zero;
	const fn = Math.max(0, Math.round((want - zero) / each));
	if (!(fn >= 0) || fn > MOST) throw new Unread("this limit");
	return { fn, other: 0, value: of(fn, 0) };
}

/** Whether `epitool test rules` takes a type for a level. */
const isLevel = (t: ProfileType): boolean =>
	t.sample_type.startsWith("inuse_") ||
	(["memory", "goroutine", "goroutineleak", "threadcreate"].includes(t.name) && !t.sample_type.startsWith("alloc_"));

/** The labels of the profiles, and the stacks as text with their values. */
interface TestProfiles {
	labels: Labels;
	folded: string[];
}

/** In which minutes the value is below the limit, and above. */
interface TestMoments {
	before: number;
	until: number;
	wait: number;
}

function momentsOf(d: AlertDraft, window: number): TestMoments {
	const [range, wait] = [window, parseDuration(d.wait) ?? 0].map((x) => Math.ceil(x / INTERVAL_S));
	const before = range + 5;
	return { before, until: before + range + wait + 1, wait };
}

const valuesOf = (m: TestMoments, a: number, b: number) => `${a}x${m.before - 1} ${b}x${m.until - m.before}`;

function printTest(d: AlertDraft, type: ProfileType, inputs: TestProfiles[], m: TestMoments, metric: Labels, value: number): string {
	const quiet = (minute: number) => `      - eval_time: ${minute}m\n        alertname: ${yamlText(d.name)}\n`;
	const selector = (labels: Labels) => Object.entries(labels).map(([k, v]) => `${k}=${quote(v)}`).join(", ");
	const profiles = inputs.map(
		({ labels, folded }) =>
			`      - series: ${yamlText(`${type.name}{${selector(labels)}}`)}\n` +
			`        type: ${[type.sample_type, type.sample_unit, type.period_type, type.period_unit].join(":")}\n` +
			`        folded: |-\n${folded.map((l) => `          ${l}\n`).join("")}`,
	);
	const expected = Object.entries({ ...metric, ...d.labels })
		.filter(([k]) => k !== "__name__")
		.map(([k, v]) => `              ${yamlText(k)}: ${yamlText(v)}\n`)
		.join("");
	return (
		`rule_files: [${yamlText(`../${d.name}.yml`)}]\nevaluation_interval: 1m\ntests:\n` +
		`  - name: ${yamlText(`above ${d.over}${m.wait ? ` for ${d.wait}` : ""}`)}\n    interval: 1m\n` +
		`    input_profiles:\n${profiles.join("")}` +
		`    alert_rule_test:\n` +
		`      # Below the limit; then above it, but not for long enough; then it fires.\n` +
		quiet(m.before) +
		(m.wait ? quiet(m.before + m.wait) : "") +
		quiet(m.until) +
		`        exp_alerts:\n          - exp_labels:\n${expected || "              {}\n"}` +
		`            exp_annotations:\n              summary: ` +
		`${yamlText(summaryOf(d).filled(metric, humanized(value, d.format.function)))}\n`
	);
}

/** The type, if profiles of it can be written down. */
function testableType(type: ProfileType | null): ProfileType {
	if (!type) throw new Unread("an unknown profile type");
	if (isLevel(type) === type.delta) throw new Unread("this profile type");
	return type;
}

/** The function that costs, and the frames above it that filters want. */
function testedStack(d: AlertDraft, tree: QueryNode, metric: Labels | null): string[] {
	const fn = functionIn(d.expr) ?? metric?.function ?? "main";
	// Stacks as text end a frame there; and template arguments of C++ are not stored.
	if (fn.includes(";") || /"\}$/.test(fn) || (fn.includes("::") && /[<(]/.test(fn)))
		throw new Unread("a function with this name");
	return [...callersAbove(tree), fn].filter((f, i, all) => i === 0 || f !== all[i - 1]);
}

/** The same stack with another function in it. */
const besides = (stack: string[]): string =>
	[...stack.slice(0, -1), stack[stack.length - 1] === "other" ? "rest" : "other"].join(";");

function write(d: AlertDraft, example: Example): string {
	const { tree } = readQuery(d.expr);
	const selectors = tree ? profileSelectors(tree) : [];
	const [s] = selectors;
	if (!tree || !language().functions.length) throw new Unread("this expression");
	if (readQuery(d.expr).selectors.length !== 1 || !s) throw new Unread("more than one selector");
	if (s.offset || s.at) throw new Unread("an offset");
	const type = testableType(example.type);
	const over = Number(d.over);
	const share = calls(tree).some((c) => /_share$/.test(c.name));
	if (!(over > 0) || (share && over >= 1)) throw new Unread("a limit of 0 or less, or a share of 1 or more");
	const stack = testedStack(d, tree, example.metric);
	const low = stacksFor(d.expr, tree, type.delta, over / 2);
	const high = stacksFor(d.expr, tree, type.delta, share ? (1 + over) / 2 : over * 2);
	if (!(low.value <= over) || !(high.value > over)) throw new Unread("this limit");
	const metric = example.metric ?? likelyMetric(tree, s, functionIn(d.expr), example.series);
	const m = momentsOf(d, s.range ?? 0);
	const folded = [`${stack.join(";")} ${valuesOf(m, low.fn, high.fn)}`];
	if (share) folded.push(`${besides(stack)} ${valuesOf(m, low.other, high.other)}`);
	return printTest(d, type, [{ labels: seriesLabels(s, metric, example), folded }], m, metric, high.value);
}

/** The parts of the newer version below and above the limit, and the part of the older one all the time. */
function partsOf({ how }: VersionPair, over: number): { base: number; low: number; high: number } {
	const part = (v: number) => Math.round(v * PARTS);
	if (how === "points") {
		const base = Math.min(0.1, (1 - over) / 2);
		return { base: part(base), low: part(base + over / 2), high: part((base + over + 1) / 2) };
	}
	const base = Math.min(0.1, 0.4 / over);
	return { base: part(base), low: part((base * over) / 2), high: part((base * over + 1) / 2) };
}

/** Of one version against another: the older one stays as it is, the newer one rises. */
function writePair(d: AlertDraft, example: Example, pair: VersionPair): string {
	const { tree, selectors } = readQuery(d.expr);
	if (!tree || selectors.length !== 2 || profileSelectors(tree).length !== 2) throw new Unread("this expression");
	const [s] = profileSelectors(tree);
	if (selectors.some((x) => x.offset || x.at || x.range !== s.range)) throw new Unread("an offset");
	const type = testableType(example.type);
	const over = Number(d.over);
	if (!(over > 0) || (pair.how === "points" && over >= 1)) throw new Unread("this limit");
	const { base, low, high } = partsOf(pair, over);
	const value = (fn: number) => (pair.how === "points" ? fn / PARTS - base / PARTS : fn / PARTS / (base / PARTS));
	if (base < 1 || !(value(low) <= over) || !(value(high) > over)) throw new Unread("this limit");
	const metric = example.metric ?? likelyMetric(tree, s, functionIn(d.expr), example.series);
	const stack = testedStack(d, tree, example.metric);
	const m = momentsOf(d, s.range ?? 0);
	const input = (version: string, a: number, b: number): TestProfiles => ({
		labels: { ...seriesLabels(s, metric, example), [VERSION]: version },
		folded: [`${stack.join(";")} ${valuesOf(m, a, b)}`, `${besides(stack)} ${valuesOf(m, PARTS - a, PARTS - b)}`],
	});
	const inputs = [input(pair.next, low, high), input(pair.base, base, base)];
	return printTest(d, type, inputs, m, metric, value(high));
}

export function ruleTest(d: AlertDraft, example: Example): RuleTest {
	try {
		const pair = versionPair(d.expr);
		return { text: pair ? writePair(d, example, pair) : write(d, example) };
	} catch (e) {
		if (!(e instanceof Unread)) throw e;
		return { none: `No rule test for ${e.message}. Examples: examples/rules/tests.` };
	}
}
