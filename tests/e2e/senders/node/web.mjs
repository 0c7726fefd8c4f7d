// A program that Pyroscope's SDK for Node profiles: it computes and allocates until its standard input ends, then it says
// how much CPU time renderPage used. It runs for a time by the clock, so on a busy machine all else has a larger share.
import Pyroscope from '@pyroscope/nodejs';

const kept = new Array(64);
let sum = 0;
let used = 0; // microseconds

function renderPage(ms) {
  const end = performance.now() + ms;
  while (performance.now() < end) for (let i = 0; i < 10000; i++) sum = (sum * 31 + i) % 1000003;
}

function renderMeasured(ms) {
  const began = process.cpuUsage();
  renderPage(ms);
  const { user, system } = process.cpuUsage(began);
  used += user + system;
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

let over = false;
// The package may begin a round while it stops, and fail in it. Its clock goes on then, so the program ends by itself.
process.on('uncaughtException', (error) => {
  if (over && /Wall profiler is not started|Heap profiler is not enabled/.test(error.message)) return;
  console.error(error);
  process.exit(1);
});
process.stdin.on('end', () => (over = true)).resume();
function turn() {
  if (over) return void end();
  renderMeasured(40);
  parseRequests(10);
  setTimeout(turn, 20);
}
async function end() {
  await Pyroscope.stop();
  process.stdout.write(`${JSON.stringify({ cpu_ns: used * 1000 })}\n`, () => process.exit(0));
}
turn();
