// A small S3 client for checks from outside: one request a connection, each signed, nothing repeated.
import http from 'node:http';
import { amzTime, canonicalQuery, canonicalRequest, encode, sha256, signature } from './s3_sign.mjs';

const entities = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" };

export function unescapeXml(text) {
  return text.replace(/&(?:#x([0-9a-f]+)|#(\d+)|(\w+));/gi, (_, hex, decimal, name) =>
    (name ? entities[name] : String.fromCodePoint(hex ? parseInt(hex, 16) : Number(decimal))));
}

/** The texts of all elements of this name that hold no others. */
export function texts(xml, name) {
  return [...String(xml).matchAll(new RegExp(`<${name}>([^<]*)</${name}>`, 'g'))].map((m) => unescapeXml(m[1]));
}

function exchange({ host, port, method, path, headers, body, timeout }) {
  return new Promise((done, fail) => {
    const req = http.request({ host, port, method, path, headers, agent: false }, (res) => {
      const chunks = [];
      res.on('data', (c) => chunks.push(c));
      res.on('end', () => (res.complete
        ? done({ status: res.statusCode, headers: res.headers, body: Buffer.concat(chunks) })
        : fail(new Error('the answer is cut'))));
      res.on('error', fail);
    });
    req.on('error', fail);
    req.setTimeout(timeout, () => req.destroy(new Error(`no answer within ${timeout} ms`)));
    req.end(body);
  });
}

export class S3 {
  /** `skew` is added to the clock, in ms. */
  constructor({ endpoint, bucket, accessKey, secretKey, token, region = 'us-east-1', skew = 0, timeout = 60000 }) {
    Object.assign(this, { endpoint, bucket, accessKey, secretKey, token, region, skew, timeout });
  }

  /** The same store with some things changed. */
  with(changes) {
    return new S3({ ...this, ...changes });
  }

  /**
   * One request. `change(request)` may spoil what was signed. The answer has `status`, `headers`, `body`, and the `code`
   * of an error.
   */
  async call(method, key, { query = {}, headers = {}, body = Buffer.alloc(0), unsigned = false, change = () => {} } = {}) {
    const { hostname: host, port } = new URL(this.endpoint);
    const bytes = Buffer.from(body);
    const path = `/${this.bucket}${key === undefined ? '' : `/${key}`}`;
    const pairs = Object.entries(query);
    const time = amzTime(Date.now() + this.skew);
    const payloadHash = unsigned ? 'UNSIGNED-PAYLOAD' : sha256(bytes);
    const all = { host: `${host}:${port}`, 'x-amz-date': time, 'x-amz-content-sha256': payloadHash };
    if (this.token) all['x-amz-security-token'] = this.token;
    for (const [name, value] of Object.entries(headers)) all[name.toLowerCase()] = value;
    const signed = Object.keys(all).sort();
    const scope = `${time.slice(0, 8)}/${this.region}/s3/aws4_request`;
    const canonical = canonicalRequest({ method, path, query: pairs, headers: all, signed, payloadHash });
    all.authorization = `AWS4-HMAC-SHA256 Credential=${this.accessKey}/${scope}, SignedHeaders=${signed.join(';')}, `
      + `Signature=${signature({ secretKey: this.secretKey, time, scope, canonical })}`;
    all['content-length'] = bytes.length;
    const text = canonicalQuery(pairs);
    const request = { host, port, method, path: encode(path, true) + (text && `?${text}`), headers: all, body: bytes,
      timeout: this.timeout };
    change(request);
    const answer = await exchange(request);
    return { ...answer, code: texts(answer.body, 'Code')[0] };
  }

  /** As call(); another status than these fails. */
  async must(statuses, method, key, options) {
    const answer = await this.call(method, key, options);
    if (![statuses].flat().includes(answer.status)) {
      throw new Error(`${method} ${key ?? this.bucket}: status ${answer.status}, not ${statuses}: ${answer.body}`);
    }
    return answer;
  }

  createBucket() {
    return this.must(200, 'PUT');
  }

  /** The etag, with its quotes. */
  async put(key, body, headers = {}) {
    return (await this.must(200, 'PUT', key, { body, headers })).headers.etag;
  }

  async get(key, headers = {}) {
    return (await this.must([200, 206], 'GET', key, { headers })).body;
  }

  head(key) {
    return this.call('HEAD', key);
  }

  async remove(key) {
    await this.must(204, 'DELETE', key);
  }

  /** One page of a list. */
  async list(query = {}) {
    const xml = (await this.must(200, 'GET', undefined, { query: { 'list-type': '2', ...query } })).body.toString();
    const common = [...xml.matchAll(/<CommonPrefixes>(.*?)<\/CommonPrefixes>/gs)].flatMap((m) => texts(m[1], 'Prefix'));
    return { keys: texts(xml, 'Key'), sizes: texts(xml, 'Size').map(Number), etags: texts(xml, 'ETag'), prefixes: common,
      truncated: texts(xml, 'IsTruncated')[0] === 'true', next: texts(xml, 'NextContinuationToken')[0] };
  }

  /** All keys, page by page. */
  async keys(query = {}) {
    const keys = [];
    for (let page = await this.list(query); ; page = await this.list({ ...query, 'continuation-token': page.next })) {
      keys.push(...page.keys);
      if (!page.truncated) return keys;
    }
  }

  // ---- objects in parts

  async begin(key) {
    return texts((await this.must(200, 'POST', key, { query: { uploads: '' } })).body, 'UploadId')[0];
  }

  async part(key, uploadId, partNumber, body) {
    return (await this.must(200, 'PUT', key, { query: { partNumber, uploadId }, body })).headers.etag;
  }

  /** `parts` is a list of [number, etag]. */
  complete(key, uploadId, parts) {
    const list = parts.map(([n, etag]) => `<Part><PartNumber>${n}</PartNumber><ETag>${etag}</ETag></Part>`).join('');
    return this.call('POST', key, { query: { uploadId }, body: `<CompleteMultipartUpload>${list}</CompleteMultipartUpload>` });
  }

  abort(key, uploadId) {
    return this.call('DELETE', key, { query: { uploadId } });
  }
}
