// The limit of an alert: the default, numbers as people type them, and steps of the handle.
import type { MatrixElement } from "../shared/api";
import { parseSample } from "../shared/units";

const ABOVE = 1.5; // of what is common
const COMMON = 0.95; // the percentile
const ROUND = [1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10];
const SHARE_MAX = 0.95;

/** The base that numbers in a unit are round in. */
export const limitBase = (unit: string): 1000 | 1024 => (unit === "bytes" ? 1024 : 1000);

/** The power of the base below `v`, 1 for small numbers of bytes. */
function scaleOf(v: number, base: number): number {
	if (base === 1000) return 1;
	return base ** Math.max(0, Math.floor(Math.log(v) / Math.log(base)));
}

/** Without the noise of binary fractions: 0.30000000000000004 is 0.3. */
const plain = (v: number): number => Number(v.toPrecision(12));

/** The round number nearest to `v`, which is more than 0: 1.5, 20, 64 MiB. */
export function roundNumber(v: number, base: number): number {
	const scale = scaleOf(v, base);
	const power = 10 ** Math.floor(Math.log10(v / scale));
	const near = ROUND.reduce((a, b) =>
		Math.abs(Math.log(b * power * scale) - Math.log(v)) <
		Math.abs(Math.log(a * power * scale) - Math.log(v))
			? b
			: a,
	);
	return plain(near * power * scale);
}

/** The value that this part of the numbers is not above; null if there are none. */
function percentile(values: number[], part: number): number | null {
	const sorted = values.filter(Number.isFinite).sort((a, b) => a - b);
	return sorted.length ? sorted[Math.ceil(part * sorted.length) - 1] : null;
}

/**
 * About one and a half times what is common: the largest 95th percentile of the series. A share gets
 * at most 95 %, or what lies between that percentile and all. null without values above 0.
 */
export function defaultLimit(matrix: MatrixElement[], unit: string): number | null {
	const common = matrix.map((m) => percentile(m.values.map(([, v]) => parseSample(v)), COMMON));
	const top = Math.max(0, ...common.filter((v) => v !== null));
	if (top <= 0) return null;
	if (unit === "ratio" && ABOVE * top > SHARE_MAX)
		return top < SHARE_MAX - 0.01 ? SHARE_MAX : plain((1 + Math.floor(top * 100) / 100) / 2);
	return roundNumber(ABOVE * top, limitBase(unit));
}

/** The distance of two places of the handle on a scale that ends at `top`: about a 200th of it. */
export function limitStep(top: number, unit: string): number {
	const scale = scaleOf(top / 100, limitBase(unit));
	return scale * 10 ** Math.floor(Math.log10(top / 100 / scale));
}

/** `v` on a step of the handle, and not below the first one. */
export function onStep(v: number, top: number, unit: string): number {
	const step = limitStep(top, unit);
	return plain(Math.max(1, Math.round(v / step)) * step);
}

const SUFFIX = /^(-?[0-9.]+(?:e[+-]?\d+)?) ?([kmgtp]?)(i?)(b?)(%?)$/i;

/** `1.5`, `20%`, `512MiB`, `3k`: a number as people type it; null if it is none. */
export function parseLimit(text: string): number | null {
	const m = SUFFIX.exec(text.trim());
	if (!m) return null;
	const [, number, prefix, binary, bytes, percent] = m;
	if (prefix === "m" && !bytes) return null; // a thousandth, or a million
	const power = prefix ? "kmgtp".indexOf(prefix.toLowerCase()) + 1 : 0;
	const v = Number(number) * (binary || bytes ? 1024 : 1000) ** power;
	return number && Number.isFinite(v) ? plain(percent ? v / 100 : v) : null;
}

/** Decimal, as YAML and the query language read it. */
export const limitText = (v: number): string => String(plain(v));
