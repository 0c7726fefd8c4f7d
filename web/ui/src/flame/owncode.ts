// Whose function it is: the program's own, or that of its runtime and standard library. A cost is
// told by the program's function, because that is what its developers can change.
import { type Columns, type Flame, FOLDED, nameOf } from "./layout";
import { packageOf, tidyName } from "./names";

/** The standard library of Go by the first element of its packages. */
const GO_STANDARD = new Set(
	(
		"archive arena bufio bytes cmp compress container context crypto database debug embed encoding " +
		"errors expvar flag fmt go hash html image index internal io iter log maps math mime net os " +
		"path plugin reflect regexp runtime slices sort strconv strings structs sync syscall testing " +
		"text time unicode unique unsafe vendor weak"
	).split(" "),
);
/** Namespaces and packages of other languages' runtimes. */
const STANDARD =
	/^(std|core|alloc|__gnu_cxx|__cxxabiv1|libc|tokio|java|javax|jdk|sun|com\.sun|kotlin|scala|node|v8)([./:]|$)/;
/** Names of C that a program does not have: the allocator, the system, its own start. */
const C_RUNTIME =
	/^(_?_?(libc_|pthread_|sys_|x64_sys_|do_syscall|GI_)|_start$|clone3?$|start_thread$|(cfree|malloc|calloc|realloc|free|memcpy|memmove|memset|memcmp)\b)/;

/** Whether a function is the program's own, as far as its name tells. */
export function isOwn(name: string): boolean {
	const tidy = tidyName(name);
	if (!tidy || tidy.startsWith("[") || C_RUNTIME.test(tidy)) return false;
	const pkg = packageOf(name);
	if (STANDARD.test(pkg)) return false;
	const goLike = !tidy.includes("::") && tidy.includes(".");
	return !goLike || !GO_STANDARD.has(pkg.split("/")[0]);
}

/** Costs of a function on both sides; base is 0 if the graph is no difference. */
export interface Costs {
	base: number;
	next: number;
}

const sidesOf = (f: Flame): [Columns | null, Columns] =>
	f.diff ? [f.diff.base, f.diff.next] : [null, f];

/** Which names are the program's own; the root and folded nodes are not. */
function ownFlags(f: Flame): boolean[] {
	return f.names.map((n) => n !== "total" && n !== FOLDED && isOwn(n));
}

function addTo(out: Map<string, Costs>, name: string, base: number, next: number): void {
	const had = out.get(name);
	if (had) {
		had.base += base;
		had.next += next;
	} else out.set(name, { base, next });
}

/**
 * Each cost at the program's function nearest to it: what the function costs with the runtime's and
 * libraries' functions below it. A stack without any counts for its outermost function.
 */
export function ownCosts(f: Flame): Map<string, Costs> {
	const [base, next] = sidesOf(f);
	const own = ownFlags(f);
	const out = new Map<string, Costs>();
	const at = new Int32Array(f.count);
	for (let i = 1; i < f.count; i++) {
		const above = at[f.parent[i]];
		// Parents come first, so the answer of the parent is known.
		at[i] = own[f.name[i]] || !above ? i : above;
		const [b, n] = [base?.self[i] ?? 0, next.self[i]];
		if (b || n) addTo(out, nameOf(f, at[i]), b, n);
	}
	return out;
}

/** The cost of a function and all it calls, once per stack; and of the function itself. */
export function costsOf(f: Flame, name: string): { cum: Costs; flat: Costs } {
	const [base, next] = sidesOf(f);
	const cum = { base: 0, next: 0 };
	const flat = { base: 0, next: 0 };
	const id = f.names.indexOf(name);
	const under = new Uint8Array(f.count);
	for (let i = 1; i < f.count; i++) {
		const is = f.name[i] === id;
		const above = f.parent[i] > 0 && under[f.parent[i]] === 1;
		under[i] = is || above ? 1 : 0;
		if (!is) continue;
		flat.base += base?.self[i] ?? 0;
		flat.next += next.self[i];
		if (above) continue;
		cum.base += base?.total[i] ?? 0;
		cum.next += next.total[i];
	}
	return { cum, flat };
}

/** The functions that call `name`, with the share 0..1 of its cost that each passes; largest first. */
export function callersOf(f: Flame, name: string): [string, number][] {
	const [base, next] = sidesOf(f);
	const id = f.names.indexOf(name);
	const out = new Map<string, number>();
	let all = 0;
	for (let i = 1; i < f.count; i++) {
		if (f.name[i] !== id) continue;
		const cost = next.total[i] + (base?.total[i] ?? 0);
		let p = f.parent[i];
		while (p > 0 && f.name[p] === id) p = f.parent[p];
		if (p <= 0) continue;
		out.set(nameOf(f, p), (out.get(nameOf(f, p)) ?? 0) + cost);
		all += cost;
	}
	return [...out].map(([n, c]): [string, number] => [n, all > 0 ? c / all : 0]).sort((a, b) => b[1] - a[1]);
}
