// A fake S3 store for tests: it verifies signatures, and fails as it is told.
//
//   node tests/s3_fake.mjs [--while-stdin]
//
// prints one line of JSON: endpoint, control, bucket, accessKey, secretKey, region. It ends with its input, if so wanted.
// Buckets are in the path, or before ".localhost" in Host. The clock, the keys and the failures are changed at the second
// address, `control`, with JSON and without signatures:
//
//   POST   /fault        { method, key, query, skip, count, ... }: the next `count` (1; -1 for ever) requests after `skip` (0)
//                        whose method is equal, whose key begins so, and whose query has this name, do as is said:
//                          delay: MS         answer so much later; -1: never
//                          status, code, headers   refuse, without doing it; `early`: before the body is read
//                          drop: "before" or "after" the work is done: the connection ends without an answer
//                          cut: N            the connection ends after N bytes of the body
//                          reset: true       ... is reset instead of ended (drop, cut)
//                          pause: N          N bytes of the body, then silence
//                          rate: N           the body comes with N bytes a second
//                          flip: N           the Nth byte of the body is another
//                          body: TEXT        instead of the body
//                        several requests take the first fault that fits; the answer has its `id`
//   GET    /faults       all that remain; DELETE forgets them
//   GET    /requests     all so far: method, bucket, key, query, range, accessKey, size, status, code; DELETE forgets them
//   POST   /clock        { skew }: the store's clock, in ms against the real one
//   POST   /credentials  { accessKey, secretKey, token, expires, policy }: more keys; expires is a time in ms of the store's clock;
//                        policy: what they may do, a document of Amazon's (effect, actions and resources with "*"), else all
//   DELETE /credentials/ACCESSKEY
//   POST   /options      ignoreConditions (false), quota (bytes), partSizeMin, region, identityToken, identitySeconds
//   GET    /objects      keys and sizes; GET, PUT, DELETE /objects/KEY: behind the client's back
//
// With identityToken, POST / answers AssumeRoleWithWebIdentity with keys that expire after identitySeconds.
import { timingSafeEqual, randomBytes } from 'node:crypto';
import http from 'node:http';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { S3Error, S3Store, xml } from './s3_store.mjs';
import { amzTime, canonicalRequest, sha256, signature } from './s3_sign.mjs';

const skewMax = 15 * 60 * 1000;
const bodySizeMax = 256 * 2 ** 20;

const denied = (code, message, more) => new S3Error(403, code, message, more);

/** Percent-decodes UTF-8, or refuses. */
function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new S3Error(400, 'InvalidURI', `The specified URI couldn't be parsed: ${text}`);
  }
}

/** Pairs of a query, in order; '+' is a blank here. */
function parseQuery(text) {
  return text.split('&').filter(Boolean).map((pair) => {
    const at = pair.indexOf('=');
    const [k, v] = at < 0 ? [pair, ''] : [pair.slice(0, at), pair.slice(at + 1)];
    return [k, v].map((part) => decode(part.replaceAll('+', ' ')));
  });
}

function readAll(stream) {
  return new Promise((done, fail) => {
    const chunks = [];
    let size = 0;
    stream.on('data', (c) => {
      size += c.length;
      if (size > bodySizeMax) fail(new S3Error(400, 'EntityTooLarge', `more than ${bodySizeMax} bytes`));
      else chunks.push(c);
    });
    stream.on('end', () => done(Buffer.concat(chunks)));
    stream.on('error', fail);
    stream.on('close', () => fail(new Error('the client went away')));
  });
}

// ---- policies

const arn = (bucket, key) => `arn:aws:s3:::${bucket}${key ? `/${key}` : ''}`;
const list = (v) => [v].flat();
const fits = (pattern, value) => new RegExp(`^${pattern.split('*').map((s) => s.replace(/[.?+^$()[\]{}|\\]/g, '\\$&')).join('.*')}$`).test(value);
const allows = (policy, action, resource) => policy.Statement.some((s) => s.Effect === 'Allow'
  && list(s.Action).some((a) => fits(a, action)) && list(s.Resource).some((r) => fits(r, resource)));

/** The right that a request wants. */
function rightOf({ method, key, query }) {
  if (key === '') return 's3:ListBucket';
  if (method === 'DELETE') return query.has('uploadId') ? 's3:AbortMultipartUpload' : 's3:DeleteObject';
  return method === 'PUT' || method === 'POST' ? 's3:PutObject' : 's3:GetObject';
}

function refused(policy, request) {
  const right = rightOf(request);
  if (allows(policy, right, arn(request.bucket, request.key))) return undefined;
  throw denied('AccessDenied', `not authorized to perform: ${right} on resource: "${arn(request.bucket, request.key)}"`);
}

export class S3Fake {
  constructor({ bucket = 'profiles', accessKey = 'AKFAKE', secretKey = 'fake/secret+key', region = 'us-east-1' } = {}) {
    Object.assign(this, { bucket, accessKey, secretKey, region, skew: 0, faults: [], requests: [], nextFault: 1 });
    this.keys = new Map([[accessKey, { secretKey }]]);
    this.store = new S3Store(() => this.now());
    this.store.answer({ method: 'PUT', bucket, key: '' });
    this.identitySeconds = 3600;
    this.servers = [http.createServer((req, res) => this.serve(req, res)), http.createServer((req, res) => this.command(req, res))];
    for (const server of this.servers) server.on('clientError', (_, socket) => socket.destroy());
  }

  now() {
    return Date.now() + this.skew;
  }

  async listen() {
    [this.endpoint, this.control] = await Promise.all(this.servers.map((server) => new Promise((done) => {
      server.listen(0, '127.0.0.1', () => done(`http://127.0.0.1:${server.address().port}`));
    })));
    return this;
  }

  close() {
    for (const server of this.servers) {
      server.close();
      server.closeAllConnections();
    }
  }

  // ---- one request

  async serve(req, res) {
    res.on('error', () => {});
    res.sendDate = false;
    const seen = { method: req.method, size: 0 };
    this.requests.push(seen);
    let fault = {};
    let answer;
    try {
      const request = this.parse(req);
      Object.assign(seen, { bucket: request.bucket, key: request.key, query: Object.fromEntries(request.pairs), range: req.headers.range });
      fault = this.takeFault(seen);
      if (fault.early) answer = this.refusal(fault);
      request.body = fault.early ? Buffer.alloc(0) : await readAll(req);
      seen.size = request.body.length;
      if (fault.drop === 'before') return this.hangUp(res, fault);
      answer ??= fault.status ? this.refusal(fault) : this.work(request, seen);
      if (fault.drop === 'after') return this.hangUp(res, fault);
    } catch (e) {
      if (!(e instanceof S3Error)) { // also of a client that went away
        seen.code = e.message;
        return res.destroy();
      }
      answer = this.error(e, req.url);
    }
    seen.status = answer.status;
    seen.code = answer.code;
    return this.send(res, answer, fault, req.method);
  }

  /** Bucket, key and query of a request. Its path is decoded once. */
  parse(req) {
    const at = req.url.indexOf('?');
    const path = decode(at < 0 ? req.url : req.url.slice(0, at));
    const pairs = at < 0 ? [] : parseQuery(req.url.slice(at + 1));
    const host = /^(.+)\.localhost(:\d+)?$/.exec(req.headers.host ?? '');
    const rest = path.slice(1);
    const slash = rest.indexOf('/');
    const [bucket, key] = host ? [host[1], rest] : slash < 0 ? [rest, ''] : [rest.slice(0, slash), rest.slice(slash + 1)];
    return { method: req.method, path, pairs, query: new Map(pairs), bucket, key, headers: req.headers };
  }

  work(request, seen) {
    if (request.method === 'POST' && request.bucket === '') return this.assumeRole(request);
    seen.accessKey = this.verify(request);
    const { policy } = this.keys.get(seen.accessKey);
    const answer = (policy && refused(policy, request)) || this.store.answer(request);
    // Who may not list a bucket may not know that an object is missing.
    if (policy && answer.status === 404 && !allows(policy, 's3:ListBucket', arn(request.bucket))) throw denied('AccessDenied', 'Access Denied');
    return answer;
  }

  error(e, resource) {
    const elements = [['Code', e.code], ['Message', e.message], ['Resource', resource], ...Object.entries(e.more)];
    return { status: e.status, code: e.code, headers: { 'content-type': 'application/xml' },
      body: Buffer.from(`<?xml version="1.0" encoding="UTF-8"?>\n${xml([['Error', elements]])}`) };
  }

  // ---- signatures

  /** The access key of a request that is signed well. */
  verify({ method, path, pairs, headers, body }) {
    const auth = headers.authorization;
    if (auth === undefined) throw denied('AccessDenied', 'The request is not signed');
    const m = /^AWS4-HMAC-SHA256 +Credential=([^/ ,]+)\/([^ ,]+), *SignedHeaders=([^ ,]+), *Signature=([0-9a-f]{64})$/.exec(auth);
    if (!m) throw new S3Error(400, 'AuthorizationHeaderMalformed', 'The authorization header is malformed');
    const [, accessKey, scope, names, given] = m;
    const time = headers['x-amz-date'];
    this.checkTime(time);
    if (scope !== `${time.slice(0, 8)}/${this.region}/s3/aws4_request`) {
      throw new S3Error(400, 'AuthorizationHeaderMalformed', `The scope is ${scope}; expecting '${this.region}'`, { Region: this.region });
    }
    const keys = this.keys.get(accessKey);
    if (!keys) throw denied('InvalidAccessKeyId', 'The access key does not exist', { AWSAccessKeyId: accessKey });
    const signed = names.split(';');
    for (const name of ['host', ...Object.keys(headers).filter((h) => h.startsWith('x-amz-'))]) {
      if (!signed.includes(name)) throw denied('AccessDenied', `There were headers present which were not signed: ${name}`);
    }
    if (signed.some((name) => headers[name] === undefined)) throw denied('SignatureDoesNotMatch', 'A signed header is missing');
    const payloadHash = headers['x-amz-content-sha256'];
    if (payloadHash === undefined) throw new S3Error(400, 'InvalidRequest', 'x-amz-content-sha256 is missing');
    const canonical = canonicalRequest({ method, path, query: pairs, headers, signed: [...signed].sort(), payloadHash });
    const wanted = signature({ secretKey: keys.secretKey, time, scope, canonical });
    if (!timingSafeEqual(Buffer.from(given), Buffer.from(wanted))) {
      throw denied('SignatureDoesNotMatch', 'The signature does not match', { CanonicalRequest: canonical });
    }
    if (keys.token !== headers['x-amz-security-token']) throw new S3Error(400, 'InvalidToken', 'The provided token is malformed or otherwise invalid');
    if (keys.expires <= this.now()) throw new S3Error(400, 'ExpiredToken', 'The provided token has expired');
    this.checkPayload(payloadHash, body);
    return accessKey;
  }

  checkTime(time) {
    const m = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/.exec(time ?? '');
    if (!m) throw denied('AccessDenied', 'x-amz-date is missing or malformed');
    const off = Date.UTC(m[1], m[2] - 1, m[3], m[4], m[5], m[6]) - this.now();
    if (Math.abs(off) > skewMax) {
      throw denied('RequestTimeTooSkewed', "The difference between the request time and the server's time is too large",
        { RequestTime: time, ServerTime: amzTime(this.now()), MaxAllowedSkewMilliseconds: skewMax });
    }
  }

  checkPayload(hash, body) {
    if (hash === 'UNSIGNED-PAYLOAD') return;
    if (!/^[0-9a-f]{64}$/.test(hash)) throw new S3Error(501, 'NotImplemented', `x-amz-content-sha256: ${hash} is not implemented`);
    if (hash !== sha256(body)) throw new S3Error(400, 'XAmzContentSHA256Mismatch', 'The provided x-amz-content-sha256 does not match');
  }

  assumeRole({ body }) {
    const form = new Map(parseQuery(body.toString()));
    if (form.get('Action') !== 'AssumeRoleWithWebIdentity' || this.identityToken === undefined) {
      throw new S3Error(501, 'NotImplemented', `Action ${form.get('Action')} is not implemented`);
    }
    if (!form.get('RoleArn') || !form.get('RoleSessionName')) throw new S3Error(400, 'ValidationError', 'RoleArn or RoleSessionName is missing');
    if (form.get('WebIdentityToken') !== this.identityToken) throw new S3Error(400, 'InvalidIdentityToken', 'The token is not valid');
    const accessKey = `ASIA${randomBytes(8).toString('hex').toUpperCase()}`;
    const keys = { secretKey: randomBytes(20).toString('base64'), token: randomBytes(60).toString('base64'),
      expires: this.now() + this.identitySeconds * 1000 };
    this.keys.set(accessKey, keys);
    const credentials = [['AccessKeyId', accessKey], ['SecretAccessKey', keys.secretKey], ['SessionToken', keys.token],
      ['Expiration', new Date(keys.expires).toISOString()]];
    const text = xml([['AssumeRoleWithWebIdentityResponse', [['AssumeRoleWithWebIdentityResult', [['Credentials', credentials]]]]]]);
    return { status: 200, headers: { 'content-type': 'text/xml' }, body: Buffer.from(text) };
  }

  // ---- failures

  takeFault(seen) {
    const fault = this.faults.find((f) => (f.method === undefined || f.method === seen.method)
      && (f.key === undefined || seen.key.startsWith(f.key)) && (f.query === undefined || f.query in seen.query) && f.skip-- <= 0);
    if (fault && fault.count > 0 && --fault.count === 0) this.faults = this.faults.filter((f) => f !== fault);
    return fault ?? {};
  }

  refusal({ status, code = 'SlowDown', headers = {} }) {
    const answer = this.error(new S3Error(status, code, `Refused with ${code}`), '');
    return { ...answer, headers: { ...answer.headers, ...headers } };
  }

  hangUp(res, { reset }) {
    if (reset) res.socket?.resetAndDestroy();
    else res.socket?.destroy();
  }

  async send(res, answer, fault, method) {
    if (fault.delay < 0) return;
    if (fault.delay) await this.wait(res, fault.delay);
    let body = Buffer.from(fault.body ?? answer.body ?? '');
    if (fault.flip < body.length) body[fault.flip] ^= 1;
    const bare = method === 'HEAD' || answer.status === 204 || answer.status === 304;
    const headers = { date: new Date(this.now()).toUTCString(), 'x-amz-request-id': randomBytes(8).toString('hex'), ...answer.headers };
    if (answer.status !== 204 && answer.status !== 304) headers['content-length'] = body.length;
    if (fault.early) headers.connection = 'close';
    res.writeHead(answer.status, headers);
    if (bare) {
      res.end();
      return;
    }
    const stop = fault.cut ?? fault.pause;
    const part = stop === undefined ? body : body.subarray(0, stop);
    if (fault.rate) await this.drip(res, part, fault.rate);
    else await new Promise((done) => (part.length ? res.write(part, done) : (res.flushHeaders(), done())));
    if (fault.cut !== undefined) this.hangUp(res, fault);
    else if (fault.pause === undefined) res.end();
  }

  async drip(res, bytes, rate) {
    const step = Math.max(1, Math.floor(rate / 20));
    for (let at = 0; at < bytes.length && !res.destroyed; at += step) {
      res.write(bytes.subarray(at, at + step));
      await this.wait(res, 1000 * step / rate);
    }
  }

  wait(res, ms) {
    return new Promise((done) => {
      const timer = setTimeout(done, ms);
      res.on('close', () => {
        clearTimeout(timer);
        done();
      });
    });
  }

  // ---- commands

  async command(req, res) {
    let status = 200;
    let answer;
    try {
      const body = await readAll(req);
      answer = this.obey(req.method, req.url, body);
    } catch (e) {
      status = 400;
      answer = { error: e.message };
    }
    const bytes = Buffer.isBuffer(answer) ? answer : Buffer.from(`${JSON.stringify(answer ?? {})}\n`);
    res.writeHead(status, { 'content-length': bytes.length });
    res.end(bytes);
  }

  obey(method, url, body) {
    const [, what, ...rest] = url.split('/');
    const name = decode(rest.join('/'));
    if (what === 'objects') return this.touch(method, name, body);
    if (method === 'DELETE' && what === 'credentials') return void this.keys.delete(name);
    const command = this.commands[`${method} /${what}`];
    if (!command) throw new Error(`no command: ${method} ${url}`);
    return command.call(this, body.length ? JSON.parse(body) : {});
  }

  commands = {
    'POST /fault'(fault) {
      const known = ['method', 'key', 'query', 'skip', 'count', 'delay', 'status', 'code', 'headers', 'early', 'drop', 'cut', 'reset',
        'pause', 'rate', 'flip', 'body'];
      const other = Object.keys(fault).find((name) => !known.includes(name));
      if (other) throw new Error(`a fault has no ${other}`);
      const id = this.nextFault++;
      this.faults.push({ skip: 0, count: 1, ...fault, id });
      return { id };
    },
    'GET /faults'() { return this.faults; },
    'DELETE /faults'() { this.faults = []; },
    'GET /requests'() { return this.requests; },
    'DELETE /requests'() { this.requests = []; },
    'POST /clock'({ skew }) { this.skew = skew; },
    'POST /credentials'({ accessKey, ...keys }) { this.keys.set(accessKey, keys); },
    'POST /options'(options) {
      for (const [name, value] of Object.entries(options)) {
        const owner = ['ignoreConditions', 'quota', 'partSizeMin'].includes(name) ? this.store : this;
        if (owner === this && !['region', 'identityToken', 'identitySeconds'].includes(name)) throw new Error(`no option ${name}`);
        owner[name] = value;
      }
    },
  };

  touch(method, key, body) {
    const b = this.store.find(this.bucket);
    if (key === '') return [...b.objects].map(([name, o]) => ({ key: name, size: o.bytes.length, etag: o.etag }));
    if (method === 'PUT') return void this.store.set(b, key, body, {});
    if (!b.objects.has(key)) throw new Error(`no object ${key}`);
    if (method === 'DELETE') return void b.objects.delete(key);
    return b.objects.get(key).bytes;
  }
}

if (process.argv[1] && import.meta.url === pathToFileURL(resolve(process.argv[1])).href) {
  const fake = await new S3Fake().listen();
  if (process.argv.includes('--while-stdin')) process.stdin.on('end', () => process.exit(0)).resume();
  const { endpoint, control, bucket, accessKey, secretKey, region } = fake;
  console.log(JSON.stringify({ endpoint, control, bucket, accessKey, secretKey, region }));
}
