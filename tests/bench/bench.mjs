// The figures of this server, beside google/pprof's on the same profiles in the same run where there is something
// to compare with: `make bench`, or parts of it, `make bench BENCH="bytes long"`. Prints what it measures, then the targets,
// and writes build/bench.json. README.md says how to read it, and names the sizes.
import { cpus, loadavg } from 'node:os';
import { join } from 'node:path';
import { root } from '../e2e/lib.mjs';
import { bucket } from './bucket.mjs';
import { columns } from './columns.mjs';
import { crowd } from './crowd.mjs';
import { growth, grown } from './growth.mjs';
import { kubernetes } from './kubernetes.mjs';
import { pair } from './pair.mjs';
import { queries } from './queries.mjs';
import { rules } from './rules.mjs';
import { symbols } from './symbols.mjs';
import { binary, ingest, merge } from './served.mjs';
import { push } from './push.mjs';
import { scrape } from './scrape.mjs';
import { bytes, long, memory, restart, top, work } from './storage.mjs';
import { begin, failed, header, judge, ran, results, targetLines, write } from './report.mjs';
import { scale } from './scale.mjs';
import { start } from './start.mjs';
import { targets } from './targets.mjs';

const sections = { ingest, merge, bytes, long, query: queries, top, restart, memory, work, rules, scrape, pair, kubernetes, push, symbols,
  bucket, start, growth, binary, scale, crowd,
  columns };

for (const t of targets) if (t.section !== null && !sections[t.section]) throw new Error(`targets.mjs: no section is called "${t.section}"`);
const wanted = process.argv.slice(2).flatMap((a) => a.split(',')).filter(Boolean);
for (const name of wanted) {
  if (!sections[name]) {
    console.error(`bench: no section is called "${name}"; there are ${Object.keys(sections).join(' ')}`);
    process.exit(2);
  }
}

const load = { before: loadavg() };
header();
for (const [name, section] of Object.entries(sections)) {
  if (wanted.length && !wanted.includes(name)) continue;
  const ends = [];
  begin(name);
  try {
    await section({ after: (fn) => ends.push(fn) });
  } catch (e) {
    failed(name, e);
  }
  for (const end of ends.reverse()) await end();
}
load.after = loadavg();
const judged = judge(targets, results, ran);
console.log(`\n${targetLines(judged).join('\n')}`);
console.log(`load ${load.before[0].toFixed(2)} before, ${load.after[0].toFixed(2)} after, on ${cpus().length} cores`);
write(join(root, 'build', 'bench.json'), { targets: judged, growth: grown, load, cpus: cpus().map((c) => c.model) });
process.exitCode = [...ran.values()].includes('failed') ? 1 : 0;
