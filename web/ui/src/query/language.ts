// The query language, from the server (api/v1/language): the only table of functions, operators and
// keywords in the page. It is loaded once, before the first page is shown.

export interface LanguageFunction {
	name: string;
	usage: string;
	arguments: string;
	/** `profiles`, `costs`, `profiles or costs`, `scalar`, `table`. */
	returns: string;
	help: string;
	/** For each argument: its types, how it is written (`window`), what a string means (`label`). */
	argumentTypes: string[][];
	/** How many arguments may be left out; -1: any number may follow, like the last one. */
	variadic: number;
	/** The modifiers that it takes, of `by`, `without`, `on`, `ignoring`. */
	modifiers: string[];
	/** Whether `by` may name fields of frames. */
	byFrames: boolean;
}

export interface Operator {
	name: string;
	kind: "arithmetic" | "comparison" | "set";
	/** A greater number binds more strongly. */
	binds: number;
	/** Right associative: `a ^ b ^ c` is `a ^ (b ^ c)`. */
	right: boolean;
}

export interface Language {
	functions: LanguageFunction[];
	aggregations: LanguageFunction[];
	frameFields: string[];
	keywords: string[];
	/** Keywords that take a list of labels in parentheses. */
	labelLists: string[];
	/** Keywords that are numbers. */
	numbers: string[];
	operators: Operator[];
}

/** Before the server's answer. */
export const NO_LANGUAGE: Language = {
	functions: [],
	aggregations: [],
	frameFields: [],
	keywords: [],
	labelLists: [],
	numbers: [],
	operators: [],
};

interface Index {
	language: Language;
	functions: Map<string, LanguageFunction>;
	aggregations: Map<string, LanguageFunction>;
	operators: Map<string, Operator>;
	keywords: Set<string>;
	labelLists: Set<string>;
	numbers: Set<string>;
}

const named = <T extends { name: string }>(list: T[]) => new Map(list.map((x) => [x.name, x]));

function indexOf(language: Language): Index {
	return {
		language,
		functions: named([...language.functions, ...language.aggregations]),
		aggregations: named(language.aggregations),
		operators: named(language.operators),
		keywords: new Set(language.keywords),
		labelLists: new Set(language.labelLists),
		numbers: new Set(language.numbers),
	};
}

let known = indexOf(NO_LANGUAGE);

export function installLanguage(language: Language): void {
	known = indexOf(language);
}

export const language = (): Language => known.language;

/** Finds aggregations in any case, functions as written, like the server. */
export const functionNamed = (name: string): LanguageFunction | undefined =>
	known.functions.get(name) ?? known.aggregations.get(name.toLowerCase());

/** Finds operators in any case. */
export const operatorNamed = (text: string): Operator | undefined =>
	known.operators.get(text.toLowerCase());
export const isKeyword = (text: string): boolean => known.keywords.has(text.toLowerCase());
export const isNumber = (text: string): boolean => known.numbers.has(text.toLowerCase());
/** Whether a list of labels in parentheses may follow: by, on, group_left. */
export const takesLabels = (text: string): boolean => known.labelLists.has(text.toLowerCase());

/** The types of argument `i`; [] if unknown. If any number may follow, the last one repeats. */
export function argumentTypes(name: string, i: number): string[] {
	const f = functionNamed(name);
	if (!f) return [];
	const last = f.argumentTypes.length - 1;
	return f.argumentTypes[f.variadic < 0 ? Math.min(i, last) : i] ?? [];
}

/** `frames` for filters by function (focus), `tags` for filters by label (tagfocus), else null. */
export function filterKind(name: string): "frames" | "tags" | null {
	const what = argumentTypes(name, 1);
	return what.includes("functions") ? "frames" : what.includes("tags") ? "tags" : null;
}
