import assert from 'node:assert/strict';
import test from 'node:test';
import { message, varint } from '../e2e/otlp_requests.mjs';
import { retryAfter, sender } from './sender.mjs';

const delay = (...bytes) => Buffer.concat([varint(1 * 8 + 2), varint(bytes.length), Buffer.from(bytes)]);
const details = (info) => Buffer.concat([Buffer.from([8, 14]), message(2, 'later'), message(3, message(1, 'x/google.rpc.RetryInfo'),
  message(2, info))]).toString('base64');
const http = (status, after) => ({ status, headers: after === undefined ? {} : { 'retry-after': after } });

test('retry: what the answer names', () => {
  assert.equal(retryAfter(http(429, '3')), 3);
  assert.equal(retryAfter(http(503, '0')), 0);
  for (const answer of [http(200), http(200, '3'), http(400, '3'), http(429), http(429, 'Mon, 30 Nov 2026 08:00:00 GMT')])
    assert.equal(retryAfter(answer), undefined);
  assert.equal(retryAfter({ status: 14, details: details(delay(8, 5)) }), 5);
  assert.equal(retryAfter({ status: 14, details: details(delay(8, 0x90, 3)) }), 400);
  assert.equal(retryAfter({ status: 14, details: details(delay()) }), 0);
  assert.equal(retryAfter({ status: 14, details: Buffer.from([8, 14]).toString('base64') }), undefined);
  assert.equal(retryAfter({ status: 14 }), undefined);
});

test('a refused request is sent again after the time that is named, and counted', async () => {
  const rests = [], answers = [http(429, '2'), http(503, '1'), http(200)];
  const { counts, send } = sender({ rest: async (ms) => { rests.push(ms); } });
  assert.equal((await send(async () => answers.shift())).status, 200);
  assert.deepEqual(rests, [2000, 1000]);
  assert.deepEqual(counts, { refused: 2, waited_s: 3 });
  assert.equal((await send(async () => http(400))).status, 400);
  assert.deepEqual(counts, { refused: 2, waited_s: 3 });
});

test('what is refused for too long is given up', async () => {
  for (const [after, tries] of [['60', 3], ['0', 121]]) {
    let sent = 0;
    const { counts, send } = sender({ rest: async () => {} });
    assert.equal((await send(async () => (sent++, http(429, after)))).status, 429);
    assert.equal(sent, tries);
    assert.equal(counts.refused, tries - 1);
  }
});
