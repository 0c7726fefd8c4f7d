// What was acknowledged of one stream, in order, and what an answer has of it.
//
// A stream is one label set. Its pusher sends profiles one after the other, each with a later time, so a right answer has a
// prefix of them: as values are positive, its sum says which one, and the sums of the functions must then be those of that prefix.
import { request, sleep } from './lib.mjs';
import { profile } from './shards.mjs';

const FUNCTIONS = 5;
const TRY_MS = 5000; // for one answer; then the balancer tries another shard

export class Ledger {
  constructor(name, seed) {
    Object.assign(this, { name, seed, list: [], all: [0], by: [Array(FUNCTIONS).fill(0)], acked: 0, n: 0, lost: 0 });
  }

  /** A profile that is about to be sent. */
  add() {
    const i = this.n++;
    let at = Math.max(Date.now(), (this.list.at(-1)?.at ?? 0) + 1);
    if (at % 1000 === 0) at++; // a whole second would be taken for a time without a fraction
    const one = { at, of: (i * 7 + this.seed) % FUNCTIONS, value: 1 + ((i * 2654435761 + this.seed * 40503) % 1000) };
    const by = [...this.by.at(-1)];
    by[one.of] += one.value;
    this.list.push(one);
    this.all.push(this.all.at(-1) + one.value);
    this.by.push(by);
    return one;
  }

  /** What is sent was acknowledged: all of the list now. */
  ack() {
    this.list.at(-1).acked = Date.now();
    this.acked = this.list.length;
  }

  /** Only the first k are there. Returns how many of the others had been acknowledged. */
  truncate(k) {
    const gone = Math.max(0, this.acked - k);
    this.list.length = k;
    this.all.length = this.by.length = k + 1;
    this.acked = k;
    this.lost += gone;
    return gone;
  }

  /** The first one later than this. */
  behind(ms) {
    let from = 0;
    let to = this.list.length;
    while (from < to) {
      const mid = (from + to) >> 1;
      if (this.list[mid].at > ms) to = mid;
      else from = mid + 1;
    }
    return from;
  }

  /** How many of the list an answer has, from the profiles later than startMs on; -1: these are no prefix's sums. */
  find(functions, startMs) {
    const first = this.behind(startMs);
    const sums = this.by[0].map((_, i) => functions[`${this.name}.f${i}`] || 0);
    const want = this.all[first] + sums.reduce((a, b) => a + b, 0);
    let k = first;
    for (let to = this.list.length; k < to;) {
      const mid = (k + to) >> 1;
      if (this.all[mid] >= want) to = mid;
      else k = mid + 1;
    }
    const right = this.all[k] === want && sums.every((s, i) => s === this.by[k][i] - this.by[first][i]);
    return right ? k : -1;
  }

  /** No function has more than was sent. */
  holds(functions, startMs) {
    const first = this.behind(startMs);
    return this.by[0].every((_, i) => (functions[`${this.name}.f${i}`] || 0) <= this.by.at(-1)[i] - this.by[first][i]);
  }

  /** All that was acknowledged until untilMs is there. */
  reaches(functions, startMs, untilMs) {
    const first = this.behind(startMs);
    let k = this.list.findIndex((one) => !one.acked || one.acked > untilMs);
    if (k < 0) k = this.list.length;
    return this.by[0].every((_, i) => (functions[`${this.name}.f${i}`] || 0) >= this.by[Math.max(k, first)][i] - this.by[first][i]);
  }

  /** What was acknowledged later than startMs, in all. */
  sum(startMs) {
    return this.all[this.acked] - this.all[this.behind(startMs)];
  }

  function(one) {
    return `${this.name}.f${one.of}`;
  }
}

/**
 * Pushes a stream through a balancer and writes its ledger. Each try goes to one of the doors, by turns; who gives no answer
 * within some seconds may have stored the profile, and the next door gets it too. `hold()` ends it for now; the last profile
 * may then be without an answer. A profile that became too old without one is asked for: `settle` makes the ledger what the
 * shards have.
 */
export class LedgerPusher {
  constructor(ledger, doors, settle) {
    Object.assign(this, { ledger, doors, settle, held: true, failures: 0, tries: ledger.seed });
  }

  go(gapMs) {
    if (!this.held) return;
    this.held = false;
    this.loop = (async () => {
      while (!this.held) {
        await this.push();
        await sleep(gapMs);
      }
    })();
  }

  async hold() {
    this.held = true;
    await this.loop;
  }

  async push() {
    const one = this.ledger.add();
    const body = profile(this.ledger.function(one), one.value);
    const query = `name=process_cpu&job=calls&pod=${this.ledger.name}&time=${(one.at / 1000).toFixed(3)}`;
    while (!this.held) {
      const doors = this.doors();
      const server = doors[this.tries++ % doors.length];
      const answer = await request(`${server.url}/api/v1/ingest?${query}`, { method: 'POST', body, signal: AbortSignal.timeout(TRY_MS) })
        .catch((e) => ({ status: 0, body: e.message }));
      if (answer.status >= 200 && answer.status < 300) {
        this.ledger.ack();
        return;
      }
      this.failures++;
      if (/too old/.test(answer.body)) {
        await this.settle();
        return;
      }
      if (![0, 429, 503].includes(answer.status)) throw new Error(`a push of ${this.ledger.name} to ${server.name}: ${answer.status} ${answer.body}`);
      await sleep(50);
    }
  }
}
