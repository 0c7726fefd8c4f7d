// OTLP of async-profiler, which names no process and packs no numbers; of a release that is too old; and what is refused, counted and
// logged. Over HTTP and over gRPC.
import test from 'node:test';
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import { api, join, query, request, root, scratch, startServer, until } from './lib.mjs';
import { call, connect, grpcPort, recorded } from './otlp_requests.mjs';

const ARGS = ['--web.enable-ingest', '--web.otlp-grpc-listen-address=127.0.0.1:0'];
const OLD = 'profiles of OTLP before 1.8 are not supported, only 1.8 to 1.11: field 3 of a profile is not its timeUnixNano; ' +
  'update the sender';

const start = (t) => startServer(t, { dir: scratch(t), config: 'scrape_configs: []\n', args: ARGS });

const post = (server, body, type = 'application/x-protobuf') => request(`${server.url}/v1development/profiles`,
  { method: 'POST', headers: { 'Content-Type': type }, body });

async function refused(server) {
  const text = (await request(`${server.url}/metrics`)).body.toString();
  return Object.fromEntries([...text.matchAll(/^epimetheus_ingest_refused_profiles_total\{reason="(.*)"\} (\d+)$/gm)]
    .map(([, reason, n]) => [reason, Number(n)]));
}

/** The first line that the log has of a refusal. */
const logged = (server) => until('a line in the log', 60,
  () => server.err.split('\n').slice(0, -1).find((line) => line.includes('msg="pushed profiles refused"')));

test('what async-profiler sends is stored as an unknown service at its address', async (t) => {
  for (const grpc of [false, true]) {
    const server = await start(t), now = Date.now() - 60000;
    const body = recorded('async-profiler-4.6').at(now);
    if (grpc) {
      const answer = await call(connect(t, `http://127.0.0.1:${grpcPort(server)}`), body);
      assert.equal(answer.status, 0, answer.message);
      assert.deepEqual(answer.body, Buffer.alloc(5)); // nothing is left out
    } else {
      const res = await post(server, body);
      assert.deepEqual([res.status, res.body.toString()], [200, '']);
    }
    const time = now / 1000 + 30;
    const metric = { instance: '127.0.0.1', job: 'unknown_service', service_name: 'unknown_service' };
    const total = await query(server, 'total(itimer:itimer:count[1h])', { time });
    assert.deepEqual(total.result.map((r) => [r.metric, r.value[1]]), [[metric, '109']]);
    const series = await api(server, 'series', { 'match[]': '{job="unknown_service"}', time });
    assert.deepEqual(series, [{ __name__: 'itimer', ...metric }]);
    const merged = (await query(server, 'merge(itimer:itimer:count[1h])', { time })).result;
    assert.deepEqual(merged.map((r) => [r.unit, r.total, r.profiles]), [['count', 109, 1]]);
    assert.deepEqual(await refused(server), {});
  }
});

test('a release before 1.8 is refused by name, counted and logged', async (t) => {
  const server = await start(t);
  const body = gunzipSync(readFileSync(join(root, 'tests/proto/otlp/testdata/otlp-1.7.pb.gz')));
  for (let i = 0; i < 3; i++) {
    const res = await post(server, body);
    assert.equal(res.status, 415);
    assert.ok(res.body.toString().includes(OLD), res.body.toString());
  }
  assert.deepEqual(await refused(server), { unsupported: 3 });
  const answer = await call(connect(t, `http://127.0.0.1:${grpcPort(server)}`), body);
  assert.deepEqual([answer.status, answer.message], [3, OLD]);
  assert.deepEqual(await refused(server), { unsupported: 4 });
  const line = await logged(server);
  assert.match(line, /level=warn component=receive .* sender=127\.0\.0\.1 path=\/v1development\/profiles profiles=1 /);
  assert.ok(line.endsWith(`reason=unsupported err="${OLD}"`), line);
});

test('a refusal in part is counted and logged too', async (t) => {
  const server = await start(t), time = String(BigInt(Date.now() - 60000) * 1000000n);
  const profile = (values) => ({ sampleType: { typeStrindex: 1, unitStrindex: 2 }, timeUnixNano: time, samples: [{ values }] });
  const res = await post(server, JSON.stringify({
    dictionary: { stringTable: ['', 'samples', 'count'] },
    resourceProfiles: [{ scopeProfiles: [{ profiles: [profile([1]), profile([1, 2]), profile([]), profile([7])] }] }],
  }), 'application/json');
  const why = 'resourceProfiles[0].scopeProfiles[0].profiles[1]: samples[0]: 2 values for 0 timestamps';
  assert.deepEqual([res.status, JSON.parse(res.body)], [200, { partialSuccess: { rejectedProfiles: '2', errorMessage: why } }]);
  assert.deepEqual(await refused(server), { 'invalid input': 2 });
  const line = await logged(server);
  assert.ok(line.endsWith(`profiles=2 reason="invalid input" err="${why}"`), line);
});
