// The storage engine alone, and servers on directories of many days.
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { epimetheus, query, request, start } from '../e2e/lib.mjs';
import { emptyDirectory, env, fleet, forgetPages, linked, lines, madeDirectory, tsdbBench } from './common.mjs';
import { count, note } from './report.mjs';
import { trend } from './slope.mjs';

const DAY = 86400;
const SCALE = 100; // services
export const days = () => env('BENCH_DAYS', 30);
export const longDirectory = () => madeDirectory('long', ['--service=1', '--pods=10', `--days=${days()}`]);

function floorOf(set) {
  const text = execFileSync(fleet, ['floor', `--set=${set}`]).toString();
  return Number(text.match(/floor (\S+) bytes per sample/)[1]);
}

/** Two hours that went through a database, cut into a block; the floor is what no code of this model gets below. */
export function bytes() {
  for (const set of ['fleet-cpu', 'heavy-tailed-cpu', 'labelled-cpu', 'heap']) {
    const [cost, m] = lines(tsdbBench, ['bytes', `--data=${emptyDirectory('bytes')}`, `--set=${set}`]);
    note(`raw rows, ${set}`, { ours: m.raw_per_sample, theirs: floorOf(set), unit: 'bytes/sample', of: m });
    note(`rollups of 2 h, ${set}`, { ours: m.rollups_of_raw * 100, unit: '% of raw' });
    note(`dictionary of stacks of 2 h, ${set}`, { ours: m.symbols_per_sample, unit: 'bytes/sample' });
    const each = (seconds) => (1000 * seconds) / cost.profiles;
    note(`CPU of cutting 1,000 profiles, ${set} (other: of storing them)`,
      { ours: each(cost.cut_cpu_s), theirs: each(cost.ingest_cpu_s), unit: 'seconds', of: cost });
  }
}

/** Sums of one service: long windows by rollups, beside all raw rows of the same. */
export function long() {
  const made = longDirectory();
  let why;
  const out = lines(tsdbBench, ['sum', `--data=${made.dir}`], (e) => { why = e; });
  const of = (name, window) => out.find((m) => m.name === name && (!window || m.window === window));
  const times = (m) => [m.min_s, m.median_s, m.max_s];
  const block = of('long block'), raw = of('raw'), all = of('sum', 'all'), hour = of('sum', '1h'), day = of('sum', '24h');
  if (block) {
    note('raw rows in a block of 3 d, fleet-cpu', { ours: block.raw_per_sample, unit: 'bytes/sample', of: block });
    note('rollups, 1h and 1d, of it', { ours: block.rollups_of_raw * 100, unit: '% of raw' });
    note('dictionary of stacks of it', { ours: block.symbols_per_sample, unit: 'bytes/sample' });
  }
  if (raw && why) note(`all raw rows of ${days()} d`, { ours: times(raw), unit: 'seconds', of: raw });
  if (why) throw why;
  note(`sum over ${days()} d (other: raw rows)`, { ours: times(all), theirs: times(raw), unit: 'seconds', of: { all, raw } });
  if (day) note('sum over 24 h', { ours: times(day), unit: 'seconds', of: day });
  note(`sum over 1 h (other: over ${days()} d)`, { ours: times(hour), theirs: times(all), unit: 'seconds', of: hour });
}

/** All five kinds of many targets, scrape after scrape; the generator's own memory is taken away. */
export function memory() {
  const targets = env('BENCH_TARGETS', 1000), scrapes = env('BENCH_SCRAPES', 120);
  const all = lines(fleet, ['push', `--data=${emptyDirectory('memory')}`, `--service=${Math.ceil(targets / 10)}`, '--pods=10',
    `--scrapes=${scrapes}`, '--every=0', '--json', '--each']);
  const p = all.at(-1), each = all.filter((m) => m.name === 'scrape').slice(Math.floor(scrapes / 4)); // the first quarter fills caches
  if (p.failed) throw new Error(`${p.failed} profiles were not stored`);
  const what = `${count(p.targets)} targets x ${p.kinds} profiles`;
  note(`resident, ${what}`, { ours: p.resident_mib - p.before_mib, unit: 'MiB', of: p });
  const grown = (part) => trend(each.map((m) => [m.scrape, m[part]]));
  const whole = grown('resident_mib');
  note(`growth a scrape, ${what}`, { ours: whole.slope, error: whole.error, unit: 'MiB', of: { each } });
  for (const [what, part] of [['symbols', 'symbol_mib'], ['delta bases', 'delta_mib'], ['index', 'index_mib']]) {
    const { slope, error } = grown(part);
    note(`of it ${what}`, { ours: p[part], unit: 'MiB' });
    note(`growth a scrape, ${what}`, { ours: slope, error, unit: 'MiB' });
  }
}

/** Peaks while windows of 2 h are cut and joined, and while they fill; what was there before either is taken away. */
export function work() {
  const [m] = lines(tsdbBench, ['work', `--data=${emptyDirectory('work')}`]);
  const what = 'peak of cutting and joining (other: of ingest)';
  note(what, { ours: m.work_mib - m.before_mib, theirs: m.ingest_mib - m.before_mib, unit: 'MiB', of: m });
  note('CPU of cutting and joining', { ours: (m.work_cpu_s / m.samples) * 1e9, unit: 'ns/sample' });
}

/** From exec to the answer of /-/ready; cpus: as taskset takes them; without a retention where nothing is stored. */
export async function serve(t, dir, retention, cpus, ...args) {
  const began = process.hrtime.bigint();
  const run = start(t, 'taskset', ['-c', cpus, epimetheus, '--web.listen-address=127.0.0.1:0',
    `--storage.tsdb.path=${join(dir, 'data')}`, ...(retention ? [`--storage.tsdb.retention.time=${retention}`] : []), ...args],
  { cwd: dir });
  await new Promise((done) => {
    run.child.stderr.on('data', () => { if (/msg=ready\b/.test(run.err)) done(); });
    run.child.on('close', done);
  });
  const port = run.err.match(/msg=ready\b.*\bport=(\d+)/)?.[1];
  if (!port) throw new Error(`server ended: ${run.err}`);
  run.url = `http://127.0.0.1:${port}`;
  const res = await request(`${run.url}/-/ready`);
  if (res.status !== 200) throw new Error(`/-/ready: ${res.status}`);
  run.seconds = Number(process.hrtime.bigint() - began) / 1e9;
  return run;
}

export async function restart(t) {
  const dir = linked(longDirectory().dir, 'restart');
  const took = [];
  for (let i = 0; i < 5; i++) {
    forgetPages(dir);
    const run = await serve(t, dir, '40d', '0,1');
    took.push(run.seconds);
    await run.stop();
  }
  note(`from exec to ready, ${days()} d, nothing cached`, { ours: took, unit: 'seconds' });
}

/** The end of the rows of a made directory: the latest end of a block, in seconds. */
export function endOf(dir) {
  const blocks = join(dir, 'blocks');
  const ends = readdirSync(blocks).map((b) => join(blocks, b, 'meta.json')).filter(existsSync)
    .map((f) => JSON.parse(readFileSync(f)).max_ns / 1e9);
  return Math.max(...ends);
}

const windowsOf = (end) => {
  const off = end - 5 * 3600 - 1397.25;
  return [['a day', { start: end - DAY, end }], ['an unaligned 24 h', { start: off - DAY, end: off }]];
};

async function topOf(run, params) {
  const began = process.hrtime.bigint();
  const answer = await query(run, 'top(10, merge(cpu))', params);
  const rows = answer.result[0]?.rows?.length ?? 0;
  if (rows !== 10) throw new Error(`${rows} rows in the table: ${JSON.stringify(answer).slice(0, 300)}`);
  return Number(process.hrtime.bigint() - began) / 1e9;
}

/**
 * The target is for 100 services, so seconds of fewer are scaled. The first query of a server that was just started, on one core, and
 * those after it: of a whole day, and of 24 hours that begin and end in the middle of everything.
 */
export async function top(t) {
  const services = env('BENCH_SERVICES', 20);
  const made = madeDirectory('many', [`--service=${services}`, '--pods=10', '--days=2']);
  const dir = linked(made.dir, 'top');
  for (const [name, params] of windowsOf(endOf(made.dir))) {
    const first = [], again = [];
    for (let i = 0; i < 5; i++) {
      forgetPages(dir);
      const run = await serve(t, dir, '15d', '1');
      for (let k = 0; k < 4; k++) (k ? again : first).push(await topOf(run, params));
      await run.stop();
    }
    for (const [which, seconds] of [['first', first], ['again', again]]) {
      note(`top 10 of ${name}, scaled to ${SCALE} services, ${which}`,
        { ours: seconds.map((s) => s * SCALE / services), unit: 'seconds', of: { services, seconds } });
    }
  }
  await topShown(t, services, dir, made.dir);
}

/** Names that are shown differently, beside those that are shown as they are: by turns, after the first query. */
async function topShown(t, services, plainDir, plainMade) {
  const made = madeDirectory('shown', ['--set=shown-cpu', `--service=${services}`, '--pods=10', '--days=2']);
  const plain = await serve(t, plainDir, '15d', '1'), shown = await serve(t, linked(made.dir, 'top-shown'), '15d', '1');
  const both = windowsOf(endOf(made.dir)).map((w, i) => [w, windowsOf(endOf(plainMade))[i]]);
  for (const [[name, ofShown], [, ofPlain]] of both) {
    const ours = [], theirs = [];
    await topOf(shown, ofShown);
    await topOf(plain, ofPlain);
    for (let i = 0; i < 15; i++) {
      ours.push(await topOf(shown, ofShown));
      theirs.push(await topOf(plain, ofPlain));
    }
    note(`top 10 of ${name}, names shown differently (other: as stored)`, { ours, theirs, unit: 'seconds' });
  }
  await plain.stop();
  await shown.stop();
}
