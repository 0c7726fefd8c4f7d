// A TCP proxy between one server and an object store, which spoils connections as it is told.
import { connect, createServer } from 'node:net';

const BUSY = '<?xml version="1.0"?><Error><Code>SlowDown</Code><Message>Reduce your request rate</Message></Error>';
const REFUSAL = `HTTP/1.1 503 Slow Down\r\nContent-Type: application/xml\r\nContent-Length: ${BUSY.length}\r\nConnection: close\r\n\r\n${BUSY}`;

/** The faults: connections are reset; answers end in their middle; 503 to each request; nothing passes, in both directions. */
export const FAULTS = ['reset', 'cut', 'busy', 'silence'];

export class FaultProxy {
  constructor(endpoint) {
    const { hostname, port } = new URL(endpoint);
    Object.assign(this, { to: { host: hostname, port: Number(port) }, mode: 'pass', pairs: new Set(), spoiled: 0 });
  }

  async listen() {
    this.server = createServer({ allowHalfOpen: false }, (client) => this.accept(client));
    await new Promise((done, fail) => this.server.on('error', fail).listen(0, '127.0.0.1', done));
    this.endpoint = `http://127.0.0.1:${this.server.address().port}`;
    return this;
  }

  /** 'pass', or one of FAULTS. */
  set(mode) {
    this.mode = mode;
    for (const pair of this.pairs) {
      if (mode === 'reset' || mode === 'busy') this.end(pair, mode === 'reset');
      else this.flow(pair);
    }
  }

  close() {
    for (const pair of this.pairs) this.end(pair, true);
    return new Promise((done) => this.server.close(done));
  }

  accept(client) {
    client.on('error', () => {});
    if (this.mode === 'reset') {
      this.spoiled++;
      client.resetAndDestroy();
    } else if (this.mode === 'busy') {
      this.refuse(client);
    } else {
      this.join(client);
    }
  }

  join(client) {
    const store = connect(this.to);
    const pair = { client, store };
    this.pairs.add(pair);
    store.on('error', () => this.end(pair, true));
    client.on('close', () => this.end(pair, false));
    store.on('close', () => {
      client.end();
      this.pairs.delete(pair);
    });
    client.on('data', (bytes) => this.pass(pair, client, store, bytes));
    store.on('data', (bytes) => {
      if (this.mode === 'cut') this.cut(pair, bytes);
      else this.pass(pair, store, client, bytes);
    });
    this.flow(pair);
  }

  pass(pair, from, to, bytes) {
    if (to.write(bytes)) return;
    from.pause();
    to.once('drain', () => this.flow(pair));
  }

  flow({ client, store }) {
    for (const socket of [client, store]) {
      if (this.mode === 'silence') socket.pause();
      else socket.resume();
    }
    if (this.mode === 'silence') this.spoiled++;
  }

  cut(pair, bytes) {
    this.spoiled++;
    pair.store.destroy();
    pair.client.write(bytes.subarray(0, bytes.length >> 1), () => pair.client.destroy());
  }

  end(pair, reset) {
    this.pairs.delete(pair);
    pair.store.destroy();
    if (reset) pair.client.resetAndDestroy();
    else pair.client.destroy();
  }

  /** Reads one request to its end, so that the client sees the answer and no reset. */
  refuse(client) {
    let head = '';
    let left;
    client.on('data', (bytes) => {
      if (left === undefined) {
        head += bytes.toString('latin1');
        const end = head.indexOf('\r\n\r\n');
        if (end < 0) return;
        left = Number(/^content-length: *(\d+)/im.exec(head.slice(0, end))?.[1] ?? 0) - (head.length - end - 4);
        if (/^expect: *100-continue/im.test(head.slice(0, end))) left = 0;
      } else {
        left -= bytes.length;
      }
      if (left > 0) return;
      this.spoiled++;
      client.end(REFUSAL);
    });
  }
}
