// Two servers that scrape one Go process every 10 s, and one beside a collector that asks for whole intervals, as Parca does:
// who has the process's only profiler for how much of the time.
import { env, metrics } from './common.mjs';
import { note } from './report.mjs';
import { collect, config, share } from '../e2e/pairs.mjs';
import { scratch, sleep, startDemo, startServer } from '../e2e/lib.mjs';

const SETTLE = 60; // seconds until they have found each other
const MINUTE = 60;
const profiles = async (server) => (await metrics(server)).get('epimetheus_scrape_scrapes_total{result="ok"}') ?? 0;

/** Shares of each, in percent, over so many minutes; and the fewest profiles that a server took in one of them. */
async function measure(servers, others, minutes) {
  let fewest = Infinity, before;
  await sleep(SETTLE * 1000);
  before = await Promise.all(servers.map(profiles));
  for (let i = 0; i < minutes; i++) {
    await sleep(MINUTE * 1000);
    const now = await Promise.all(servers.map(profiles));
    fewest = Math.min(fewest, ...now.map((n, k) => n - before[k]));
    before = now;
  }
  const seconds = minutes * MINUTE;
  return { shares: [...await Promise.all(servers.map((s) => share(s, seconds))), ...others.map((o) => o(seconds))].map((s) => 100 * s), fewest };
}

async function twins(t, minutes) {
  const { address } = await startDemo(t, 'v1', 'none');
  const servers = await Promise.all([1, 2].map(() => startServer(t, { dir: scratch(t), config: config(address) })));
  const { shares, fewest } = await measure(servers, [], minutes);
  note('two servers every 10 s: time of the one with less', { ours: Math.min(...shares), unit: '%', of: { shares } });
  note('two servers every 10 s: fewest profiles in a minute', { ours: fewest, unit: 'profiles' });
}

async function besideCollector(t, minutes) {
  const { address } = await startDemo(t, 'v1', 'none');
  const collected = collect(t, address);
  const server = await startServer(t, { dir: scratch(t), config: config(address) });
  const { shares, fewest } = await measure([server], [collected], minutes);
  note('beside a collector of whole intervals: time of the server', { ours: shares[0], unit: '%' });
  note('beside a collector of whole intervals: time of the collector', { ours: shares[1], unit: '%' });
  note('beside a collector of whole intervals: fewest profiles in a minute', { ours: fewest, unit: 'profiles' });
}

export async function pair(t) {
  const minutes = env('BENCH_PAIR_MINUTES', 5);
  await Promise.all([twins(t, minutes), besideCollector(t, minutes)]); // they wait
}
