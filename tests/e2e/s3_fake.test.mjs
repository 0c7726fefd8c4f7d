// The fake store does what Ceph does (s3_cases.mjs), and fails as it is told.
import test from 'node:test';
import assert from 'node:assert/strict';
import { join, programEnds, request, root, start, until } from './lib.mjs';
import { S3, texts } from '../s3_client.mjs';
import { S3Fake } from '../s3_fake.mjs';
import { encode, signature, canonicalRequest, sha256 } from '../s3_sign.mjs';
import { storeCases } from './s3_cases.mjs';

async function startFake(t, options) {
  const fake = await new S3Fake(options).listen();
  t.after(() => fake.close());
  return { fake, s3: new S3(fake), tell: teller(fake.control) };
}

/** Sends commands to the second address. */
function teller(control) {
  return async (method, path, value) => {
    const body = value === undefined || typeof value === 'string' ? value : JSON.stringify(value);
    const answer = await request(control + path, { method, body });
    if (answer.status !== 200) throw new Error(answer.body.toString());
    return path.startsWith('/objects/') ? answer.body : JSON.parse(answer.body);
  };
}

test('The fake is an S3 store', async (t) => {
  const { s3 } = await startFake(t);
  await storeCases(t, s3);
});

// The example of AWS's documents: a GET of a range.
test('A signature is that of the documents', () => {
  const scope = '20130524/us-east-1/s3/aws4_request';
  const headers = { host: 'examplebucket.s3.amazonaws.com', range: 'bytes=0-9', 'x-amz-date': '20130524T000000Z',
    'x-amz-content-sha256': sha256('') };
  const canonical = canonicalRequest({ method: 'GET', path: '/test.txt', query: [], headers, signed: Object.keys(headers).sort(),
    payloadHash: sha256('') });
  assert.equal(signature({ secretKey: 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY', time: '20130524T000000Z', scope, canonical }),
    'f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41');
});

test('Requests are refused, for a while, and as it is said', async (t) => {
  const { s3, tell } = await startFake(t);
  await s3.put('a/1', 'bytes');
  await tell('POST', '/fault', { method: 'GET', key: 'a/', status: 503, skip: 1, count: 2, headers: { 'retry-after': '1' } });
  const statuses = [];
  for (let i = 0; i < 4; i++) statuses.push((await s3.call('GET', 'a/1')).status);
  assert.deepEqual(statuses, [200, 503, 503, 200]);
  await tell('POST', '/fault', { method: 'PUT', status: 403, code: 'AccessDenied', count: -1 });
  for (let i = 0; i < 3; i++) assert.equal((await s3.call('PUT', 'a/1', { body: 'x' })).code, 'AccessDenied');
  assert.equal((await tell('GET', '/faults')).length, 1);
  await tell('DELETE', '/faults');
  await tell('POST', '/fault', { method: 'GET', query: 'list-type', status: 500, code: 'InternalError' });
  assert.equal((await s3.get('a/1')).toString(), 'bytes');
  assert.equal((await s3.call('GET', undefined, { query: { 'list-type': '2' } })).code, 'InternalError');
  await tell('POST', '/fault', { status: 503, early: true });
  const early = await s3.call('PUT', 'a/2', { body: 'x' });
  assert.deepEqual([early.status, early.code, early.headers.connection], [503, 'SlowDown', 'close']);
  const requests = await tell('GET', '/requests');
  assert.deepEqual(requests.map((r) => `${r.method} ${r.key} ${r.status} ${r.code ?? ''}`.trim()), ['PUT a/1 200', 'GET a/1 200',
    'GET a/1 503 SlowDown', 'GET a/1 503 SlowDown', 'GET a/1 200', ...Array(3).fill('PUT a/1 403 AccessDenied'), 'GET a/1 200',
    'GET  500 InternalError', 'PUT a/2 503 SlowDown']);
  await assert.rejects(tell('POST', '/fault', { stauts: 503 }), /a fault has no stauts/);
});

test('Connections end and bodies are cut', async (t) => {
  const { s3, tell } = await startFake(t);
  const bytes = Buffer.alloc(100000, 'b');
  await s3.put('a', bytes);
  for (const reset of [false, true]) {
    await tell('POST', '/fault', { method: 'GET', cut: 50000, reset });
    await assert.rejects(s3.get('a'), { code: 'ECONNRESET' });
    await tell('POST', '/fault', { method: 'PUT', drop: 'before', reset });
    await assert.rejects(s3.put('before', 'x'), { code: 'ECONNRESET' });
    assert.equal((await s3.head('before')).status, 404);
    await tell('POST', '/fault', { method: 'PUT', drop: 'after', reset });
    await assert.rejects(s3.put(`after ${reset}`, 'x'), { code: 'ECONNRESET' });
    assert.equal((await s3.head(`after ${reset}`)).status, 200); // done, but nobody was told
  }
  await tell('POST', '/fault', { method: 'GET', flip: 70000 });
  const flipped = await s3.get('a');
  assert.deepEqual([...flipped.keys()].filter((i) => flipped[i] !== bytes[i]), [70000]);
  await tell('POST', '/fault', { method: 'GET', body: 'not xml' });
  assert.equal((await s3.call('GET', undefined, { query: { 'list-type': '2' } })).body.toString(), 'not xml');
  assert.deepEqual(await s3.get('a'), bytes);
});

test('Answers come late, slowly, or never', async (t) => {
  const { s3, tell } = await startFake(t);
  await s3.put('a', Buffer.alloc(1000));
  const impatient = s3.with({ timeout: 300 });
  for (const fault of [{ delay: -1 }, { pause: 500 }, { delay: 60000 }]) {
    await tell('POST', '/fault', { method: 'GET', ...fault });
    await assert.rejects(impatient.get('a'), /no answer within 300 ms/, JSON.stringify(fault));
  }
  for (const fault of [{ delay: 400 }, { rate: 2000 }]) {
    await tell('POST', '/fault', { method: 'GET', ...fault });
    const began = performance.now();
    assert.equal((await s3.get('a')).length, 1000);
    assert.ok(performance.now() - began >= 380, JSON.stringify(fault));
  }
});

test('The clock is another, and keys end', async (t) => {
  const { fake, s3, tell } = await startFake(t);
  await tell('POST', '/clock', { skew: 20 * 60000 });
  const skewed = await s3.call('PUT', 'a', { body: 'x' });
  assert.deepEqual([skewed.status, skewed.code, texts(skewed.body, 'MaxAllowedSkewMilliseconds')], [403, 'RequestTimeTooSkewed', ['900000']]);
  assert.ok(Date.parse(skewed.headers.date) - Date.now() > 19 * 60000);
  await s3.with({ skew: 20 * 60000 }).put('a', 'x');
  await tell('POST', '/clock', { skew: 0 });
  await tell('POST', '/credentials', { accessKey: 'AKSHORT', secretKey: 's', token: 't', expires: Date.now() + 60000 });
  const short = s3.with({ accessKey: 'AKSHORT', secretKey: 's', token: 't' });
  await short.put('a', 'x');
  for (const token of ['u', undefined]) assert.equal((await short.with({ token }).call('GET', 'a')).code, 'InvalidToken');
  await tell('POST', '/clock', { skew: 61000 });
  assert.equal((await short.call('GET', 'a')).code, 'ExpiredToken');
  await tell('POST', '/clock', { skew: 0 });
  await tell('DELETE', '/credentials/AKSHORT');
  assert.equal((await short.call('GET', 'a')).code, 'InvalidAccessKeyId');
  const elsewhere = await s3.with({ region: 'eu-west-1' }).call('GET', 'a');
  assert.deepEqual([elsewhere.status, elsewhere.code, texts(elsewhere.body, 'Region')], [400, 'AuthorizationHeaderMalformed', [fake.region]]);
});

test('An identity becomes keys that expire', async (t) => {
  const { fake, s3, tell } = await startFake(t);
  const ask = (token) => request(fake.endpoint, { method: 'POST', body: Object.entries({ Action: 'AssumeRoleWithWebIdentity',
    Version: '2011-06-15', RoleArn: 'arn:aws:iam::1:role/r', RoleSessionName: 'test', WebIdentityToken: token })
    .map(([k, v]) => `${k}=${encode(v)}`).join('&') });
  assert.equal((await ask('jwt')).status, 501);
  await tell('POST', '/options', { identityToken: 'j.w+t', identitySeconds: 900 });
  assert.deepEqual(texts((await ask('other')).body, 'Code'), ['InvalidIdentityToken']);
  const xml = (await ask('j.w+t')).body;
  const [[accessKey], [secretKey], [token], [expiration]] = ['AccessKeyId', 'SecretAccessKey', 'SessionToken', 'Expiration']
    .map((name) => texts(xml, name));
  assert.ok(Math.abs(Date.parse(expiration) - Date.now() - 900000) < 60000);
  const mine = s3.with({ accessKey, secretKey, token });
  await mine.put('a', 'x');
  await tell('POST', '/clock', { skew: 901000 });
  assert.equal((await mine.with({ skew: 901000 }).call('GET', 'a')).code, 'ExpiredToken');
});

test('Stores that ignore conditions, that are full, and whose objects change behind our back', async (t) => {
  const { s3, tell } = await startFake(t);
  await s3.put('a', 'x');
  await tell('POST', '/options', { ignoreConditions: true, quota: 100 });
  await s3.put('a', 'y', { 'if-none-match': '*' });
  await s3.put('a', 'y', { 'if-match': '"other"' });
  const full = await s3.call('PUT', 'b', { body: 'b'.repeat(100) });
  assert.deepEqual([full.status, full.code], [403, 'QuotaExceeded']);
  await tell('PUT', '/objects/c/d%20e', 'bytes');
  assert.equal((await s3.get('c/d e')).toString(), 'bytes');
  assert.deepEqual((await tell('GET', '/objects')).map((o) => [o.key, o.size]), [['a', 1], ['c/d e', 5]]);
  assert.equal((await tell('GET', '/objects/c/d%20e')).toString(), 'bytes');
  await tell('DELETE', '/objects/a');
  assert.equal((await s3.head('a')).status, 404);
  await assert.rejects(tell('POST', '/options', { quoat: 1 }), /no option quoat/);
});

test('The bucket may be in the name of the host', async (t) => {
  const { fake, s3 } = await startFake(t);
  await s3.put('a/b', 'x');
  const own = s3.with({ bucket: 'a' }); // the path is /a/b, and the host names the bucket
  const host = `${fake.bucket}.localhost:${new URL(fake.endpoint).port}`;
  assert.equal((await own.call('GET', 'b', { headers: { host } })).status, 200);
});

test('The program tells its addresses and ends with its input', async (t) => {
  const run = start(t, 'node', [join(root, 'tests/s3_fake.mjs'), '--while-stdin'], { stdio: ['pipe', 'pipe', 'pipe'] });
  const store = JSON.parse(await until('its addresses', 20, () => run.out.includes('\n') && run.out));
  await new S3(store).put('a', 'x');
  assert.equal((await teller(store.control)('GET', '/requests')).length, 1);
  run.child.stdin.end();
  assert.equal((await programEnds(run)).code, 0);
});
