// Parts of a query as text: strings, regular expressions and selectors.

export type MatchOp = "=" | "!=" | "=~" | "!~";
export const MATCH_OPS: MatchOp[] = ["=", "!=", "=~", "!~"];

export interface Matcher {
	label: string;
	op: MatchOp;
	value: string;
}
export interface Selector {
	name: string;
	matchers: Matcher[];
}

const ESCAPES: Record<string, string> = {
	...{ a: "\x07", b: "\b", f: "\f", n: "\n", r: "\r", t: "\t", v: "\v" },
};
const ESCAPE = /(?:\\(?:x[0-9a-fA-F]{2}|[0-7]{3}))+|\\(?:u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[\s\S])/g;

/** `\xc3\xa4`: bytes of UTF-8. */
function bytesOf(escapes: string): string {
	const bytes = escapes
		.slice(1)
		.split("\\")
		.map((e) => (e[0] === "x" ? parseInt(e.slice(1), 16) : parseInt(e, 8)));
	return new TextDecoder().decode(new Uint8Array(bytes));
}

/** The content of a string of the language; escapes are Go's. */
export function unquote(s: string): string {
	const body = s.slice(1, -1);
	if (s[0] === "`") return body;
	return body.replace(ESCAPE, (e) => {
		if (/^\\(x..|[0-7]{3})/.test(e)) return bytesOf(e);
		if (!/^\\[uU]./.test(e)) return ESCAPES[e[1]] ?? e[1];
		const code = parseInt(e.slice(2), 16);
		return code <= 0x10ffff ? String.fromCodePoint(code) : "\ufffd";
	});
}

/** A regular expression that matches exactly this text. */
export const escapeRegexp = (s: string): string => s.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&");

export function quote(s: string): string {
	return (
		'"' +
		s
			.replace(/[\\"]/g, "\\$&")
			.replace(/\n/g, "\\n")
			.replace(/\t/g, "\\t")
			.replace(/\r/g, "\\r") +
		'"'
	);
}

/** The name of a label as it is written: in quotes if it is no word. */
export const formatLabel = (name: string): string =>
	/^[A-Za-z_]\w*$/.test(name) && !/^(without|inf|nan)$/i.test(name) ? name : quote(name);

/** Words that name no series without quotes. */
const RESERVED = /^(on|ignoring|group_left|group_right|bool|atan2|inf|nan)$/i;

export function formatSelector(s: Selector): string {
	const bare = /^[A-Za-z_:][\w:]*$/.test(s.name) && !RESERVED.test(s.name);
	const m = s.matchers.map((x) => `${formatLabel(x.label)}${x.op}${quote(x.value)}`);
	if (s.name && !bare) return `{${[quote(s.name), ...m].join(",")}}`;
	return m.length || !s.name ? `${s.name}{${m.join(",")}}` : s.name;
}

export interface Span {
	start: number;
	end: number;
}

/** `text` with parts replaced; the spans are in order and do not overlap. */
export function splice(text: string, parts: (Span & { insert: string })[]): string {
	let out = "";
	let from = 0;
	for (const p of parts) {
		out += text.slice(from, p.start) + p.insert;
		from = p.end;
	}
	return out + text.slice(from);
}
