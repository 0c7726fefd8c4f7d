// A sender as real ones are: a request that is refused for now is sent again after the time that the answer names.
import { sleep } from '../e2e/lib.mjs';
import { fields } from '../e2e/otlp_requests.mjs';

const PATIENCE_S = 120; // a request: what is refused for longer has failed

const member = (bytes, field) => {
  const found = fields(bytes, 0, bytes.length).find((f) => f.field === field);
  return found && bytes.subarray(found.at, found.end);
};

/** Seconds of an answer's RetryInfo: Status {3 Any {2 RetryInfo {1 Duration {1 seconds}}}}; undefined without one. */
function grpcDelay(details) {
  let bytes = Buffer.from(details, 'base64');
  for (const field of [3, 2, 1]) {
    bytes = member(bytes, field);
    if (!bytes) return undefined;
  }
  const seconds = member(bytes, 1);
  return seconds ? seconds.reduceRight((sum, byte) => sum * 128 + (byte & 127), 0) : 0;
}

/** Seconds after which the request may come again, by an answer over HTTP or gRPC; undefined: it may not. */
export function retryAfter(answer) {
  if (answer.details !== undefined) return grpcDelay(answer.details);
  const text = answer.headers?.['retry-after'];
  return (answer.status === 429 || answer.status === 503) && /^\d+$/.test(text) ? Number(text) : undefined;
}

/**
 * `send(one)` calls `one` until its answer has no time to come again, and gives that answer; `refused` and `waited_s` count
 * over all requests. `rest` waits so many milliseconds.
 */
export function sender({ rest = sleep } = {}) {
  const counts = { refused: 0, waited_s: 0 };
  const send = async (one) => {
    for (let waited = 0; ;) {
      const answer = await one(), seconds = retryAfter(answer);
      waited += Math.max(seconds, 1); // an answer that always says 0 is given up too
      if (seconds === undefined || waited > PATIENCE_S) return answer;
      counts.refused++;
      counts.waited_s += seconds;
      await rest(seconds * 1000);
    }
  };
  return { counts, send };
}
