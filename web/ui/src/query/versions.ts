// An alert that compares two versions of a service: the share of a function in one against its share
// in the other, as a difference or as a quotient.
import { alertAs, groupBy, groupLabels } from "./edit";
import { pickValues } from "./labels";
import { clean } from "./query";
import { bare, type QueryNode, readQuery, wholeCall } from "./read";
import { profileSelectors } from "./types";

export const VERSION = "version";

/** By how many points of the total, or by how many times. */
export type Against = "points" | "times";

export interface VersionPair {
	how: Against;
	next: string;
	base: string;
}

/** The version that a share asks for; null if it is no share, or of any version. */
function versionIn(n: QueryNode): string | null {
	const side = bare(n);
	if (side.type !== "call" || !/^(cum|flat)_share$/.test(side.name)) return null;
	const [only, ...more] = profileSelectors(side);
	const version = only?.matchers.find((m) => m.label === VERSION && m.op === "=");
	return more.length || !version ? null : version.value;
}

/** The versions that an expression compares; null if it compares none. */
export function versionPair(expr: string): VersionPair | null {
	const { tree } = readQuery(clean(expr));
	const n = tree && bare(tree);
	if (n?.type !== "binary" || n.modified || !"-/".includes(n.op.name)) return null;
	const [next, base] = [versionIn(n.lhs), versionIn(n.rhs)];
	if (next === null || base === null || next === base) return null;
	return { how: n.op.name === "-" ? "points" : "times", next, base };
}

/** The expression without a comparison of versions: its newer side, of all versions. */
export function withoutVersions(expr: string): string {
	const q = clean(expr);
	const { tree } = readQuery(q);
	const n = tree && bare(tree);
	if (n?.type !== "binary" || !versionPair(q)) return q;
	return pickValues(q.slice(n.lhs.start, n.lhs.end), VERSION, []);
}

/** The cost or share of a function as its share in one version against that in another; null of others. */
export function againstVersion(expr: string, { how, next, base }: VersionPair): string | null {
	const share = alertAs(withoutVersions(expr), "share", "");
	const call = share === null ? null : wholeCall(share);
	if (share === null || !call) return null;
	const [profiles, frames] = call.args.map((a) => share.slice(a.start, a.end));
	const labels = groupLabels(profiles).filter((l) => l !== VERSION);
	const of = (version: string) =>
		`cum_share(${pickValues(groupBy(profiles, labels.join(", ")), VERSION, [version])}, ${frames})`;
	return `${of(next)} ${how === "points" ? "-" : "/"} ${of(base)}`;
}

/** The newer and the older of two versions, by their names: v10 comes after v9. */
export function newerFirst(versions: string[]): [string, string] | null {
	if (versions.length !== 2) return null;
	const [base, next] = [...versions].sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
	return [next, base];
}
