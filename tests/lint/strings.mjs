#!/usr/bin/env node
// Prints the strings that users read, one a line: "FILE:LINE: KIND: text". Node lists the strings of the page and of
// the C sources: strings.mjs [TREE [MODULES]]. MODULES has the package `typescript` (build/ui-src/node_modules).
// A value in a text is {} on the page and stays a conversion (%s) in C.
//
// Kinds: page (text, attributes, messages), error (an argument of a function that takes a message),
// text (any other literal of C that has three words: help, warnings, reasons), log (messages of the log).
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));

/** Functions of C that take a message, beside those that are declared PRINTF_LIKE. */
const MESSAGES = /^(api_error|http_text|eval_info|querier_info|yaml_warn|arena_fail|err_nomem|grpc_fail|otlp_reject)$/;
/** PRINTF_LIKE functions that build any text. */
const BUILDERS = /^(buf_printf|arena_printf|reading_printf|head_where|script_fault|town_failed)$/;

export function treeFiles(tree) {
	const out = execFileSync(join(here, "../files.sh"), { cwd: tree, maxBuffer: 1 << 26 });
	return out.toString().split("\0").filter(Boolean);
}

// ---------------------------------------------------------------------------------------------------
// C

/** Tokens of C: {kind: "name" | "text" | "mark", value, line}. Comments and directives are left out. */
export function cTokens(source) {
	const token =
		/(\n)|[ \t\r\f]+|\/\/[^\n]*|\/\*[\s\S]*?\*\/|^#(?:[^\n\\]|\\[\s\S])*|([A-Za-z_]\w*)|"((?:[^"\\\n]|\\[\s\S])*)"|'(?:[^'\\\n]|\\.)*'|(\d[\w.]*|[\s\S])/gmy;
	const tokens = [];
	let line = 1;
	for (let m; (m = token.exec(source)); ) {
		if (m[2] !== undefined) tokens.push({ kind: "name", value: m[2], line });
		else if (m[3] !== undefined) tokens.push({ kind: "text", value: m[3], line });
		else if (m[4] !== undefined) tokens.push({ kind: "mark", value: m[4], line });
		line += m[0].split("\n").length - 1;
	}
	return tokens;
}

const ESCAPES = { n: " ", t: " ", r: " ", '"': '"', "\\": "\\", "'": "'" };
const cText = (raw) => raw.replace(/\\([ntr"\\'])/g, (_, c) => ESCAPES[c]).replace(/\\\n/g, "");

/** Names that are declared PRINTF_LIKE: the last name before "(" since the last ";" or "}". */
export function printfLike(source) {
	const names = [];
	for (const m of source.matchAll(/(\w+)\([^;{}]*?\)\s*(?:PRINTF_LIKE|__attribute__\(\(format)/g)) names.push(m[1]);
	return names.filter((n) => !BUILDERS.test(n) && n !== "define");
}

const words = (text) => text.match(/(?<![\w%])[A-Za-z][a-z]+(?![\w(=])/g)?.length ?? 0;

export function cStrings(source, takesMessage) {
	const tokens = cTokens(source);
	const found = [];
	const calls = []; // names of the calls that are open, "" for other parentheses
	for (let i = 0; i < tokens.length; i++) {
		const t = tokens[i];
		if (t.value === "(" && t.kind === "mark") {
			const before = tokens[i - 1];
			calls.push(before?.kind === "name" ? before.value : "");
		} else if (t.value === ")" && t.kind === "mark") calls.pop();
		else if (t.kind === "mark" && (t.value === "{" || t.value === "}")) calls.length = 0;
		if (t.kind !== "text") continue;
		let text = cText(t.value);
		// PRIu64 and string constants between literals count as a value.
		for (;;) {
			const [a, b] = [tokens[i + 1], tokens[i + 2]];
			if (a?.kind === "text") i++;
			else if (a?.kind === "name" && /^[A-Z]/.test(a.value) && (b?.kind === "text" || /^PRI/.test(a.value))) {
				text += /^PRI/.test(a.value) ? "d" : "%s";
				i++;
				continue;
			} else break;
			text += cText(tokens[i].value);
		}
		const message = calls.some((c) => takesMessage(c));
		const log = calls.some((c) => /^log_/.test(c));
		if (log ? !/\s/.test(text) : message ? !/[a-z]{2}/.test(text) : words(text) < 3) continue;
		found.push({ line: t.line, kind: log ? "log" : message ? "error" : "text", text });
	}
	return found;
}

// ---------------------------------------------------------------------------------------------------
// The page

/** Attributes that hold names of styles, paths or types: nobody reads them. */
const UNREAD = new Set(
	("class className d viewBox href type role id for style key rel target fill stroke name autocomplete autoComplete " +
		"inputMode enterkeyhint transform points mode accept method action xmlns").split(" "),
);
const READ = /^(title|aria-label|aria-description|placeholder|alt|label|hint|text|heading|empty|note|unit|what)$/;

const squeeze = (text) => text.replace(/\s+/g, " ").trim();

export function pageStrings(ts, file, source) {
	const tree = ts.createSourceFile(file, source, ts.ScriptTarget.Latest, true, ts.ScriptKind.TSX);
	const found = [];
	const add = (node, text) => {
		const line = tree.getLineAndCharacterOfPosition(node.getStart(tree)).line + 1;
		found.push({ line, kind: "page", text: squeeze(text) });
	};
	const template = (node) =>
		node.head.text + node.templateSpans.map((s) => `{}${s.literal.text}`).join("");
	const literal = (node) =>
		ts.isStringLiteralLike(node) ? node.text : ts.isTemplateExpression(node) ? template(node) : null;
	const isElement = (n) => ts.isJsxElement(n) || ts.isJsxFragment(n);

	/** The text of an element, its inner elements in it. */
	const elementText = (node) => {
		let text = "";
		for (const child of node.children) {
			if (ts.isJsxText(child)) text += child.containsOnlyTriviaWhiteSpaces ? "" : child.text.replace(/\s*\n\s*/g, " ");
			else if (isElement(child)) text += elementText(child);
			else if (ts.isJsxExpression(child) && child.expression) text += literal(child.expression) ?? "{}";
			else if (ts.isJsxSelfClosingElement(child)) text += "{}";
		}
		return text;
	};
	const hasOwnText = (node) =>
		node.children.some(
			(c) =>
				(ts.isJsxText(c) && /[A-Za-z]{2}/.test(c.text)) ||
				(ts.isJsxExpression(c) && c.expression && /[A-Za-z]{2}/.test(literal(c.expression) ?? "")),
		);
	const compares = (node) => {
		const { parent } = node;
		if (ts.isBinaryExpression(parent))
			return /^(===|!==|==|!=|in)$/.test(parent.operatorToken.getText(tree));
		return (
			ts.isCaseClause(parent) ||
			ts.isLiteralTypeNode(parent) ||
			ts.isImportDeclaration(parent) ||
			ts.isExportDeclaration(parent) ||
			ts.isElementAccessExpression(parent) ||
			(ts.isPropertyAssignment(parent) && parent.name === node)
		);
	};
	const visit = (node, inText) => {
		let inside = inText;
		if (ts.isJsxAttribute(node)) {
			const name = node.name.getText(tree);
			if (UNREAD.has(name) || /^(data-|on[A-Z])/.test(name) === true) {
				if (!/^on[A-Z]/.test(name)) return;
			} else if (node.initializer && ts.isStringLiteral(node.initializer)) {
				if (READ.test(name) || /[A-Za-z]\s/.test(node.initializer.text)) add(node, node.initializer.text);
				return;
			}
		} else if (isElement(node)) {
			if (!inText && hasOwnText(node)) {
				add(node.openingElement ?? node, elementText(node));
				inside = true;
			}
		} else if (ts.isJsxExpression(node) && ts.isJsxAttribute(node.parent)) inside = false;
		else if (ts.isJsxExpression(node)) {
			if (node.expression && literal(node.expression) !== null && inText) {
				ts.forEachChild(node.expression, (c) => visit(c, false));
				return;
			}
			inside = false;
		} else {
			const text = literal(node);
			if (text !== null && !compares(node) && /^[A-Z][a-z]+[.:…]?$|[A-Za-z,.:;)}]\s+\S|\s[A-Za-z(]{3,}/.test(text)) add(node, text);
		}
		ts.forEachChild(node, (c) => visit(c, inside));
	};
	visit(tree, false);
	return found.filter((s) => /[A-Za-z]{2}/.test(s.text));
}

// ---------------------------------------------------------------------------------------------------

const ofC = (f) => /\.(c|h|cc|y|re)$/.test(f) && !/^(tests|examples)\//.test(f);
const ofPage = (f) => /^web\/ui\/src\/.*\.tsx?$/.test(f) && !/\.test\.tsx?$|\/testing\.ts$/.test(f);

export function allStrings(tree, modules) {
	const ts = createRequire(join(modules, "x.js"))("typescript");
	const files = treeFiles(tree);
	const source = (f) => readFileSync(join(tree, f), "utf8");
	const sinks = new Set(files.filter(ofC).flatMap((f) => printfLike(source(f))));
	const takesMessage = (name) => sinks.has(name) || MESSAGES.test(name);
	const list = [];
	for (const f of files) {
		const strings = ofC(f) ? cStrings(source(f), takesMessage) : ofPage(f) ? pageStrings(ts, f, source(f)) : [];
		for (const s of strings) list.push({ file: f, ...s, text: squeeze(s.text) });
	}
	return list;
}

if (process.argv[1] && resolve(process.argv[1]) === fileURLToPath(import.meta.url)) {
	const tree = resolve(process.argv[2] ?? ".");
	const modules = resolve(process.argv[3] ?? join(here, "../../build/ui-src/node_modules"));
	const lines = allStrings(tree, modules).map((s) => `${s.file}:${s.line}: ${s.kind}: ${s.text}\n`);
	process.stdout.write(lines.join(""));
}
