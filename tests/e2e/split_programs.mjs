// Programs whose debug data lie in several files, profiles of their addresses, and what llvm-symbolizer calls those in the same
// program with its debug data in one piece: llvm-symbolizer 14 misses inlined calls in version 5 of split DWARF.
import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { execFileSync, join, request, writeFileSync } from './lib.mjs';
import { varint } from './otlp_requests.mjs';

const header = `
struct shop { long orders[16]; struct shop *next; union { int small; long large; } total; };
static inline __attribute__((always_inline)) long shop_weigh(const volatile struct shop *s, long at) { return s->orders[at & 15] * 3 + at; }
static inline __attribute__((always_inline)) long shop_rank(const volatile struct shop *s, long n)
{
  long sum = 0;
  for (long i = 0; i < n; i++)
    sum ^= shop_weigh(s, i);
  return sum;
}
`;
const sources = {
  'main.c': '#include "shop.h"\nlong shop_serve(struct shop *, long);\n'
    + 'int main(int argc, char **argv) { struct shop s = { { argc } }; return shop_serve(&s, argc) + shop_rank(&s, argc); }\n',
  'serve.c': '#include "shop.h"\n__attribute__((noinline)) long shop_serve(struct shop *s, long n) { return shop_rank(s, n) + shop_rank(s, n / 2); }\n',
};

export function run(dir, command) {
  return execFileSync('sh', ['-ec', command], { cwd: dir, stdio: 'pipe' }).toString();
}

/** Writes the sources, and compiles them into object files with these options. */
export function compile(dir, compiler) {
  mkdirSync(dir, { recursive: true });
  writeFileSync(join(dir, 'shop.h'), header);
  for (const [name, text] of Object.entries(sources)) writeFileSync(join(dir, name), text);
  run(dir, `for f in main serve; do ${compiler} -O2 -fno-pie -c -o $f.o $f.c; done`);
}

/** Links the object files to a program with this build id. */
export function link(dir, name, id) {
  run(dir, `gcc -no-pie -Wl,--build-id=0x${id} -o ${name} main.o serve.o`);
  return join(dir, name);
}

/** The frames of framesOf for a program made with these options; its code is that of `file`. */
export function framesOfWhole(dir, compiler, file) {
  compile(dir, compiler);
  const whole = link(dir, 'whole', 'aabb0000000000ff');
  const code = (f) => execFileSync('objdump', ['-d', '--no-show-raw-insn', '--section=.text', f]).toString().split('\n').slice(3).join('\n');
  assert.equal(code(whole), code(file));
  return framesOf(whole);
}

/** Addresses of the program's functions, with their frames, as llvm-symbolizer says: {address, stack}, the outermost first. */
function framesOf(file) {
  const functions = execFileSync('nm', ['-S', file]).toString().split('\n')
    .map((line) => line.match(/^([0-9a-f]+) ([0-9a-f]+) T (?:main|shop_serve)$/)).filter(Boolean);
  const addresses = functions.flatMap((m) => [...Array(parseInt(m[2], 16)).keys()].map((i) => parseInt(m[1], 16) + i));
  const said = execFileSync('llvm-symbolizer-14', ['--inlines', '--output-style=JSON', '-e', file, ...addresses.map((a) => `0x${a.toString(16)}`)]);
  return JSON.parse(said).map((answer, i) => ({ address: addresses[i], stack: answer.Symbol.map((s) => s.FunctionName).reverse() }));
}

const field = (n, bytes) => [...varint(n * 8 + 2), ...varint(bytes.length), ...bytes];
const number = (n, v) => [...varint(n * 8), ...varint(v)];

/** A CPU profile of one sample at each address. */
export function profile(path, id, addresses) {
  const strings = ['', 'cpu', 'nanoseconds', path, id];
  return Buffer.from([
    ...field(1, [...number(1, 1), ...number(2, 2)]),
    ...addresses.flatMap((_, i) => field(2, [...field(1, varint(i + 1)), ...field(2, varint(1))])),
    ...field(3, [...number(1, 1), ...number(2, 0x400000), ...number(3, 0x500000), ...number(5, 3), ...number(6, 4)]),
    ...addresses.flatMap((a, i) => field(4, [...number(1, i + 1), ...number(2, 1), ...number(3, a)])),
    ...strings.flatMap((s) => field(6, [...Buffer.from(s)])),
    ...field(11, [...number(1, 1), ...number(2, 2)]),
    ...number(12, 10000000),
  ]);
}

export async function push(server, job, path, id, frames) {
  const res = await request(`${server.url}/api/v1/ingest?name=process_cpu&job=${job}`,
    { method: 'POST', body: profile(path, id, frames.map((f) => f.address)) });
  assert.equal(res.status, 200, res.body.toString());
}

/** {stack: samples} of what the server says. */
export async function stacksOf(server, job) {
  const params = new URLSearchParams({ query: `process_cpu{job="${job}"}`, format: 'folded', start: Date.now() / 1000 - 3600, end: Date.now() / 1000 + 60 });
  const res = await request(`${server.url}/api/v1/query?${params}`);
  assert.equal(res.status, 200, res.body.toString());
  return Object.fromEntries(res.body.toString().split('\n').map((line) => line.match(/^([^#].*) (\d+)$/)).filter(Boolean).map((m) => [m[1], Number(m[2])]));
}

/** The same of the frames. */
export function counted(frames) {
  const sums = {};
  for (const f of frames) sums[f.stack.join(';')] = (sums[f.stack.join(';')] ?? 0) + 1;
  return sums;
}
