// Requests of Pyroscope's SDKs: what those that were seen hold, and forms of SDKs that are not run.
import { gzipSync } from 'node:zlib';
import { addProfile, fields, inflated, message } from './pprof.mjs';

/** The parts of a multipart body by name. */
export function parts(request) {
  const mark = Buffer.from(`--${request.headers['content-type'].match(/boundary="?([^";]+)/)[1]}`);
  const of = {};
  for (let at = request.body.indexOf(mark), next; (next = request.body.indexOf(mark, at + 1)) > 0; at = next) {
    const part = request.body.subarray(at + mark.length + 2, next - 2);
    const head = part.indexOf('\r\n\r\n');
    of[part.subarray(0, head).toString().match(/name="(\w+)"/)[1]] = part.subarray(head + 4);
  }
  return of;
}

/** Profiles of push.v1: series 1, its samples 2, their raw_profile 1. */
export function pushed(request) {
  const list = (bytes, field) => [...fields(bytes)].filter(([f]) => f === field).map(([, v]) => v);
  return list(inflated(request.body), 1).flatMap((series) => list(series, 2)).flatMap((sample) => list(sample, 1));
}

/** A function from requests to the costs of all their profiles, which `of` takes out of one. */
export function pprofCosts(of) {
  return (requests) => {
    const costs = new Map();
    for (const request of requests) for (const profile of of(request)) addProfile(costs, profile);
    return costs;
  };
}

const pair = (name, value) => message([[1, name], [2, value]]);

/** By SDK: a service's name, a profile and the time in seconds give path, headers and body. */
export const forms = {
  'Rust and Ruby, Push': (service, profile) => ['/push.v1.PusherService/Push',
    { 'content-type': 'application/proto', 'content-encoding': 'gzip' },
    gzipSync(message([[1, message([
      ...Object.entries({ __name__: 'process_cpu', service_name: service, region: 'here', 'otel.scope.name': 'x',
        'process.runtime.name': 'rust', __session_id__: '1' }).map(([name, value]) => [1, pair(name, value)]),
      [2, message([[1, profile], [2, '0190a0a0-0000-7000-8000-000000000000']])],
    ])]]))],
  'older Rust and Ruby, folded stacks': (service, profile, now) => [
    `/ingest?name=${encodeURIComponent(`${service}{region=here}`)}&from=${now - 10}&until=${now}&format=folded` +
      '&sampleRate=100&spyName=rbspy', { 'content-type': 'binary/octet-stream' }, Buffer.from('main;Shop::work 3\n')],
  '.NET, a part of a form': (service, profile, now) => [
    `/ingest?name=${encodeURIComponent(`${service}{region=here}`)}&from=${now - 10}000000000&until=${now}123456789` +
      '&spyName=dotnetspy&spyVersion=1', { 'content-type': 'multipart/form-data; boundary=--a-b' },
    Buffer.concat([Buffer.from('----a-b\r\nContent-Disposition: form-data; name="profile"; ' +
      'filename="profile.pprof"\r\n\r\n'), profile, Buffer.from('\r\n----a-b--\r\n')])],
};
