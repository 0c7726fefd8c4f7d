// Targets as they are in the world: each gets a clear error, and the good one beside them does not notice.
import test from 'node:test';
import assert from 'node:assert/strict';
import http from 'node:http';
import net from 'node:net';
import zlib from 'node:zlib';
import { query, scratch, startDemo, startServer, targets, until } from './lib.mjs';

const MIB = 1 << 20;

/** A server on a free port, closed with the test. */
async function serve(t, make) {
  const server = make();
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  const sockets = new Set();
  server.on('connection', (s) => { sockets.add(s); s.on('close', () => sockets.delete(s)); s.on('error', () => {}); });
  t.after(() => { sockets.forEach((s) => s.destroy()); server.close(); });
  return `127.0.0.1:${server.address().port}`;
}

const bomb = zlib.gzipSync(Buffer.alloc(400 * MIB));

const kinds = {
  html: [/text\/html/, () => http.createServer((req, res) => {
    res.setHeader('Content-Type', 'text/html');
    res.end('<!DOCTYPE html><html><body>It works!</body></html>');
  })],
  bomb: [/limit/, () => http.createServer((req, res) => res.end(bomb))],
  endless: [/body size limit exceeded/, () => http.createServer((req, res) => {
    const chunk = Buffer.alloc(MIB, 'x');
    const more = () => { while (!res.destroyed && res.write(chunk)); };
    res.on('drain', more);
    res.on('error', () => {});
    more();
  })],
  drip: [/context deadline exceeded/, () => net.createServer((s) => {
    s.on('error', () => {});
    s.write('HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n');
    const timer = setInterval(() => s.write('x'), 100);
    s.on('close', () => clearInterval(timer));
  })],
  error503: [/^server returned HTTP status 503 Service Unavailable/, () => http.createServer((req, res) => {
    res.statusCode = 503;
    res.end('not now');
  })],
  reset: [/reset|closed|EOF/i, () => net.createServer((s) => { s.on('error', () => {}); s.once('data', () => s.resetAndDestroy?.() ?? s.destroy()); })],
  login: [/^target answers a web page \(Content-Type "text\/html"\), not a profile(?:: a login or error page may have answered; check the address and the credentials)?; the target redirected to http:\/\/127\.0\.0\.1:\d+\/login\?next=xxxxx$/,
    () => http.createServer((req, res) => {
      if (req.url.startsWith('/login')) res.setHeader('Content-Type', 'text/html').end('<html>who are you?</html>');
      else res.writeHead(302, { Location: `/login?next=${req.url.slice(1)}` }).end();
    })],
  tls: [/^server returned HTTP status 400 Bad Request: the target speaks TLS, set "scheme: https"$/, () => net.createServer((s) => {
    s.on('error', () => {}); // as a server in Go answers
    s.once('data', () => s.end('HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n'));
  })],
  garbage: [/./, () => http.createServer((req, res) => res.end(Buffer.from('0a0b0c0d', 'hex')))],
};

test('hostile targets', async (t) => {
  const dir = scratch(t);
  const good = await startDemo(t, 'v1', 'none', 20);
  const unreachable = await serve(t, () => net.createServer());
  const jobs = [];
  for (const [name, [, make]] of Object.entries(kinds)) jobs.push([name, await serve(t, make)]);
  jobs.push(['silent', unreachable], ['refused', '127.0.0.1:1'], ['nowhere', 'no-such-host.invalid:80']);
  const server = await startServer(t, { dir, config: `
global: {scrape_interval: 3s, scrape_timeout: 2s}
scrape_configs:
  - job_name: good
    static_configs: [{targets: ["${good.address}"]}]
${jobs.map(([name, address]) => `  - job_name: ${name}
    profiling_config: {pprof_config: {process_cpu: {enabled: false}, block: {enabled: false}, mutex: {enabled: false}, goroutine: {enabled: false}, goroutineleak: {enabled: false}}}
    static_configs: [{targets: ["${address}"]}]
`).join('')}  - job_name: plain
    scheme: https
    static_configs: [{targets: ["${good.address}"]}]
`, args: ['--log.level=debug'] });

  // A scrape of a busy machine may be out of time before it sees what is wrong: the next one tells it.
  const errors = {
    ...Object.fromEntries(Object.entries(kinds).map(([name, [want]]) => [name, want])),
    plain: /^tls 127\.0\.0\.1:\d+: wrong version number: the target does not speak TLS, set "scheme: http"$/,
    silent: /context deadline exceeded/,
    refused: /127\.0\.0\.1:1: Connection refused/,
    nowhere: /no-such-host\.invalid/,
  };
  for (const [name, want] of Object.entries(errors)) {
    await t.test(name, () => until(`the error of ${name}`, 60, async () => {
      const of = (await targets(server)).filter((x) => x.scrapePool === name);
      for (const x of of) assert.match(x.lastError, want);
      return of.length;
    }));
  }
  await t.test('the good one is on time', async () => {
    await until('three more profiles', 20, async () => {
      const r = await query(server, 'merge(cpu{job="good"}[1h])');
      return r.result[0]?.profiles >= 4;
    });
    assert.equal(server.code, undefined);
  });
});
