// Helpers of the sections: running programs that print JSON, files of profiles, directories that are made once.
import { createHash } from 'node:crypto';
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { build, query, request, root } from '../e2e/lib.mjs';
import { metricsOf } from './counters.mjs';
import { note, spread } from './report.mjs';

export const env = (name, otherwise) => Number(process.env[name] || otherwise);
export const data = process.env.BENCH_DATA || join(build, 'bench-data');
export const fleet = join(build, 'tests/fleet/fleet');
export const tsdbBench = join(build, 'tests/bench/tsdb/tsdb_bench');

/** Runs to its end; the lines of its output that are JSON. A failure is told after what was printed before it. */
export function lines(program, args, onFailure) {
  const run = spawnSync(program, args, { maxBuffer: 64 << 20 });
  const out = run.stdout.toString().split('\n').filter((l) => l.startsWith('{')).map((l) => JSON.parse(l));
  if (run.status !== 0) {
    const why = new Error(`${args[0]}: ${run.stderr.toString().trim().split('\n').at(-1)}`);
    if (!onFailure) throw why;
    onFailure(why);
  }
  return out;
}

export function emptyDirectory(name) {
  const dir = join(data, name);
  rmSync(dir, { recursive: true, force: true });
  mkdirSync(dir, { recursive: true });
  return dir;
}

export function bytesOf(path) {
  return readdirSync(path, { withFileTypes: true }).reduce((n, e) => {
    const at = join(path, e.name);
    return n + (e.isDirectory() ? bytesOf(at) : statSync(at).size);
  }, 0);
}

/** Files that `fleet write` made, of 1,000 and fewer profiles. */
export function fleetFiles(set, pods, scrapes) {
  const dir = emptyDirectory(`files-${set}`);
  execFileSync(fleet, ['write', dir, `--set=${set}`, '--service=1', `--pods=${pods}`, `--scrapes=${scrapes}`]);
  return readdirSync(dir).sort().map((f) => join(dir, f));
}

/**
 * A data directory of whole days, kept between runs as long as the program that made it is the same; BENCH_REUSE=1
 * takes an older program's too.
 */
export function madeDirectory(name, args) {
  const dir = join(data, name), stamp = join(data, `${name}.json`);
  const program = createHash('sha256').update(readFileSync(tsdbBench)).digest('hex');
  const old = existsSync(stamp) ? JSON.parse(readFileSync(stamp)) : {};
  const fresh = Date.now() - (old.made ?? 0) < 8 * 86400e3;
  if (fresh && old.args === args.join(' ') && (old.program === program || process.env.BENCH_REUSE)) return { dir, ...old };
  rmSync(dir, { recursive: true, force: true });
  mkdirSync(data, { recursive: true });
  const began = Date.now();
  const made = lines(tsdbBench, ['make', `--data=${dir}`, ...args]);
  const out = { args: args.join(' '), program, made: Date.now(), seconds: (Date.now() - began) / 1e3,
    rows: made.reduce((n, m) => n + m.rows, 0), samples: made.reduce((n, m) => n + m.samples, 0) };
  writeFileSync(stamp, JSON.stringify(out));
  return { dir, ...out };
}

/** Hard links of the files in a new directory, where a server may write and join. */
export function linked(dir, name) {
  const to = emptyDirectory(name);
  execFileSync('cp', ['-al', dir, join(to, 'data')]);
  return to;
}

/** Nothing of it is in memory any more. */
export function forgetPages(dir) {
  execFileSync('sync', ['-f', dir]);
  execFileSync('find', [dir, '-type', 'f', '-exec', 'dd', 'if={}', 'iflag=nocache', 'count=0', 'status=none', ';']);
}

/** CPU seconds of google/pprof to parse and merge the files, by rounds; and their total. */
export function googleMerge(list) {
  const program = join(build, 'bench', 'merge');
  mkdirSync(join(build, 'bench'), { recursive: true });
  execFileSync('go', ['build', '-o', program, 'tests/bench/merge.go'],
    { cwd: root, env: { ...process.env, GO111MODULE: 'off', GOFLAGS: '', GOPATH: '/usr/share/gocode' } });
  const run = spawnSync(program, { input: list.join('\n'), maxBuffer: 1 << 20 });
  if (run.status !== 0) throw new Error(run.stderr.toString());
  const [total, ...seconds] = run.stdout.toString().trim().split(' ').map(Number);
  return { total, seconds };
}

const SMALL = 4096; // bodies below it have a target of their own

/** Inflating and decoding a file, beside google/pprof, by rounds; profiles per second of ours. */
export function decoding(file, label) {
  const bytes = statSync(file).size;
  const out = execFileSync('tests/proto/bench/run.sh', [build, file, file, file], { cwd: root }).toString();
  const rounds = out.trim().split('\n').slice(1).map((text) => text.trim().split(/\s+/).map(Number));
  const ours = rounds.map((r) => r[5]), theirs = rounds.map((r) => r[6]);
  note(`inflate and decode, ${label}${bytes < SMALL ? ', below 4 KB' : ''}`, { ours, theirs, unit: 'profiles/s', faster: true, of: { bytes } });
  return spread(ours).median;
}

const ticks = Number(execFileSync('getconf', ['CLK_TCK']).toString());

/** CPU seconds of a process, of all its threads. */
export function cpuOf(pid) {
  const text = readFileSync(`/proc/${pid}/stat`).toString();
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) / ticks;
}

/** What a server counts: "name{labels}" to a number. */
export const metrics = async (server) => metricsOf((await request(`${server.url}/metrics`)).body.toString());

const ROUND_CPU = 0.25; // seconds: the clock of /proc/PID/stat ticks every 10 ms

/** CPU seconds of the server for one query, by rounds of many; and the last answer. */
export async function costing(server, text, params, rounds) {
  const times = [];
  let last = await query(server, text, params); // what the first one loads is not counted
  for (let i = 0; i < rounds; i++) {
    const before = cpuOf(server.child.pid);
    let n = 0, cpu;
    do {
      last = await query(server, text, params);
      n++;
      cpu = cpuOf(server.child.pid) - before;
    } while (cpu < ROUND_CPU);
    times.push(cpu / n);
  }
  return { times, last };
}
