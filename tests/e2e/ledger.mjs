// What one shard acknowledged, in order, and what an answer has of it.
//
// A pusher sends its profiles one after the other, each with a later time, so a right answer has a prefix of them: as values
// are positive, its sum says which one, and the sums of the functions must then be those of that prefix.
import { request, sleep } from './lib.mjs';
import { profile } from './shards.mjs';

const FUNCTIONS = 5;
const PODS = 4;

export class Ledger {
  constructor(shard, seed) {
    Object.assign(this, { shard, seed, list: [], all: [0], by: [Array(FUNCTIONS).fill(0)], acked: 0, n: 0, lost: 0 });
  }

  /** A profile that is about to be sent. */
  add() {
    const i = this.n++;
    let at = Math.max(Date.now(), (this.list.at(-1)?.at ?? 0) + 1);
    if (at % 1000 === 0) at++; // a whole second would be taken for a time without a fraction
    const one = { at, of: (i * 7 + this.seed) % FUNCTIONS, value: 1 + ((i * 2654435761 + this.seed * 40503) % 1000), pod: i % PODS };
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
    const sums = this.by[0].map((_, i) => functions[`${this.shard}.f${i}`] || 0);
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
    return this.by[0].every((_, i) => (functions[`${this.shard}.f${i}`] || 0) <= this.by.at(-1)[i] - this.by[first][i]);
  }

  /** What was acknowledged later than startMs, in all. */
  sum(startMs) {
    return this.all[this.acked] - this.all[this.behind(startMs)];
  }

  name(one) {
    return `${this.shard}.f${one.of}`;
  }
}

/**
 * Pushes to one shard and writes its ledger. `hold()` ends it for now; the last profile may then be without an answer. A
 * profile that became too old without an answer is asked for: `settle` makes the ledger what the shard has.
 */
export class LedgerPusher {
  constructor(ledger, server, settle) {
    Object.assign(this, { ledger, server, settle, held: true, failures: 0 });
  }

  go(gapMs) {
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
    const body = profile(this.ledger.name(one), one.value);
    while (!this.held) {
      const server = this.server();
      const query = `name=process_cpu&job=calls&pod=${this.ledger.shard}-${one.pod}&time=${(one.at / 1000).toFixed(3)}`;
      const answer = await request(`${server.url}/api/v1/ingest?${query}`, { method: 'POST', body }).catch((e) => ({ status: 0, body: e.message }));
      if (answer.status >= 200 && answer.status < 300) {
        this.ledger.ack();
        return;
      }
      this.failures++;
      if (/too old/.test(answer.body)) {
        await this.settle();
        return;
      }
      if (![0, 429, 503].includes(answer.status)) throw new Error(`a push to ${this.ledger.shard}: ${answer.status} ${answer.body}`);
      await sleep(50);
    }
  }
}
