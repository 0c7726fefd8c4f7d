// What every S3 store must do: these run against Ceph and against the fake, so that the two agree.
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';

const md5 = (bytes) => createHash('md5').update(bytes).digest('hex');
const minute = 60 * 1000;
const mebibyte = 2 ** 20;

async function refused(what, status, code, answer) {
  const { status: got, code: gotCode } = await answer;
  assert.deepEqual([got, gotCode], [status, code], what);
}

async function objects(s3) {
  const bytes = Buffer.from('0123456789');
  for (const key of ['plain', "odd/a b+c=d&e%25?~*'()!@$:;,#", 'grüße/日本', 'dots/../.', 'k'.repeat(1000)]) {
    await refused(key, 404, 'NoSuchKey', s3.call('GET', key));
    assert.equal(await s3.put(key, bytes, { 'x-amz-meta-shard': 'one' }), `"${md5(bytes)}"`);
    assert.deepEqual(await s3.get(key), bytes);
    const head = await s3.head(key);
    assert.equal(head.status, 200);
    assert.deepEqual([head.headers['content-length'], head.headers.etag, head.headers['x-amz-meta-shard']], ['10', `"${md5(bytes)}"`, 'one']);
    assert.ok(Math.abs(Date.parse(head.headers['last-modified']) - Date.now()) < 10 * minute);
    await s3.put(key, 'other');
    assert.equal((await s3.get(key)).toString(), 'other');
    await s3.remove(key);
    await s3.remove(key);
    assert.equal((await s3.head(key)).status, 404);
  }
  assert.equal((await s3.put('empty', '')).length, 34);
  assert.equal((await s3.get('empty')).length, 0);
  await refused('no bucket', 404, 'NoSuchBucket', s3.with({ bucket: 'none' }).call('GET', 'plain'));
  await refused('a body that its MD5 does not fit', 400, 'BadDigest', s3.call('PUT', 'bad', { body: 'a',
    headers: { 'content-md5': createHash('md5').update('b').digest('base64') } }));
  assert.equal((await s3.head('bad')).status, 404);
}

async function ranges(s3) {
  const bytes = randomBytes(5 * mebibyte); // Ceph keeps the first 4 MiB apart
  await s3.put('large', bytes);
  assert.deepEqual(await s3.get('large'), bytes);
  for (const [text, from, to] of [['bytes=0-0', 0, 1], ['bytes=2-4', 2, 5], ['bytes=4194300-4194310', 4194300, 4194311],
    ['bytes=5242870-', 5242870, 5242880], ['bytes=5242870-9999999', 5242870, 5242880], ['bytes=-3', 5242877, 5242880]]) {
    const answer = await s3.call('GET', 'large', { headers: { range: text } });
    assert.equal(answer.status, 206, text);
    assert.equal(answer.headers['content-range'], `bytes ${from}-${to - 1}/5242880`);
    assert.equal(answer.headers.etag, `"${md5(bytes)}"`);
    assert.deepEqual(answer.body, bytes.subarray(from, to));
  }
  await refused('behind the end', 416, 'InvalidRange', s3.call('GET', 'large', { headers: { range: 'bytes=5242880-' } }));
  const etag = `"${md5(bytes)}"`;
  assert.equal((await s3.call('GET', 'large', { headers: { range: 'bytes=0-3', 'if-match': etag } })).status, 206);
  await refused('of another object', 412, 'PreconditionFailed', s3.call('GET', 'large', { headers: { 'if-match': `"${md5('x')}"` } }));
  assert.equal((await s3.call('GET', 'large', { headers: { 'if-none-match': etag } })).status, 304);
}

async function lists(s3) {
  const names = ['Z', 'a', 'a-', 'a/1', 'a/2', 'a/b/3', 'b<&>"', 'ä'].map((name) => `list/${name}`);
  for (const name of [...names].reverse()) await s3.put(name, name);
  const all = await s3.list({ prefix: 'list/' });
  assert.deepEqual(all.keys, names); // by bytes
  assert.deepEqual(all.sizes, names.map((name) => Buffer.byteLength(name)));
  assert.deepEqual(all.etags, names.map((name) => `"${md5(name)}"`));
  assert.equal(all.truncated, false);
  const levels = await s3.list({ prefix: 'list/', delimiter: '/' });
  assert.deepEqual([levels.keys, levels.prefixes], [names.filter((name) => !name.startsWith('list/a/')), ['list/a/']]);
  assert.deepEqual((await s3.list({ prefix: 'list/a/', delimiter: '/' })).prefixes, ['list/a/b/']);
  assert.deepEqual((await s3.list({ prefix: 'list/', 'start-after': 'list/a' })).keys, names.slice(2));
  assert.deepEqual((await s3.list({ prefix: 'nothing/' })).keys, []);
  for (const size of [1, 3, 8]) assert.deepEqual(await s3.keys({ prefix: 'list/', 'max-keys': size }), names);
  const first = await s3.list({ prefix: 'list/', 'max-keys': 3 });
  assert.deepEqual([first.keys, first.truncated], [names.slice(0, 3), true]);
  const seen = [];
  for (let token; ;) { // a common prefix counts as one, on one page only
    const page = await s3.list({ prefix: 'list/', delimiter: '/', 'max-keys': 2, ...(token && { 'continuation-token': token }) });
    assert.ok(page.keys.length + page.prefixes.length <= 2);
    seen.push(...page.keys, ...page.prefixes);
    token = page.next;
    if (!page.truncated) break;
  }
  assert.deepEqual(seen.sort(), [...levels.keys, 'list/a/'].sort());
}

/** Writers at once with one condition: one writes, the others are refused, and its bytes are there. */
async function race(s3, key, headers) {
  const bodies = Array.from({ length: 8 }, (_, i) => `writer ${i} ${randomBytes(8).toString('hex')}`); // equal bytes have equal etags
  const answers = await Promise.all(bodies.map((body) => s3.call('PUT', key, { body, headers })));
  const winners = answers.flatMap((a, i) => (a.status === 200 ? [i] : []));
  assert.equal(winners.length, 1, JSON.stringify(answers.map((a) => [a.status, a.code])));
  // 412 is the rule, 409 AWS's when two come at once, 500 Ceph 16's to who loses an If-Match within its write.
  for (const a of answers) assert.ok([200, 409, 412, 500].includes(a.status), `${a.status} ${a.code}`);
  assert.equal((await s3.get(key)).toString(), bodies[winners[0]]);
  return answers[winners[0]].headers.etag;
}

/** The condition that an object is unchanged. Ceph 16 compares without quotes where it writes; AWS takes both. */
const unchanged = (etag) => ({ 'if-match': etag.replaceAll('"', '') });

async function conditions(s3) {
  const none = { 'if-none-match': '*' };
  const etag = await s3.put('lease', 'first', none);
  await refused('it is there', 412, 'PreconditionFailed', s3.call('PUT', 'lease', { body: 'second', headers: none }));
  assert.equal((await s3.get('lease')).toString(), 'first');
  const next = await s3.put('lease', 'second', unchanged(etag));
  assert.notEqual(next, etag);
  await refused('it has changed', 412, 'PreconditionFailed', s3.call('PUT', 'lease', { body: 'third', headers: unchanged(etag) }));
  assert.equal((await s3.get('lease')).toString(), 'second');
  const gone = await s3.call('PUT', 'no lease', { body: 'first', headers: unchanged(etag) });
  assert.ok([404, 412].includes(gone.status), `${gone.status}`); // stores differ
  assert.equal((await s3.head('no lease')).status, 404);
  await s3.remove('lease');
  let owner = await race(s3, 'lease', none);
  for (let i = 0; i < 3; i++) owner = await race(s3, 'lease', unchanged(owner));
}

async function signatures(s3) {
  const put = (store, options) => store.call('PUT', 'signed', { body: 'bytes', ...options });
  await refused('another secret', 403, 'SignatureDoesNotMatch', put(s3.with({ secretKey: `${s3.secretKey}x` })));
  await refused('an unknown key', 403, 'InvalidAccessKeyId', put(s3.with({ accessKey: 'AKNOBODY' })));
  for (const skew of [-20 * minute, 20 * minute]) await refused('a skewed clock', 403, 'RequestTimeTooSkewed', put(s3.with({ skew })));
  await refused('no signature', 403, 'AccessDenied', put(s3, { change: (r) => delete r.headers.authorization }));
  await refused('another key', 403, 'SignatureDoesNotMatch', put(s3, { change: (r) => (r.path = r.path.replace('signed', 'changed')) }));
  await refused('another body', 400, 'XAmzContentSHA256Mismatch', put(s3, { change: (r) => (r.body = Buffer.from('bites')) }));
  await refused('another query', 403, 'SignatureDoesNotMatch', s3.call('GET', undefined, { query: { 'list-type': '2' },
    change: (r) => (r.path += '&prefix=a') }));
  for (const key of ['signed', 'changed']) assert.equal((await s3.head(key)).status, 404);
  assert.equal((await put(s3.with({ skew: 13 * minute }))).status, 200);
  assert.equal((await put(s3, { unsigned: true })).status, 200);
  assert.equal((await s3.get('signed')).toString(), 'bytes');
}

async function parts(s3) {
  const bytes = [randomBytes(5 * mebibyte), randomBytes(5 * mebibyte), randomBytes(1000)];
  const upload = async (key, all) => {
    const id = await s3.begin(key);
    const etags = await Promise.all(all.map((b, i) => s3.part(key, id, i + 1, b)));
    return [id, etags.map((etag, i) => [i + 1, etag])];
  };
  const [id, list] = await upload('parts', bytes);
  assert.equal((await s3.head('parts')).status, 404);
  assert.deepEqual(list.map(([, etag]) => etag), bytes.map((b) => `"${md5(b)}"`));
  await refused('another etag', 400, 'InvalidPart', s3.complete('parts', id, [list[0], [2, list[0][1]]]));
  const done = await s3.complete('parts', id, list);
  assert.equal(done.status, 200, done.body.toString());
  const etag = md5(Buffer.concat(bytes.map((b) => Buffer.from(md5(b), 'hex'))));
  assert.equal((await s3.head('parts')).headers.etag, `"${etag}-3"`);
  assert.deepEqual(await s3.get('parts'), Buffer.concat(bytes));
  const range = await s3.get('parts', { range: 'bytes=5242878-10485762' });
  assert.deepEqual(range, Buffer.concat(bytes).subarray(5242878, 10485763));
  const [aborted, parted] = await upload('aborted', [Buffer.from('a')]);
  assert.equal((await s3.abort('aborted', aborted)).status, 204);
  const late = await s3.complete('aborted', aborted, parted);
  assert.ok([404, 500].includes(late.status), `${late.status}`); // 500 is Ceph's
  const [small, smallParts] = await upload('small', [Buffer.from('a'), Buffer.from('b')]);
  await refused('a small first part', 400, 'EntityTooSmall', s3.complete('small', small, smallParts));
  assert.equal((await s3.abort('small', small)).status, 204);
  for (const key of ['aborted', 'small']) assert.equal((await s3.head(key)).status, 404);
}

/** All cases, as tests in t; `s3` has an empty bucket. */
export async function storeCases(t, s3) {
  await t.test('objects are put, read and deleted', () => objects(s3));
  await t.test('ranges', () => ranges(s3));
  await t.test('lists, by prefix, level and page', () => lists(s3));
  await t.test('conditional writes hold, also for writers at once', () => conditions(s3));
  await t.test('signatures and clocks are checked', () => signatures(s3));
  await t.test('objects in parts', () => parts(s3));
}
