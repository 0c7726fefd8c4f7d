// A Ceph cluster for a test: see tests/ceph.mjs.
import { randomBytes } from 'node:crypto';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Ceph } from '../ceph.mjs';

export { S3, texts } from '../s3_client.mjs';

/**
 * Starts a cluster that ends with the test: { endpoint, bucket, accessKey, secretKey, kill(name), start(name), pause(name),
 * resume(name), stop() }; a name is mon, osd.0, ... or rgw. The bucket exists. A daemon that ends by itself fails the test.
 */
export async function startCeph(t, { osds = 1 } = {}) {
  const ceph = new Ceph({ dir: join(tmpdir(), `epi-ceph-${randomBytes(6).toString('hex')}`), osds });
  let stopped;
  const stop = () => (stopped ??= ceph.stop());
  t.after(stop);
  await ceph.begin();
  const { endpoint, bucket, accessKey, secretKey } = ceph;
  return { endpoint, bucket, accessKey, secretKey, stop, kill: (name) => ceph.kill(name), start: (name) => ceph.start(name),
    pause: (name) => ceph.pause(name), resume: (name) => ceph.resume(name) };
}
