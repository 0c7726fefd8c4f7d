// A program that Pyroscope's SDK for Node profiles: it computes and allocates until its standard input ends, then it says
// how much CPU time it used.
import Pyroscope from '@pyroscope/nodejs';

const kept = new Array(64);
let sum = 0;

function renderPage(ms) {
  const end = performance.now() + ms;
  while (performance.now() < end) for (let i = 0; i < 10000; i++) sum = (sum * 31 + i) % 1000003;
}

function parseRequests(n) {
  for (let i = 0; i < n; i++) kept[i % kept.length] = Array.from({ length: 1000 }, (_, j) => ({ i, j }));
}

Pyroscope.init({
  serverAddress: process.argv[2],
  appName: process.argv[3],
  tags: { region: 'here' },
  flushIntervalMs: 2000,
  wall: { collectCpuTime: true, samplingDurationMs: 2000 },
  heap: { samplingIntervalBytes: 65536 },
});
Pyroscope.start();

const began = process.cpuUsage();
let over = false;
process.stdin.on('end', () => (over = true)).resume();
function turn() {
  if (over) return void end();
  renderPage(40);
  parseRequests(10);
  setTimeout(turn, 20);
}
async function end() {
  const { user, system } = process.cpuUsage(began);
  await Pyroscope.stop();
  console.log(JSON.stringify({ cpu_ns: (user + system) * 1000 }));
}
turn();
