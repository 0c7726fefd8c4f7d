// Keeps connections open that never send a whole request: node silent.mjs PORT COUNT SAY [ADDRESS]. One that the server ends is
// opened again at once, for ever. Prints "open" when all were open once. SAY is a name of `says`.
import net from 'node:net';

// The record says 508 bytes, the ClientHello in it 504; they never come.
const hello = Buffer.concat([Buffer.from([0x16, 3, 1, 1, 0xfc, 1, 0, 1, 0xf8, 3, 3]), Buffer.alloc(200)]);
const says = {
  nothing: () => '',
  head: () => 'GET /-/healthy HTTP/1.1\r\nHost: x\r\nX-More: ',
  body: () => 'POST /api/v1/ingest?name=x HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n',
  hello: () => hello,
};

const [port, count, say, host = '127.0.0.2'] = process.argv.slice(2);
let first = 0;

function open() {
  const socket = net.connect({ port: Number(port), host: '127.0.0.1', localAddress: host });
  let connected = false;
  socket.on('connect', () => {
    connected = true;
    const bytes = says[say]();
    if (bytes.length) socket.write(bytes);
    if (++first === Number(count)) console.log('open');
  });
  socket.on('error', () => {});
  socket.resume();
  socket.on('close', () => (connected ? open() : setTimeout(open, 10)));
}

for (let i = 0; i < Number(count); i++) open();
