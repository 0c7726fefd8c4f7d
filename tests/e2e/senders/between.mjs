// Stands between a sender and the server: passes requests on, keeps them with their answers, and can answer itself.
import http from 'node:http';
import { request } from '../lib.mjs';

/**
 * `before()` may give the answer {status, headers, body} without asking the server, `after(answer)` changes the
 * server's. What the sender gets is kept.
 */
export async function standBetween(t, to, { before = () => undefined, after = (answer) => answer } = {}) {
  const seen = [];
  const proxy = http.createServer((req, res) => {
    const chunks = [];
    req.on('data', (c) => chunks.push(c));
    req.on('end', async () => {
      const one = { path: req.url, headers: req.headers, body: Buffer.concat(chunks) };
      seen.push(one);
      const { host, connection, 'transfer-encoding': chunked, 'content-length': length, ...headers } = req.headers;
      let got;
      try {
        got = before() ?? after(await request(to.url + req.url, { method: req.method, headers, body: one.body }));
      } catch (e) {
        got = { status: 502, headers: {}, body: e.message };
      }
      one.status = got.status;
      one.answer = String(got.body ?? '');
      const { 'content-type': type, 'retry-after': retry } = got.headers ?? {};
      res.writeHead(got.status, { ...(type && { 'content-type': type }), ...(retry && { 'retry-after': retry }) });
      res.end(got.body);
    });
  });
  await new Promise((done) => proxy.listen(0, '127.0.0.1', done));
  t.after(() => new Promise((done) => { proxy.close(done); proxy.closeAllConnections?.(); }));
  return { seen, url: `http://127.0.0.1:${proxy.address().port}` };
}
