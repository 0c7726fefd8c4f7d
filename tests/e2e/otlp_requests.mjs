// Recorded OTLP requests moved in time and given attributes, and a client of gRPC on node's http2. The bench uses both too.
import http2 from 'node:http2';
import { readFileSync } from 'node:fs';
import { gunzipSync, gzipSync } from 'node:zlib';
import { join, root } from './lib.mjs';

export const EXPORT = '/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export';

/* ---- protobuf ---- */

export function varint(n) {
  const out = [];
  for (; n > 127; n = Math.floor(n / 128)) out.push(n % 128 | 128);
  return Buffer.from([...out, n]);
}

export const message = (field, ...parts) => {
  const bytes = Buffer.concat(parts.map((p) => Buffer.from(p)));
  return Buffer.concat([varint(field * 8 + 2), varint(bytes.length), bytes]);
};

/** The fields of a message: {field, wire, from, at, end}; from: of the tag, at: of the contents. */
export function fields(b, start, end) {
  const out = [];
  let i = start;
  const number = () => {
    let n = 0, scale = 1;
    for (;;) {
      const byte = b[i++];
      n += (byte & 127) * scale;
      if (byte < 128) return n;
      scale *= 128;
    }
  };
  while (i < end) {
    const from = i, tag = number(), wire = tag & 7;
    let at = i;
    if (wire === 0) number();
    else if (wire === 1) i += 8;
    else if (wire === 5) i += 4;
    else {
      const n = number();
      at = i;
      i += n;
    }
    out.push({ field: tag >> 3, wire, from, at, end: i });
  }
  return out;
}

const members = (b, of, field) => fields(b, of.at, of.end).filter((f) => f.field === field);

/** Where the times of a request are, fixed64 of profiles and of samples; and how many profiles there are. */
function times(b) {
  const out = [];
  const whole = { at: 0, end: b.length };
  let profiles = 0;
  for (const resource of members(b, whole, 1))
    for (const scope of members(b, resource, 2))
      for (const profile of members(b, scope, 2)) {
        profiles++;
        out.push(...members(b, profile, 3).map((f) => f.at));
        for (const sample of members(b, profile, 2))
          for (const list of members(b, sample, 5))
            for (let at = list.at; at < list.end; at += 8) out.push(at);
      }
  return { offsets: out, profiles };
}

/** Each resource gets these attributes. */
function withAttributes(b, attributes) {
  const added = Object.entries(attributes).map(([key, value]) => message(1, message(1, key), message(2, message(1, value))));
  const parts = fields(b, 0, b.length).map((f) => {
    if (f.field !== 1) return b.subarray(f.from, f.end);
    return message(1, ...fields(b, f.at, f.end).map((g) => (g.field === 1 ? message(1, b.subarray(g.at, g.end), ...added) :
      b.subarray(g.from, g.end))));
  });
  return Buffer.concat(parts);
}

/** A request that can be moved in time: `at(ms)` is its body, its last time at ms since 1970; `profiles`: how many. */
export function movable(body) {
  const { offsets, profiles } = times(body), was = offsets.map((at) => body.readBigUInt64LE(at));
  const last = was.reduce((a, b) => (a > b ? a : b));
  return {
    profiles,
    bytes: body.length,
    at(ms) {
      const by = BigInt(Math.round(ms)) * 1000000n - last;
      offsets.forEach((at, i) => body.writeBigUInt64LE(was[i] + by, at));
      return Buffer.from(body);
    },
  };
}

/** A recorded request, not compressed. */
export function recorded(name, attributes = {}) {
  const file = readFileSync(join(root, 'tests/proto/otlp/testdata', `${name}.pb.gz`));
  return movable(withAttributes(gunzipSync(file), attributes));
}

/* ---- gRPC ---- */

export const grpcPort = (server) => Number(server.err.match(/msg="OTLP over gRPC".*\bport=(\d+)/)[1]);

export function connect(t, url, options) {
  const session = http2.connect(url, options);
  session.on('error', (e) => (session.failed = e));
  t.after(() => session.destroy());
  return session;
}

/** One call; body is the message, compressed unless `plain`. A connection that fails is status -1. */
export function call(session, body, { path = EXPORT, plain = false, headers = {} } = {}) {
  return new Promise((done) => {
    const bytes = plain ? body : gzipSync(body, { level: 1 });
    const prefix = Buffer.alloc(5);
    prefix[0] = plain ? 0 : 1;
    prefix.writeUInt32BE(bytes.length, 1);
    const answer = { status: -1, message: '', body: Buffer.alloc(0) };
    const take = (h) => {
      answer.http = h[':status'] ?? answer.http;
      if (h['grpc-status'] === undefined) return;
      answer.status = Number(h['grpc-status']);
      answer.message = decodeURIComponent(h['grpc-message'] ?? '');
      answer.details = h['grpc-status-details-bin'];
    };
    let req;
    try {
      req = session.request({ ':method': 'POST', ':path': path, 'content-type': 'application/grpc', te: 'trailers',
        ...(plain ? {} : { 'grpc-encoding': 'gzip' }), ...headers });
    } catch (e) {
      answer.error = e;
      done(answer);
      return;
    }
    req.on('response', take);
    req.on('trailers', take);
    req.on('data', (d) => (answer.body = Buffer.concat([answer.body, d])));
    req.on('error', (e) => (answer.error = e));
    req.on('close', () => done(answer));
    req.end(Buffer.concat([prefix, bytes]));
  });
}
