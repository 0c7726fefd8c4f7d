// A plain HTTP server of node, with work of several kinds, for services.mjs. Its CPU profile is written at SIGTERM.
const http = require('node:http');
const zlib = require('node:zlib');
const { createHash } = require('node:crypto');

const list = (n) => Array.from({ length: n }, (_, i) => ({ id: i, name: `item${(i * 7919) % n}`, price: i / 3 }));
const work = {
  '/json': (n) => JSON.stringify(list(n)),
  '/sort': (n) => list(n).sort((a, b) => (a.name < b.name ? -1 : 1))[0].name,
  '/hash': (n) => createHash('sha256').update(Buffer.alloc(1000 * n)).digest('hex'),
  '/gzip': (n) => zlib.gzipSync(JSON.stringify(list(n))),
  '/match': (n) => String('abc123 --- '.repeat(n).match(/[a-z]+([0-9]+)/g).length),
};
const server = http.createServer((req, res) => {
  const url = new URL(req.url, 'http://x');
  res.end(work[url.pathname](Number(url.searchParams.get('n'))));
});
server.listen(0, '127.0.0.1', () => console.log(`127.0.0.1:${server.address().port}`));
process.on('SIGTERM', () => process.exit(0));
