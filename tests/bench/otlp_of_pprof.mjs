// A pprof profile as an OTLP request (profiles/v1development 1.10): one profile for each of its sample types, as a
// collector's pprof receiver sends it.
import { message, varint } from '../e2e/otlp_requests.mjs';
import { fields, inflated, numbers } from '../e2e/senders/pprof.mjs';

const number = (field, n) => Buffer.concat([varint(field * 8), varint(Number(n))]);
const packed = (field, list) => message(field, ...list.map((n) => varint(Number(n))));
const attribute = (field, key, value) => message(field, message(1, key), message(2, message(1, value)));

/** Messages of the profile by field; samples, locations and functions as their fields' lists. */
function read(bytes) {
  const p = { types: [], samples: [], locations: [], functions: [], strings: [] };
  const parts = (value) => {
    const out = {};
    for (const [field, v] of fields(value)) (out[field] ??= []).push(v);
    return out;
  };
  for (const [field, value] of fields(inflated(bytes))) {
    if (field === 1) p.types.push(parts(value));
    if (field === 2) p.samples.push(parts(value));
    if (field === 4) p.locations.push(parts(value));
    if (field === 5) p.functions.push(parts(value));
    if (field === 6) p.strings.push(value);
  }
  return p;
}

/** Index of each id in a table whose entry 0 is the zero value. */
const indexes = (list) => new Map(list.map((one, i) => [one[1][0], i + 1]));

export function otlpOfPprof(file, service) {
  const p = read(file), functions = indexes(p.functions), locations = indexes(p.locations);
  const line = (value) => {
    const { 1: id, 2: at } = Object.fromEntries(fields(value));
    return message(3, number(1, functions.get(id)), number(2, at ?? 0n));
  };
  const dictionary = message(2,
    message(1), message(2), message(3), message(4), message(6), message(7),
    ...p.locations.map((l) => message(2, number(2, l[3]?.[0] ?? 0n), ...(l[4] ?? []).map(line))),
    ...p.functions.map((f) => message(3, number(1, f[2]?.[0] ?? 0n), number(3, f[4]?.[0] ?? 0n))),
    ...p.strings.map((s) => message(5, s)),
    ...p.samples.map((s) => message(7, packed(1, s[1].flatMap((v) => [...numbers(v)]).map((id) => locations.get(id))))));
  const now = Buffer.alloc(9);
  now[0] = 3 * 8 + 1;
  now.writeBigUInt64LE(1n, 1);
  const profiles = p.types.map((type, k) => message(2,
    message(1, number(1, type[1][0]), number(2, type[2][0])),
    ...p.samples.map((s, i) => message(2, number(1, i + 1), packed(4, [s[2].flatMap((v) => [...numbers(v)])[k]]))),
    now, number(4, 10_000_000_000n)));
  const resource = message(1, attribute(1, 'service.name', service));
  return { body: Buffer.concat([message(1, resource, message(2, ...profiles)), dictionary]), samples: p.samples.length };
}
