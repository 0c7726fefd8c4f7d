// The buckets and objects of the fake store, and what each request does with them. No network and no signatures:
// s3_fake.mjs has those. Where stores differ, it does as the documents of S3 say.
import { createHash, randomBytes } from 'node:crypto';
import { encode } from './s3_sign.mjs';
import { texts } from './s3_client.mjs';

const keySizeMax = 1024;
const listKeysMax = 1000;
const partsMax = 10000;

export class S3Error extends Error {
  constructor(status, code, message, more = {}) {
    super(message);
    Object.assign(this, { status, code, more });
  }
}

const entities = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };
export const escapeXml = (text) => String(text).replace(/[&<>"\x00-\x1f]/g, (c) => entities[c] ?? `&#x${c.charCodeAt(0).toString(16)};`);

/** Elements from a list of [name, text or such a list]; names may repeat. */
export function xml(elements) {
  return elements.map(([name, value]) => `<${name}>${Array.isArray(value) ? xml(value) : escapeXml(value)}</${name}>`).join('');
}

const document = (name, elements) => ({ status: 200, headers: { 'content-type': 'application/xml' },
  body: Buffer.from(`<?xml version="1.0" encoding="UTF-8"?>\n${xml([[name, elements]])}`) });

const md5 = (bytes) => createHash('md5').update(bytes).digest();
const quoted = (etag) => `"${etag}"`;
const unquoted = (etag) => etag.trim().replace(/^"(.*)"$/, '$1');

/** Bytes [first, last] of a Range header; undefined if the whole is wanted. */
function parseRange(text, size) {
  const m = /^bytes=(\d*)-(\d*)$/.exec(text ?? '');
  if (!m || (m[1] === '' && m[2] === '')) return undefined;
  const first = m[1] === '' ? Math.max(0, size - Number(m[2])) : Number(m[1]);
  const last = m[1] === '' || m[2] === '' ? size - 1 : Math.min(Number(m[2]), size - 1);
  if (m[1] !== '' && m[2] !== '' && Number(m[2]) < first) return undefined;
  if (first >= size || (m[1] === '' && Number(m[2]) === 0)) throw new S3Error(416, 'InvalidRange', 'The range is not satisfiable');
  return [first, last];
}

export class S3Store {
  /** `now` gives the time in ms. */
  constructor(now) {
    this.now = now;
    this.buckets = new Map();
    this.ignoreConditions = false; // as some gateways do
    this.quota = Infinity; // bytes in all buckets
    this.partSizeMin = 5 * 2 ** 20; // of all parts but the last
  }

  /** `query` is a Map, `headers` has lower-case names; gives { status, headers, body } or throws S3Error. */
  answer({ method, bucket, key, query, headers, body }) {
    if (bucket === '') return this.service(method);
    if (key === '') return this.bucketRequest(method, bucket, query);
    const b = this.find(bucket);
    if (Buffer.byteLength(key) > keySizeMax) throw new S3Error(400, 'KeyTooLongError', 'Your key is too long');
    if (query.has('uploadId')) return this.partRequest(method, b, key, query, headers, body);
    if (method === 'POST' && query.has('uploads')) return this.beginParts(b, bucket, key, headers);
    switch (method) {
      case 'PUT': return this.put(b, key, headers, body);
      case 'GET': return this.get(b, key, headers);
      case 'HEAD': return { ...this.get(b, key, headers), head: true };
      case 'DELETE':
        b.objects.delete(key);
        return { status: 204, headers: {} };
      default: throw new S3Error(501, 'NotImplemented', `${method} of an object is not implemented`);
    }
  }

  find(bucket) {
    const b = this.buckets.get(bucket);
    if (!b) throw new S3Error(404, 'NoSuchBucket', 'The specified bucket does not exist');
    return b;
  }

  // ---- buckets

  service(method) {
    if (method !== 'GET') throw new S3Error(405, 'MethodNotAllowed', `${method} of the service`);
    return document('ListAllMyBucketsResult', [['Buckets', [...this.buckets.keys()].map((name) => ['Bucket', [['Name', name]]])]]);
  }

  bucketRequest(method, bucket, query) {
    if (method === 'PUT') {
      if (!this.buckets.has(bucket)) this.buckets.set(bucket, { objects: new Map(), uploads: new Map() });
      return { status: 200, headers: {} };
    }
    const b = this.find(bucket);
    if (method === 'HEAD') return { status: 200, headers: {} };
    if (method === 'DELETE') {
      if (b.objects.size) throw new S3Error(409, 'BucketNotEmpty', 'The bucket you tried to delete is not empty');
      this.buckets.delete(bucket);
      return { status: 204, headers: {} };
    }
    if (method === 'GET' && query.has('uploads')) return this.listUploads(b, bucket, query);
    if (method === 'GET' && query.get('list-type') === '2') return this.list(b, bucket, query);
    throw new S3Error(501, 'NotImplemented', `${method} of a bucket is not implemented with ${[...query.keys()]}`);
  }

  list(b, bucket, query) {
    const prefix = query.get('prefix') ?? '';
    const delimiter = query.get('delimiter') ?? '';
    const shown = query.get('encoding-type') === 'url' ? (text) => encode(text, true) : (text) => text;
    const max = Number(query.get('max-keys') ?? listKeysMax);
    if (!Number.isInteger(max) || max < 0) throw new S3Error(400, 'InvalidArgument', 'max-keys is not a number');
    const limit = Math.min(max, listKeysMax);
    let after = query.get('start-after') ?? '';
    if (query.has('continuation-token')) {
      after = Buffer.from(query.get('continuation-token'), 'base64url').toString();
      if (!after.startsWith('>')) throw new S3Error(400, 'InvalidArgument', 'The continuation token provided is incorrect');
      after = after.slice(1);
    }
    const behind = (key) => Buffer.compare(Buffer.from(key), Buffer.from(after)) > 0
      && !(delimiter && after.endsWith(delimiter) && after.startsWith(prefix) && key.startsWith(after));
    const keys = [...b.objects.keys()].filter((key) => key.startsWith(prefix) && behind(key))
      .sort((x, y) => Buffer.compare(Buffer.from(x), Buffer.from(y)));
    const items = []; // [key or common prefix, whether it is a prefix]
    let truncated = false;
    for (const key of keys) {
      const end = delimiter ? key.indexOf(delimiter, prefix.length) : -1;
      const item = end < 0 ? key : key.slice(0, end + delimiter.length);
      if (end >= 0 && items.at(-1)?.[0] === item) continue;
      if (items.length === limit) {
        truncated = limit > 0;
        break;
      }
      items.push([item, end >= 0]);
    }
    const elements = [['Name', bucket], ['Prefix', shown(prefix)], ['KeyCount', items.length], ['MaxKeys', max],
      ['IsTruncated', truncated]];
    if (delimiter) elements.push(['Delimiter', shown(delimiter)]);
    if (truncated) elements.push(['NextContinuationToken', Buffer.from(`>${items.at(-1)[0]}`).toString('base64url')]);
    for (const [item, common] of items) {
      if (common) elements.push(['CommonPrefixes', [['Prefix', shown(item)]]]);
      else {
        const o = b.objects.get(item);
        elements.push(['Contents', [['Key', shown(item)], ['LastModified', new Date(o.time).toISOString()], ['ETag', quoted(o.etag)],
          ['Size', o.bytes.length], ['StorageClass', 'STANDARD']]]);
      }
    }
    return document('ListBucketResult', elements);
  }

  // ---- objects

  used() {
    let sum = 0;
    for (const b of this.buckets.values()) for (const o of b.objects.values()) sum += o.bytes.length;
    return sum;
  }

  /** Conditions of a write. */
  check(b, key, headers) {
    if (this.ignoreConditions) return;
    const etag = b.objects.get(key)?.etag;
    const none = headers['if-none-match'];
    const match = headers['if-match'];
    if (none !== undefined && none !== '*') throw new S3Error(501, 'NotImplemented', 'If-None-Match of a write takes * only');
    if (match !== undefined && etag === undefined) throw new S3Error(404, 'NoSuchKey', 'The specified key does not exist');
    if ((none !== undefined && etag !== undefined) || (match !== undefined && match !== '*' && unquoted(match) !== etag)) {
      throw new S3Error(412, 'PreconditionFailed', 'At least one of the pre-conditions you specified did not hold');
    }
  }

  checkBody(headers, body) {
    if (headers['content-length'] === undefined) throw new S3Error(411, 'MissingContentLength', 'Content-Length is missing');
    if (headers['content-md5'] !== undefined && headers['content-md5'] !== md5(body).toString('base64')) {
      throw new S3Error(400, 'BadDigest', 'The Content-MD5 you specified did not match what we received');
    }
    if (this.used() + body.length > this.quota) throw new S3Error(403, 'QuotaExceeded', 'The bucket is full');
  }

  set(b, key, bytes, headers, etag = md5(bytes).toString('hex')) {
    const meta = Object.entries(headers).filter(([name]) => name === 'content-type' || name.startsWith('x-amz-meta-'));
    b.objects.set(key, { bytes, etag, meta: Object.fromEntries(meta), time: Math.floor(this.now() / 1000) * 1000 });
    return etag;
  }

  put(b, key, headers, body) {
    this.check(b, key, headers);
    this.checkBody(headers, body);
    return { status: 200, headers: { etag: quoted(this.set(b, key, body, headers)) } };
  }

  get(b, key, headers) {
    const o = b.objects.get(key);
    if (!o) throw new S3Error(404, 'NoSuchKey', 'The specified key does not exist');
    const all = { 'content-type': 'binary/octet-stream', ...o.meta, etag: quoted(o.etag), 'accept-ranges': 'bytes',
      'last-modified': new Date(o.time).toUTCString() };
    const match = headers['if-match'];
    const none = headers['if-none-match'];
    if (match !== undefined && match !== '*' && unquoted(match) !== o.etag) {
      throw new S3Error(412, 'PreconditionFailed', 'At least one of the pre-conditions you specified did not hold');
    }
    if (none !== undefined && (none === '*' || unquoted(none) === o.etag)) return { status: 304, headers: all };
    const range = parseRange(headers.range, o.bytes.length);
    if (!range) return { status: 200, headers: all, body: o.bytes };
    all['content-range'] = `bytes ${range[0]}-${range[1]}/${o.bytes.length}`;
    return { status: 206, headers: all, body: o.bytes.subarray(range[0], range[1] + 1) };
  }

  // ---- objects in parts

  listUploads(b, bucket, query) {
    const prefix = query.get('prefix') ?? '';
    const uploads = [...b.uploads].filter(([, u]) => u.key.startsWith(prefix));
    return document('ListMultipartUploadsResult', [['Bucket', bucket], ['IsTruncated', false],
      ...uploads.map(([id, u]) => ['Upload', [['Key', u.key], ['UploadId', id], ['Initiated', new Date(u.time).toISOString()]]])]);
  }

  /** What is said of the object is said here. */
  beginParts(b, bucket, key, headers) {
    const id = randomBytes(12).toString('hex');
    b.uploads.set(id, { key, headers, parts: new Map(), time: this.now() });
    return document('InitiateMultipartUploadResult', [['Bucket', bucket], ['Key', key], ['UploadId', id]]);
  }

  partRequest(method, b, key, query, headers, body) {
    const id = query.get('uploadId');
    const upload = b.uploads.get(id);
    if (upload?.key !== key) throw new S3Error(404, 'NoSuchUpload', 'The specified upload does not exist');
    if (method === 'DELETE') {
      b.uploads.delete(id);
      return { status: 204, headers: {} };
    }
    if (method === 'POST') return this.completeParts(b, key, id, upload, headers, body);
    const n = Number(query.get('partNumber'));
    if (method !== 'PUT') throw new S3Error(501, 'NotImplemented', `${method} of an upload is not implemented`);
    if (!Number.isInteger(n) || n < 1 || n > partsMax) throw new S3Error(400, 'InvalidArgument', `partNumber is 1 to ${partsMax}`);
    this.checkBody(headers, body);
    const etag = md5(body).toString('hex');
    upload.parts.set(n, { bytes: body, etag });
    return { status: 200, headers: { etag: quoted(etag) } };
  }

  completeParts(b, key, id, upload, headers, body) {
    const text = body.toString();
    const numbers = texts(text, 'PartNumber').map(Number);
    const etags = texts(text, 'ETag').map(unquoted);
    if (numbers.length === 0 || etags.length !== numbers.length) throw new S3Error(400, 'MalformedXML', 'The XML is not as expected');
    const parts = numbers.map((n, i) => {
      if (i > 0 && n <= numbers[i - 1]) throw new S3Error(400, 'InvalidPartOrder', 'The list of parts was not in ascending order');
      const part = upload.parts.get(n);
      if (part?.etag !== etags[i]) throw new S3Error(400, 'InvalidPart', `Part ${n} could not be found`);
      return part;
    });
    if (parts.slice(0, -1).some((p) => p.bytes.length < this.partSizeMin)) {
      throw new S3Error(400, 'EntityTooSmall', `A part but the last has less than ${this.partSizeMin} bytes`);
    }
    this.check(b, key, headers);
    const etag = `${md5(Buffer.concat(parts.map((p) => Buffer.from(p.etag, 'hex')))).toString('hex')}-${parts.length}`;
    this.set(b, key, Buffer.concat(parts.map((p) => p.bytes)), upload.headers, etag);
    b.uploads.delete(id);
    return document('CompleteMultipartUploadResult', [['Key', key], ['ETag', quoted(etag)]]);
  }
}
