// Debug data of a large C++ program, which is compiled here: its index, and look-ups beside llvm-symbolizer's.
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { build, epitool, request, root, startServer } from '../e2e/lib.mjs';
import { message, varint } from '../e2e/otlp_requests.mjs';
import { data, emptyDirectory, env, lines } from './common.mjs';
import { count, note } from './report.mjs';

const ROUNDS = 5;
const GB = 1e9;
const NEW = 50000, DEPTH = 16; // addresses of a service that nobody has asked for; frames of a stack
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

const number = (field, n) => Buffer.concat([varint(field * 8), varint(n)]);

/** A CPU profile of a service without names: n addresses over all of its code, each the leaf of a stack of others. */
function profile(path, n) {
  const id = execFileSync('readelf', ['-n', path]).toString().match(/Build ID: ([0-9a-f]+)/)[1];
  const [, from, , size] = execFileSync('readelf', ['-SW', path]).toString().match(/ \.text +\S+ +([0-9a-f]+) ([0-9a-f]+) ([0-9a-f]+)/);
  const start = 0x10000000, code = parseInt(from, 16), bytes = parseInt(size, 16);
  const parts = [message(1, number(1, 1), number(2, 2)), number(9, (Date.now() - 20000) * 1e6), number(10, 10e9),
    message(3, number(1, 1), number(2, start), number(3, start + 0x10000000), number(5, 3), number(6, 4))];
  for (const text of ['', 'samples', 'count', path, id]) parts.push(message(6, text));
  for (let i = 1; i <= n; i++) {
    parts.push(message(4, number(1, i), number(2, 1), number(3, start + code + Math.floor((i * bytes) / (n + 1)))));
    const stack = Array.from({ length: DEPTH }, (_, k) => varint(1 + (i * (1 + k * k * 7919)) % n));
    parts.push(message(2, message(1, ...stack), message(2, varint(1 + (i % 9)))));
  }
  return gzipSync(Buffer.concat(parts), { level: 1 });
}

/** The first query of a service whose addresses nobody has looked up, and the second one. */
async function queries(t, path) {
  const seconds = [[], []];
  for (let round = 0; round < 3; round++) {
    const server = await startServer(t, { dir: emptyDirectory('symbols-query'), config: 'scrape_configs: []\n', args: ['--web.enable-ingest'] });
    const pushed = await request(`${server.url}/api/v1/ingest?name=process_cpu&job=native`, { method: 'POST', body: profile(path, NEW) });
    if (pushed.status !== 200) throw new Error(pushed.body.toString());
    execFileSync(epitool, ['debuginfo', 'upload', `--server=${server.url}`, path]);
    const asked = `${server.url}/api/v1/query?${new URLSearchParams({ query: 'top(10, process_cpu:samples{job="native"})',
      start: Date.now() / 1000 - 600, end: Date.now() / 1000 })}`;
    for (const list of seconds) {
      const began = performance.now(), answer = await request(asked);
      list.push((performance.now() - began) / 1000);
      if (!/"functions":[0-9]{3,}/.test(answer.body.toString())) throw new Error(answer.body.toString().slice(0, 500));
    }
    await server.stop();
  }
  const what = `top 10 of a service of ${count(NEW)} new addresses`;
  note(`${what}, the first time`, { ours: seconds[0], unit: 'seconds' });
  note(`${what}, again`, { ours: seconds[1], unit: 'seconds' });
}

export async function symbols(t) {
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
  await queries(t, path);
}
