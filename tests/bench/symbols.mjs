// Debug data of a large C++ program, which is compiled here: its index, and look-ups beside llvm-symbolizer's.
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { join } from 'node:path';
import { build, root } from '../e2e/lib.mjs';
import { data, emptyDirectory, env, lines } from './common.mjs';
import { note } from './report.mjs';

const ROUNDS = 5;
const GB = 1e9;
const FEW = 2000, MANY = 22000; // addresses; the difference of both is what addresses cost
const program = join(build, 'tests/bench/symbols/symbols_bench');
const unit = join(root, 'tests/bench/symbols/unit.cc');

/** A program of many units, of some 5 MB of debug data each; made once as long as their source is the same. */
function binary(units) {
  const dir = join(data, 'symbols'), stamp = join(dir, 'made'), path = join(dir, 'program');
  const what = `${units}\n${readFileSync(unit)}`;
  if (existsSync(stamp) && readFileSync(stamp).toString() === what) return path;
  emptyDirectory('symbols');
  const numbers = Array.from({ length: units }, (_, i) => i);
  writeFileSync(join(dir, 'main.cc'), `#include <string>\n${numbers.map((i) => `double unit_${i}(const std::string &);\n`).join('')}
int main() { return 0.0 ${numbers.map((i) => `+ unit_${i}("a=1;b=2")`).join(' ')} > 5; }\n`);
  const compile = `g++ -std=c++17 -O2 -g -DUNIT={} -DNAME=unit_{} -DSTORES=2 -c -o ${dir}/{}.o ${unit}`;
  execFileSync('xargs', ['-P', String(cpus().length), '-I{}', 'sh', '-c', compile], { input: numbers.join('\n') });
  execFileSync('sh', ['-c', `cd ${dir} && g++ -O2 -g -o program main.cc ${numbers.map((i) => `${i}.o`).join(' ')} && rm *.o`]);
  writeFileSync(stamp, what);
  return path;
}

/** CPU seconds of llvm-symbolizer on a list of addresses. */
function symbolizer(path, list) {
  const run = spawnSync('bash', ['-c', `TIMEFORMAT='%U'; time DEBUGINFOD_URLS= llvm-symbolizer-14 --inlines -e '${path}' <'${list}' >/dev/null`]);
  if (run.status !== 0) throw new Error(run.stderr.toString());
  return Number(run.stderr.toString().trim());
}

export function symbols() {
  const path = binary(env('BENCH_UNITS', 16)), dir = join(data, 'symbols'), index = join(dir, 'index');
  const made = Array.from({ length: ROUNDS }, () => lines(program, ['extract', path, index])[0]);
  const of = made[0], per = (f) => made.map((m) => f(m) / (m.file_bytes / GB));
  note('index of a C++ program, by GB of its file', { ours: per((m) => m.cpu_s), unit: 'seconds', of });
  note('memory of making it, by GB of its file', { ours: per((m) => m.memory_mib), unit: 'MiB', of });
  note('index of a C++ program, of its debug data', { ours: (of.index_bytes / of.dwarf_bytes) * 100, unit: '%', of });

  mkdirSync(dir, { recursive: true });
  const theirs = [];
  for (const n of [FEW, MANY]) writeFileSync(join(dir, `addresses-${n}`), execFileSync(program, ['addresses', index, String(n)], { maxBuffer: 64 << 20 }));
  for (let i = 0; i < 3; i++) {
    const few = symbolizer(path, join(dir, `addresses-${FEW}`)), many = symbolizer(path, join(dir, `addresses-${MANY}`));
    theirs.push((MANY - FEW) / Math.max(many - few, 0.001));
  }
  const found = lines(program, ['find', index, String(ROUNDS + 1)]).slice(1); // the first verifies pages
  note('look-ups, warm, random order (other: llvm-symbolizer --inlines)',
    { ours: found.map((f) => f.per_s), theirs, unit: 'addresses/s', faster: true, of: found[0] });
}
