// AWS Signature Version 4 as S3 uses it: for the client of the tests, and for the fake store, which computes each
// request's signature again.
import { createHash, createHmac } from 'node:crypto';

export const sha256 = (bytes) => createHash('sha256').update(bytes).digest('hex');
const hmac = (key, text) => createHmac('sha256', key).update(text).digest();

/** Percent-encodes all bytes but those that RFC 3986 calls unreserved; `slash` keeps the slashes of a path. */
export function encode(text, slash = false) {
  let out = '';
  for (const byte of Buffer.from(String(text))) {
    const c = String.fromCharCode(byte);
    out += /[A-Za-z0-9._~-]/.test(c) || (slash && c === '/') ? c : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`;
  }
  return out;
}

/** `query` is a list of pairs; the names are sorted by their encoded bytes, then the values. */
export function canonicalQuery(query) {
  return query.map(([k, v]) => [encode(k), encode(v ?? '')])
    .sort(([a, x], [b, y]) => (a < b ? -1 : a > b ? 1 : x < y ? -1 : x > y ? 1 : 0))
    .map(([k, v]) => `${k}=${v}`).join('&');
}

/** `path` is not encoded yet; `headers` has lower-case names; `signed` are those that the signature covers. */
export function canonicalRequest({ method, path, query, headers, signed, payloadHash }) {
  const lines = signed.map((name) => `${name}:${String(headers[name]).trim().replace(/ +/g, ' ')}\n`);
  return [method, encode(path, true), canonicalQuery(query), lines.join(''), signed.join(';'), payloadHash].join('\n');
}

/** `time` is like 20261123T015900Z, `scope` like 20261123/us-east-1/s3/aws4_request. */
export function signature({ secretKey, time, scope, canonical }) {
  const [day, region, service] = scope.split('/');
  const key = [day, region, service, 'aws4_request'].reduce(hmac, `AWS4${secretKey}`);
  return hmac(key, `AWS4-HMAC-SHA256\n${time}\n${scope}\n${sha256(canonical)}`).toString('hex');
}

export const amzTime = (ms) => new Date(ms).toISOString().replace(/[-:]|\.\d+/g, '');
