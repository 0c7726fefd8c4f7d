#!/usr/bin/env node
// Words that strings for users do not have, each with what to say instead: words.mjs [TREE [MODULES]] prints a line
// "FILE:LINE: WORD: INSTEAD" per finding. The strings are those that strings.mjs lists, without those of the log.
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { allStrings } from "./strings.mjs";

const here = dirname(fileURLToPath(import.meta.url));

/** What is not said, what to say, and the kind of strings that the rule is about; none: all. */
const WORDS = [
	[/\b[Dd]ear(er|est)?\b|TooDear/, "expensive"],
	[/\banew\b/, "again"],
	[/\bwants? (an? |the )?(selector|window|profiles?|costs|numbers|restart|probability|argument)/, "needs"],
	[/\b[Cc]annot (tell (yet|at|of|whether)|be told|be said)\b/, "not enough data"],
	[/\bnobody has\b|\b[Nn]obody's\b/, "no ..., unknown ..., unacknowledged"],
	[/\bneither grows nor falls\b/, "steady"],
	[/\bfor want of\b/, "without, out of"],
	[/\bunder way\b/i, "in progress"],
	[/\blooking (whether|for what)\b/i, "testing, computing"],
	[/\b(no|all|what) .* (stands|stand) (here|there)\b/, "is"],
	[/\bchance is\b|\bis chance\b/, "significance"],
	[/\bby itself\b/, "automatically", "page"],
	[/\b[Ii]t (is|was|has|does|wants|ends|ended|sends|refuses|redirects|cannot|neither|grows|falls) /, "name the thing", "page"],
	[/^It /, "begin with the noun", "page"],
	[/\bNone? matches\b|\bNo \w+ matches\b/, "No matching ...", "page"],
];

export function findings(strings) {
	const out = [];
	for (const s of strings)
		for (const [pattern, instead, kind] of WORDS) {
			const found = s.kind !== "log" && (!kind || kind === s.kind) && pattern.exec(s.text);
			if (found) out.push(`${s.file}:${s.line}: "${found[0].trim()}" in a text for users: ${instead}`);
		}
	return out;
}

if (process.argv[1] && resolve(process.argv[1]) === fileURLToPath(import.meta.url)) {
	const tree = resolve(process.argv[2] ?? ".");
	const modules = resolve(process.argv[3] ?? join(here, "../../build/ui-src/node_modules"));
	process.stdout.write(findings(allStrings(tree, modules)).map((l) => `${l}\n`).join(""));
}
