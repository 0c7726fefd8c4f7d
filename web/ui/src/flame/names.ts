// Readable names of functions. The card shows the full name; a frame has room only for what differs
// from its neighbours: no arguments, no template arguments, no hashes.
//
//   tidyName   the whole name without what nobody reads: encoding/json.(*Decoder).Decode
//   shortName  and without where it lives: json.(*Decoder).Decode, DBImpl::Write, HashMap.put
//   bareName   and without its package, which the colour tells: (*Decoder).Decode
//   packageOf  that package, module, crate or namespace

const RUST_HASH = /::h[0-9a-f]{16}$/;
/** Suffixes that compilers and linkers add for clones and versions. */
const CLONES = /( \[clone [^\]]*\])+$|(\.(constprop|isra|part|cold|lto_priv|llvm)(\.\d+)?)+$/;
const SYMBOL_VERSION = /@@?[A-Z][A-Za-z]*_[\w.]+$/;
const OPERATOR =
	/^operator(\s*\(\)|\s*\[\]|\s*->\*?|\s*<=>|\s*<<=?|\s*>>=?|\s*[<>]=?|\s*[^\s\w(<]+)/;
const PREFIXES = /^(non-virtual thunk to |virtual thunk to |vtable for |guard variable for )+/;
const OPEN = "<([{";
const CLOSE = ">)]}";

/** The index behind the bracket that closes the one at `i`; the end of the text if none does. */
function behind(s: string, i: number): number {
	let depth = 0;
	for (; i < s.length; i++) {
		if (s.startsWith("->", i)) i++;
		else if (OPEN.includes(s[i])) depth++;
		else if (CLOSE.includes(s[i]) && --depth === 0) return i + 1;
	}
	return s.length;
}

/** T of `<T as Trait>`, `<T>`, and of references and pointers to T. */
function receiver(inside: string): string {
	let depth = 0;
	let end = inside.length;
	for (let i = 0; i < inside.length; i++) {
		if (inside.startsWith("->", i)) i++;
		else if (OPEN.includes(inside[i])) depth++;
		else if (CLOSE.includes(inside[i])) depth--;
		else if (depth === 0 && inside.startsWith(" as ", i)) {
			end = i;
			break;
		}
	}
	return tidyNamespaced(
		inside.slice(0, end).replace(/^((&('\w+ )?|\*)(mut |const )?|dyn )+/, ""),
	);
}

/** C++ and Rust: shortens brackets to `<…>`, removes arguments and the return type. */
function tidyNamespaced(name: string): string {
	let out = "";
	let i = 0;
	let word = 0; // where the last word of `out` begins; the return type is before it
	let stripped = false;
	while (i < name.length) {
		const rest = name.slice(i);
		const op = /(^|[^\w])$/.test(out) ? OPERATOR.exec(rest) : null;
		if (op) {
			out += op[0];
			i += op[0].length;
			if (name[i] === " " && /^operator\s*$/.test(op[0])) out += name[i++];
			continue;
		}
		const c = name[i];
		if (rest.startsWith("(anonymous namespace)")) {
			out += "(anon)";
			i += 21;
		} else if (c === "<") {
			const end = behind(name, i);
			// `<T as Trait>::f` begins with its receiver; elsewhere brackets hold arguments.
			if (/(^|[\s:])$/.test(out) && name.startsWith("::", end) && !out.endsWith("::"))
				out += receiver(name.slice(i + 1, end - 1));
			else if (out.endsWith("::")) out = out.slice(0, -2) + "<…>";
			else out += "<…>";
			i = end;
		} else if (c === "{") {
			const end = behind(name, i);
			const inner = name.slice(i, end).replace(/^\{\{(.*)\}\}$/, "{$1}");
			out += inner.replace(/^(\{(?:lambda|unnamed type|closure)[^(#}]*).*?(#\d+)?\}$/, "$1$2}");
			i = end;
		} else if (c === "(" && out.length > word) {
			i = behind(name, i);
			stripped = true;
			const tail = /^( const| volatile| noexcept| &&?)+/.exec(name.slice(i));
			if (tail) i += tail[0].length;
		} else if (c === "[" && out.length > word) {
			i = behind(name, i); // [abi:cxx11]
		} else if (c === " " && name[i + 1] === "<") {
			i++; // operator<< <char>
		} else if (c === " " && !/operator( (new|delete))?$/.test(out)) {
			out += c;
			word = out.length;
			i++;
		} else {
			out += c;
			i++;
		}
	}
	const returns = stripped && /[(<]/.test(name) && !/\boperator /.test(out);
	return (returns ? out.slice(word) : out).trim() || name;
}

const isGo = (name: string): boolean => /\.\(\*?\w/.test(name) || /^[\w./~%-]+\[/.test(name);

/** The name without parts that only make it long. */
export function tidyName(full: string): string {
	const name = full.replace(RUST_HASH, "").replace(CLONES, "").replace(SYMBOL_VERSION, "");
	if (name === "" || name.startsWith("[")) return name || full; // [kernel], [unknown]
	if (isGo(name) && !name.includes("::")) return tidyGo(name);
	const thunk = PREFIXES.exec(name)?.[0] ?? "";
	if (name.includes("::") || /^[^/]*\w\s?(<.*>)?\(.*\)[^)]*$/.test(name))
		return tidyJava(tidyNamespaced(name.slice(thunk.length)));
	return tidyJava(name);
}

/** Type arguments may hold whole packages. */
function tidyGo(name: string): string {
	let out = "";
	for (let i = 0; i < name.length; ) {
		if (name[i] === "[") {
			out += "[…]";
			i = behind(name, i);
		} else {
			out += name[i++];
		}
	}
	return out;
}

/** Removes Java's descriptors and the numbers of its generated classes. */
function tidyJava(name: string): string {
	return name
		.replace(/^L([\w/$]+);::/, "$1::")
		.replace(/(\$\$Lambda)[$\d./x]*[0-9a-f]*(?=[.:]|$)/, "$1");
}

/** Its head: as far as brackets may not begin. */
function head(tidy: string): string {
	const at = tidy.slice(1).search(/[[(<{]/);
	return at >= 0 ? tidy.slice(0, at + 1) : tidy;
}

/** The package of a Java name: lower case words before a class (java.util, org/example). */
const JAVA = /^((?:[a-z_]\w*\.){2,}|(?:[a-z_]\w*\/)+)(?=[A-Z][\w$]*(\.|::))/;

function javaPackage(tidy: string): string {
	return JAVA.exec(tidy)?.[1].slice(0, -1) ?? "";
}

/** The package, module or namespace of a function. */
export function packageOf(full: string): string {
	const tidy = tidyName(full);
	if (tidy.startsWith("[")) return tidy;
	const java = javaPackage(tidy);
	if (java) return java;
	if (tidy.includes("::")) return tidy.startsWith("(anon)") ? "(anon)" : first(tidy);
	const name = head(tidy);
	if (name.endsWith(".")) return name.slice(0, -1); // pkg.(*T).Method
	const slash = name.lastIndexOf("/");
	const dot = name.indexOf(".", slash + 1);
	if (dot > 0 && !name.startsWith("/")) return name.slice(0, dot);
	if (slash >= 0) return name.slice(slash + 1); // a mapping or a file
	const under = name.indexOf("_", 1);
	return under > 0 ? name.slice(0, under) : name; // C: head_append is of head
}

const first = (tidy: string): string => tidy.slice(0, tidy.indexOf("::")).replace(/<…>$/, "");

/** The last parts of a::b::C::f: class, function, and anything inside the function. */
function lastParts(tidy: string): string {
	const parts = tidy.split("::");
	let n = 1;
	while (n < parts.length && /^([{(]|operator)/.test(parts[parts.length - n])) n++;
	return parts.slice(-n - 1).join("::");
}

/** The name without the directory of its package: json.Marshal, DBImpl::Write, HashMap.put. */
export function shortName(full: string): string {
	const tidy = tidyName(full);
	const java = javaPackage(tidy);
	if (java) return tidy.slice(java.length + 1);
	if (tidy.includes("::")) return lastParts(tidy);
	return tidy.slice(head(tidy).lastIndexOf("/") + 1);
}

/** The name within its package: (*Decoder).Decode. The colour shows the package. */
export function bareName(full: string): string {
	const short = shortName(full);
	const pkg = packageOf(full);
	const last = pkg.slice(pkg.lastIndexOf("/") + 1);
	for (const mark of [".", "::"])
		if (short.startsWith(last + mark)) return short.slice(last.length + mark.length);
	return short;
}

/** The function alone: Decode of (*Decoder).Decode. */
function methodName(bare: string): string {
	const at = bare.lastIndexOf(").");
	if (at >= 0) return bare.slice(at + 2);
	const parts = bare.split("::");
	return parts.length > 1 && /^\w/.test(parts[parts.length - 1])
		? parts[parts.length - 1]
		: bare;
}

/** The forms of a name for a frame, the longest first; the last one is cut if it does not fit. */
export function nameForms(full: string): string[] {
	const bare = bareName(full);
	const all = [full, tidyName(full), shortName(full), bare, methodName(bare)];
	return [...new Set(all)].sort((a, b) => b.length - a.length);
}
