import assert from 'node:assert/strict';
import test from 'node:test';
import { bucketUse, cpuOfThread, kindOfThread, less, metricsOf, shareOf } from './counters.mjs';

const PAGE = `# HELP epimetheus_bucket_requests_total Requests to the object store, repeated ones included.
# TYPE epimetheus_bucket_requests_total counter
epimetheus_bucket_requests_total{operation="get"} 12
epimetheus_bucket_requests_total{operation="head"} 3
epimetheus_bucket_received_bytes_total{operation="get"} 1.5e+06
epimetheus_bucket_received_bytes_total{operation="list"} 700
up_text{path="/a b"} 4
alone 7
`;

test('metrics are found by name and labels, with spaces in labels, without comments', () => {
  const metrics = metricsOf(PAGE);
  assert.equal(metrics.size, 6);
  assert.equal(metrics.get('alone'), 7);
  assert.equal(metrics.get('up_text{path="/a b"}'), 4);
  assert.equal(metrics.get('epimetheus_bucket_requests_total{operation="head"}'), 3);
});

test('use of the bucket: gets alone; nothing asked is 0', () => {
  assert.deepEqual(bucketUse(metricsOf(PAGE)), { gets: 12, bytes: 1.5e6 });
  assert.deepEqual(bucketUse(metricsOf('alone 7\n')), { gets: 0, bytes: 0 });
});

test('differences, also of what was not there before', () => {
  assert.deepEqual(less({ gets: 12, bytes: 50 }, { gets: 10, bytes: 50 }), { gets: 2, bytes: 0 });
  assert.deepEqual(less({ web: 5, bucket: 3 }, { web: 1 }), { web: 4, bucket: 3 });
});

test('CPU of a thread is the first number; other texts are errors', () => {
  assert.equal(cpuOfThread('1234567 890 12\n'), 1234567);
  assert.throws(() => cpuOfThread(''), /not a schedstat/);
  assert.throws(() => cpuOfThread('cpu 1 2'), /not a schedstat/);
});

test('threads of a pool are one kind', () => {
  assert.deepEqual(['web-12\n', 'bucket-read-3', 'cluster-publish\n'].map(kindOfThread), ['web', 'bucket-read', 'cluster-publish']);
});

test('the share of threads is of the others\' CPU, not of all', () => {
  assert.equal(shareOf({ web: 60, 'tsdb-commit': 40, bucket: 4, 'cluster-publish': 6 }, ['bucket', 'cluster-publish']), 10);
  assert.equal(shareOf({ web: 60 }, ['bucket']), 0);
  assert.throws(() => shareOf({ bucket: 1 }, ['bucket']), /took no CPU/);
});
