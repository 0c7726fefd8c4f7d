// Frames without names, and the page Symbols: binaries in words, uploads.
import assert from "node:assert/strict";
import test from "node:test";
import { SYMBOLS } from "../browser/symbols_answer.mjs";
import { page } from "./page.mjs";

const { color, picture, layout, look, symbols, symbolpage, uploads } = page;

/* ---- frames without names ---- */

test("a frame without a name: its binary and its address", () => {
	for (const [name, binary, address, file] of [
		["[c_fp+0x1f2e]", "c_fp", "1f2e", true],
		["[libstdc++.so.6+0xAB]", "libstdc++.so.6", "AB", true],
		["[my app+0x1]", "my app", "1", true],
		["[0x7f00]", "", "7f00", false],
		["[c_fp]", "c_fp", "", true],
		["[libc.so.6]", "libc.so.6", "", true],
		["[native-app]", "native-app", "", true],
		["[[vdso]+0x1]", "[vdso]", "1", false],
		["<unknown>", "", "", false],
	])
		assert.deepEqual(symbols.unnamedOf(name), { binary, address, file }, name);
	for (const name of [
		"main.main",
		"operator[]",
		"f[go.shape.int]",
		"",
		"[unknown]",
		"[kernel]",
		"[kernel.kallsyms]",
		"[no_Java_frame]",
		"[unknown_Java]",
		"[tid=12]",
		"[class loading]",
		"[GC_active]",
		"<module>",
	])
		assert.equal(symbols.unnamedOf(name), null, name);
});

test("the command that uploads a binary is a line for a shell", () => {
	for (const [file, base, want] of [
		["/usr/bin/c_fp", "http://epi:7272/", "epitool debuginfo upload /usr/bin/c_fp --server http://epi:7272"],
		["c_fp", "https://epi.example/p/", "epitool debuginfo upload c_fp --server https://epi.example/p"],
		["/opt/it's here/x", "http://a/", "epitool debuginfo upload '/opt/it'\\''s here/x' --server http://a"],
		["$(reboot)", "http://a/", "epitool debuginfo upload '$(reboot)' --server http://a"],
		["-rf", "http://a/", "epitool debuginfo upload ./-rf --server http://a"],
		["", "http://a/", "epitool debuginfo upload FILE --server http://a"],
	])
		assert.equal(symbols.uploadCommand(file, base), want);
});

const INFO =
	"12% of the cost is in addresses without names: 8% in /usr/bin/c_fp (build id 1e3e09b3), " +
	"0.5% in /opt/it's here/x (build id 77aa09b3)";

test("infos say which binaries lack names", () => {
	const found = symbols.binariesIn(["something else (build id 12345678)", INFO]);
	assert.deepEqual(found, [
		{ path: "/usr/bin/c_fp", id: "1e3e09b3" },
		{ path: "/opt/it's here/x", id: "77aa09b3" },
	]);
	assert.equal(symbols.binaryNamed(found, "c_fp").id, "1e3e09b3");
	assert.equal(symbols.binaryNamed(found, "fp"), undefined);
	assert.ok(!symbols.saysUnnamed("3 profiles were left out"));
	const parts = symbols.buildIdParts(INFO);
	assert.equal(parts.map((p) => p.text).join(""), INFO);
	assert.deepEqual(parts.filter((p) => p.id).map((p) => p.id), ["1e3e09b3", "77aa09b3"]);
	assert.equal(symbols.symbolsUrl("1e3e09b3"), "symbols?filter=1e3e09b3");
	assert.equal(symbols.symbolsUrl(), "symbols");
	assert.equal(symbols.symbolsUrl("c_fp", "1d"), "symbols?filter=c_fp&seen=1d");
	for (const [start, want] of [[9990, ""], [6400, ""], [6399, "6h"], [-90000, "7d"], [-1e8, "30d"], [NaN, ""]])
		assert.equal(symbols.seenSince(start, 10000), want, String(start));
});

const NAMES = ["total", "main.main", "[c_fp+0x1f]", "other"];

test("frames without names have one colour of their own", () => {
	for (const theme of ["light", "dark"]) {
		const p = color.makePalette(theme);
		const got = color.nameColors([...NAMES, "[libc.so.6]"], p);
		assert.equal(got[2], p.unnamed);
		assert.equal(got[4], p.unnamed);
		const others = [...p.hues.flat(), ...p.runtime, p.neutral, p.dim, p.match, p.tiny];
		assert.ok(!others.includes(p.unnamed), theme);
	}
	assert.deepEqual([...color.unnamedFlags(NAMES)], [0, 0, 1, 0]);
	assert.equal(color.unnamedFlags(["total", "main.main"]), null);
});

test("the picture has lines across them", () => {
	const fb = {
		format: "single",
		names: NAMES,
		levels: [[0, 100, 0, 0], [0, 60, 60, 1, 0, 40, 40, 2]],
		numTicks: 100,
		maxSelf: 60,
	};
	const svg = (bearer) =>
		picture.toSvg(
			{ flame: layout.buildFlame(bearer), look: look.DEFAULT_LOOK, zoom: "", matches: null, unit: "" },
			{ width: 400, palette: color.PALETTES.light, ground: "#fff", measure: (s) => 6 * s.length },
			"",
		);
	assert.equal(svg(fb).match(/url\(#hatch\)/g).length, 1);
	assert.equal(svg(fb).match(/<pattern id="hatch"/g).length, 1);
	const named = { ...fb, names: ["total", "main.main", "main.b", "other"] };
	assert.ok(!svg(named).includes("hatch"));
});

/* ---- the page ---- */

const { binaries } = SYMBOLS;
const find = (base) => binaries.find((b) => b.path.endsWith(`/${base}`));

test("each state is a chip with a sentence", () => {
	for (const [base, text, mark, hint] of [
		["c_fp", "unknown", "", /No source of debug data was asked/],
		["libssl.so.3", "missing", "down", /^No debug data at any source/],
		["worker", "failed", "down", /^File not readable: not an ELF file: HTML$/],
		["gateway", "queued", "wait", /waiting to be read/],
		["python3.11", "extracting", "wait", /^Reading the file/],
		["perl", "uploading", "wait", /^Upload in progress/],
		["c_stripped", "no names", "down", /stripped/],
		["libc.so.6", "symbols only", "wait", /DWARF for files, lines and inlined calls/],
		["prometheus", "line table", "up", /Go's line table/],
		["db", "DWARF", "up", /lines and inlined calls/],
	]) {
		const chip = symbolpage.stateChip(find(base));
		assert.deepEqual([chip.text, chip.mark], [text, mark], base);
		assert.match(chip.hint, hint, base);
	}
	const strange = symbolpage.stateChip({ state: "burning" });
	assert.deepEqual([strange.text, strange.mark], ["burning", ""]);
	assert.equal(symbolpage.stateChip({ state: "failed" }).hint, "File not readable.");
});

test("totals, what is under way, and who wants a file", () => {
	assert.deepEqual(symbolpage.symbolTotals(binaries), {
		seen: 11,
		named: 3,
		unnamed: 8,
		addresses: 1815,
	});
	assert.ok(symbolpage.underWay(SYMBOLS));
	assert.ok(!symbolpage.underWay({ ...SYMBOLS, binaries: [find("c_fp"), find("db")] }));
	assert.ok(!symbolpage.underWay(null));
	const wanting = binaries.filter(symbolpage.wantsFile).map((b) => symbolpage.baseName(b.path));
	assert.deepEqual(wanting, ["c_fp", "libssl.so.3", "worker", "agent", "c_stripped", "libc.so.6"]);
	assert.equal(new Set(binaries.map(symbolpage.binaryKey)).size, binaries.length);
});

test("names, ids and filters", () => {
	assert.equal(symbolpage.binaryName(find("c_fp")), "c_fp");
	assert.equal(symbolpage.binaryName({ id: "1e3e09b3d2c4a7f0", state: "unknown" }), "build id 1e3e09b3d2c4…");
	assert.equal(symbolpage.shortId("1e3e09b3d2c4a7"), "1e3e09b3d2c4a7");
	assert.equal(symbolpage.dirOf("/usr/bin/c_fp"), "/usr/bin/");
	const text = symbolpage.filterText(find("worker"));
	for (const word of ["worker", "c0ffee", "billing", "failed", "html"])
		assert.ok(text.includes(word), word);
	assert.equal(symbolpage.filterOf("[c_fp+0x1f]"), "c_fp");
	assert.equal(symbolpage.filterOf("c_fp shop"), "c_fp shop");
});

/* ---- uploads ---- */

const file = (name, bytes = [0x7f, 0x45, 0x4c, 0x46, 2, 1]) => ({
	name,
	size: bytes.length,
	slice: (from, to) => ({ arrayBuffer: async () => Uint8Array.from(bytes.slice(from, to)).buffer }),
});
const reply = (status, more = {}) => ({ status, error: "", retryAfter: 0, data: null, ...more });
const idle = async () => {};

test("files are sent one after the other; each gets its answer", async () => {
	let now = 0;
	const sent = [];
	const q = new uploads.Uploads(async (f, progress) => {
		assert.equal(now++, 0, "one at a time");
		sent.push(f.name);
		progress(3);
		assert.equal(q.list.find((u) => u.name === f.name).sent, 3);
		await new Promise((done) => setTimeout(done));
		now--;
		return f.name === "b"
			? reply(409, { error: "better data is here" })
			: reply(200, { data: { id: f.name, state: "queued" } });
	}, idle);
	let told = 0;
	const end = q.subscribe(() => told++);
	const first = q.add([file("a"), file("b")]);
	assert.ok(q.active);
	q.add([file("c")]);
	await first;
	assert.ok(!q.active && told > 6);
	end();
	assert.deepEqual(sent, ["a", "b", "c"]);
	assert.deepEqual(
		q.list.map((u) => [u.name, u.stage, u.id, u.text]),
		[
			["a", "taken", "a", ""],
			["b", "kept", "", "Not needed: better data is here."],
			["c", "taken", "c", ""],
		],
	);
	q.clear();
	assert.deepEqual(q.list, []);
});

test("what is no ELF file is not sent", async () => {
	const q = new uploads.Uploads(async () => assert.fail("sent"), idle);
	const folder = {
		name: "d",
		size: 4096,
		slice: () => ({ arrayBuffer: () => Promise.reject(new Error("NotFoundError")) }),
	};
	await q.add([file("a.html", [60, 33]), file("empty", []), folder]);
	const texts = q.list.map((u) => [u.stage, u.text]);
	assert.deepEqual(texts.map(([s]) => s), ["refused", "refused", "refused"]);
	assert.match(texts[0][1], /^Not an ELF file/);
	assert.match(texts[1][1], /^Empty file/);
	assert.match(texts[2][1], /For a folder, run epitool debuginfo upload --recursive/);
});

test("a busy server is asked again after its pause, and not for ever", async () => {
	const pauses = [];
	let n = 0;
	const q = new uploads.Uploads(
		async () => (++n === 3 ? reply(200, { data: { id: "x" } }) : reply(429, { retryAfter: n === 1 ? 7 : 0, error: "10 uploads" })),
		async (s) => {
			pauses.push([s, q.list[0].stage, q.list[0].text]);
		},
	);
	await q.add([file("a")]);
	assert.deepEqual(pauses, [
		[7, "pausing", "Server busy: 10 uploads. Next attempt in 7 s."],
		[5, "pausing", "Server busy: 10 uploads. Next attempt in 5 s."],
	]);
	assert.equal(q.list[0].stage, "taken");
	n = 100;
	await q.add([file("b")]);
	assert.equal(n, 106);
	assert.deepEqual([q.list[1].stage, q.list[1].text], ["refused", "Server busy: 10 uploads."]);
	assert.equal(uploads.pauseOf(reply(503, { retryAfter: 9999 })), 120);
});

test("an upload is cancelled while it waits, is sent, or pauses", async () => {
	const q = new uploads.Uploads(
		(f, progress, signal) =>
			new Promise((done) => {
				signal.addEventListener("abort", () => done(reply(0)));
				q.cancel(2);
				q.cancel(1);
			}),
		idle,
	);
	await q.add([file("a"), file("b")]);
	assert.deepEqual(q.list.map((u) => u.stage), ["cancelled", "cancelled"]);
	const p = new uploads.Uploads(async () => reply(503), async () => p.cancel(1));
	await p.add([file("a")]);
	assert.equal(p.list[0].stage, "cancelled");
});

test("errors name the cause", () => {
	const of = { size: 2 << 20 };
	for (const [r, want] of [
		[reply(400, { error: "no build id" }), "Not usable: no build id"],
		[reply(404, { error: "ingest is disabled: start with --web.enable-ingest" }), "Uploads are off: ingest is disabled: start with --web.enable-ingest"],
		[reply(413, { error: "limit 1 GiB" }), "Too large, 2 MiB: limit 1 GiB"],
		[reply(507, { error: "disk" }), "No space on the server: disk"],
		[reply(500), "The server answered 500."],
		[reply(0), "The connection broke after 1 MiB of 2 MiB. Check that the server runs, and its log."],
		[reply(0, { error: "the server cannot be reached" }), "The connection broke after 1 MiB of 2 MiB: the server cannot be reached"],
	])
		assert.equal(uploads.refusal(r, of, 1 << 20), want);
});
