// Writes pprof profiles and pushes them.
import assert from "node:assert/strict";
import { gzipSync } from "node:zlib";

function varint(out, v) {
	while (v > 127) {
		out.push((v % 128) | 128);
		v = Math.floor(v / 128);
	}
	out.push(v);
}

const number = (out, field, v) => {
	if (!v) return;
	varint(out, field * 8);
	varint(out, v);
};
const bytes = (out, field, data) => {
	varint(out, field * 8 + 2);
	varint(out, data.length);
	for (const b of data) out.push(b);
};
const packed = (out, field, values) => {
	const data = [];
	for (const v of values) varint(data, v);
	bytes(out, field, data);
};
const message = (fill) => {
	const out = [];
	fill(out);
	return out;
};

/** A level, as memory in use is: like a CPU profile, but of an instant, and of another type. */
export const levelProfile = (type, unit, profile) => cpuProfile({ ...profile, of: [type, unit] });

/**
 * A CPU profile, gzipped. `functions` are `{name, file, line}`; `samples` are `{stack, value}`
 * with a stack of indices of functions, the outermost first, and a value in nanoseconds. A function
 * may have `at`, the line that runs, else it is `line`, where it begins. It took `seconds` from
 * `time` on. `binary` is `{path, id}` of the program.
 */
export function cpuProfile({ functions, samples, time = Date.now() - 15000, seconds = 10, of = null, binary = null }) {
	const strings = [""];
	const index = new Map([["", 0]]);
	const text = (s) => {
		if (!index.has(s)) index.set(s, strings.push(s) - 1);
		return index.get(s);
	};
	const type = (out, field) =>
		bytes(
			out,
			field,
			message((m) => {
				number(m, 1, text(of?.[0] ?? "cpu"));
				number(m, 2, text(of?.[1] ?? "nanoseconds"));
			}),
		);
	const chunks = [];
	const part = (fill) => chunks.push(Buffer.from(message(fill)));
	part((out) => type(out, 1));
	for (const { stack, value } of samples)
		part((out) =>
			bytes(
				out,
				2,
				message((m) => {
					packed(m, 1, [...stack].reverse().map((f) => f + 1));
					packed(m, 2, [value]);
				}),
			),
		);
	if (binary)
		part((out) =>
			bytes(
				out,
				3,
				message((m) => {
					number(m, 1, 1);
					number(m, 5, text(binary.path));
					number(m, 6, text(binary.id));
				}),
			),
		);
	functions.forEach(({ name, file = "", line = 0, at = line }, i) => {
		part((out) =>
			bytes(
				out,
				4,
				message((m) => {
					number(m, 1, i + 1);
					if (binary) number(m, 2, 1);
					bytes(
						m,
						4,
						message((l) => {
							number(l, 1, i + 1);
							number(l, 2, at);
						}),
					);
				}),
			),
		);
		part((out) =>
			bytes(
				out,
				5,
				message((m) => {
					number(m, 1, i + 1);
					number(m, 2, text(name));
					number(m, 3, text(name));
					number(m, 4, text(file));
					number(m, 5, line);
				}),
			),
		);
	});
	part((out) => {
		number(out, 9, time * 1e6);
		if (!of) number(out, 10, seconds * 1e9);
		type(out, 11);
		number(out, 12, 10e6);
	});
	for (const s of strings) part((out) => bytes(out, 6, Buffer.from(s)));
	return gzipSync(Buffer.concat(chunks));
}

/** Stores a profile on the server at that address; `args` are its name, its labels, `time` and `interval`. */
export async function push(base, args, body) {
	const url = `${base}api/v1/ingest?${new URLSearchParams(args)}`;
	const response = await fetch(url, { method: "POST", body });
	assert.equal(response.status, 200, await response.text());
}
