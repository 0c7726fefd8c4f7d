// Reads pprof profiles and other protobuf messages, for comparisons with what the server made of them.
import { gunzipSync } from 'node:zlib';

/** The fields of a message: number, an integer (BigInt) or bytes, and the bytes of a fixed64. */
export function* fields(bytes) {
  let at = 0;
  const varint = () => {
    let v = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const b = bytes[at++];
      if (b === undefined) throw new Error('a varint is cut');
      v |= BigInt(b & 127) << shift;
      if (b < 128) return v;
    }
  };
  while (at < bytes.length) {
    const tag = Number(varint());
    let value, fixed;
    if ((tag & 7) === 0) value = varint();
    else if ((tag & 7) === 2) {
      const n = Number(varint());
      value = bytes.subarray(at, at += n);
      if (value.length !== n) throw new Error('a field is cut');
    } else if ((tag & 7) === 1) {
      fixed = bytes.subarray(at, at += 8);
      value = fixed.readBigUInt64LE();
    } else throw new Error(`wire type ${tag & 7}`);
    yield [tag >> 3, value, fixed];
  }
}

/** A message of fields with texts or bytes. */
export function message(list) {
  const varint = (n) => (n < 128 ? [n] : [n % 128 | 128, ...varint(Math.floor(n / 128))]);
  return Buffer.concat(list.map(([field, value]) => {
    const bytes = Buffer.from(value);
    return Buffer.concat([Buffer.from([...varint(field * 8 + 2), ...varint(bytes.length)]), bytes]);
  }));
}

function* numbers(value) {
  if (typeof value === 'bigint') return void (yield value);
  for (let at = 0; at < value.length;) {
    let v = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const b = value[at++];
      v |= BigInt(b & 127) << shift;
      if (b < 128) break;
    }
    yield v;
  }
}

export function inflated(bytes) {
  return bytes[0] === 0x1f && bytes[1] === 0x8b ? gunzipSync(bytes) : bytes;
}

/**
 * Adds a profile's costs to `costs`: a Map from type to a Map from function to [flat, cum]; the function "" has the
 * total.
 */
export function addProfile(costs, bytes) {
  const strings = [];
  const functions = new Map();
  const locations = new Map();
  const types = [];
  const samples = [];
  for (const [field, value] of fields(inflated(bytes))) {
    if (field === 1) types.push(Object.fromEntries(fields(value))[1]);
    if (field === 2) {
      const sample = { stack: [], values: [] };
      for (const [part, v] of fields(value)) {
        if (part === 1) sample.stack.push(...numbers(v));
        if (part === 2) sample.values.push(...numbers(v));
      }
      samples.push(sample);
    }
    if (field === 4) {
      const location = { lines: [] };
      for (const [part, v] of fields(value)) {
        if (part === 1) location.id = v;
        if (part === 4) location.lines.push(Object.fromEntries(fields(v))[1]);
      }
      locations.set(location.id, location.lines);
    }
    if (field === 5) {
      const { 1: id, 2: name } = Object.fromEntries(fields(value));
      functions.set(id, name);
    }
    if (field === 6) strings.push(value.toString());
  }
  for (const { stack, values } of samples) {
    const names = stack.flatMap((id) => (locations.get(id) ?? []).map((f) => strings[Number(functions.get(f) ?? 0n)]));
    types.forEach((type, i) => {
      const name = strings[Number(type)];
      if (!costs.has(name)) costs.set(name, new Map());
      const of = costs.get(name);
      const add = (f, column) => {
        if (!of.has(f)) of.set(f, [0n, 0n]);
        of.get(f)[column] += BigInt.asIntN(64, values[i]);
      };
      add('', 0);
      if (names.length) add(names[0], 0);
      for (const f of new Set(names)) add(f, 1);
    });
  }
}
