// The info strings of fences. Tests run the examples by them: .github/CONTRIBUTING.md says how.

/** What a language's fence may be; "" is the language alone. */
const KINDS = {
	yaml: ["config", "job", "rules", "web", "other"],
	promql: ["", "range", "parse"],
	sh: ["", "elsewhere"],
	text: [""],
	json: [""],
};
/** Shown and not run; "test" is a script of the query language, which the language's own tests run. */
const SHOWN = (
	"alloy c cpp csharp css diff dockerfile go html http ini java javascript js kotlin make php proto python ruby " +
	"rust test toml ts typescript xml"
).split(" ");
const NAME = /^[A-Za-z0-9._-]+(\/[A-Za-z0-9._-]+)*$/;

/** `language`, `kind`, `file` of an info string; `error` if it is not in the format. */
export function readInfo(info) {
	const words = info.trim().split(/\s+/).filter(Boolean);
	const language = words.shift() ?? "";
	const files = words.filter((w) => w.startsWith("file="));
	const file = files[0]?.slice("file=".length);
	const kinds = words.filter((w) => !w.startsWith("file="));
	const kind = kinds[0] ?? "";
	const known = KINDS[language] ?? (SHOWN.includes(language) ? ["", "elsewhere"] : null);
	let error;
	if (!language) error = "a fence without an info string";
	else if (!known) error = `a fence of ${language}, which the format does not know`;
	else if (kinds.length > 1 || !known.includes(kind))
		error = `a fence of ${[language, ...kinds].join(" ")}; it may be ${known.map((k) => `${language} ${k}`.trim()).join(", ")}`;
	else if (files.length > 1 || (file !== undefined && (!NAME.test(file) || file.split("/").includes(".."))))
		error = `a fence for a file that cannot be: ${files.join(" ")}`;
	return { language, kind, file, error };
}
