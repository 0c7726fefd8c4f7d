// The figures of this server, beside google/pprof's on the same profiles in the same run where there is something
// to compare with: `make bench`, or parts of it, `make bench BENCH="bytes long"`. Prints a table with what was to be
// reached and writes build/bench.json. Sizes: BENCH_DAYS, BENCH_SERVICES, BENCH_TARGETS, BENCH_SCRAPES.
import { cpus, loadavg } from 'node:os';
import { join } from 'node:path';
import { root } from '../e2e/lib.mjs';
import { queries } from './queries.mjs';
import { rules } from './rules.mjs';
import { binary, ingest, merge } from './served.mjs';
import { scrape } from './scrape.mjs';
import { bytes, long, memory, restart, top } from './storage.mjs';
import { failed, header, write } from './report.mjs';

const sections = { ingest, merge, bytes, long, query: queries, top, restart, memory, rules, scrape, binary };

const wanted = process.argv.slice(2).flatMap((a) => a.split(',')).filter(Boolean);
for (const name of wanted) {
  if (!sections[name]) {
    console.error(`bench: no section is called "${name}"; there are ${Object.keys(sections).join(' ')}`);
    process.exit(2);
  }
}

const load = { before: loadavg() };
let failures = 0;
header();
for (const [name, section] of Object.entries(sections)) {
  if (wanted.length && !wanted.includes(name)) continue;
  const ends = [];
  try {
    await section({ after: (fn) => ends.push(fn) });
  } catch (e) {
    failed(name, e);
    failures++;
  }
  for (const end of ends.reverse()) await end();
}
load.after = loadavg();
console.log(`load ${load.before[0].toFixed(2)} before, ${load.after[0].toFixed(2)} after, on ${cpus().length} cores`);
write(join(root, 'build', 'bench.json'), { load, cpus: cpus().map((c) => c.model) });
process.exitCode = failures ? 1 : 0;
