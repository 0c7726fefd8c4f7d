// The end-to-end tests share this: it starts the real programs on free ports and waits for their output.
import assert from 'node:assert/strict';
import { spawn, execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync, existsSync, mkdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import http from 'node:http';
import https from 'node:https';
import { gzipSync } from 'node:zlib';

export { freePort } from '../ports.mjs';

export const root = resolve(dirname(fileURLToPath(import.meta.url)), '../..');
export const build = resolve(process.env.EPI_BUILD || join(root, 'build'));
export const epimetheus = join(build, 'epimetheus');
export const epitool = join(build, 'epitool');
const demoProgram = join(root, 'build', 'demo');

// Tests run one version of Go, whatever the machine has; scripts that begin with tests/env.sh have it in PATH already.
process.env.PATH = `${dirname(execFileSync(join(root, 'tests/go.sh')).toString())}:${process.env.PATH}`;
process.env.GOTOOLCHAIN = 'local';

export function sleep(ms) {
  return new Promise((done) => setTimeout(done, ms));
}

/** Seconds after which a thing that does not come is said to hang. */
export const HANGS_S = 600;

/**
 * Calls fn until it returns something true. `seconds` is enough on an idle machine. On a busy one it may take much longer;
 * only what never comes fails, with the last error or value.
 */
export async function until(what, seconds, fn) {
  const limit = Math.max(HANGS_S, 4 * seconds), end = Date.now() + limit * 1000;
  let last;
  for (;;) {
    try {
      last = await fn();
      if (last) return last;
    } catch (e) {
      last = e;
    }
    if (Date.now() > end) throw new Error(`${what}: not within ${limit} s; last: ${last?.stack || JSON.stringify(last)}${endings()}`);
    await sleep(100);
  }
}

const running = new Set();
const unasked = []; // that ended though nobody stopped them: servers, and programs that failed

/** What may be why something never comes. */
const endings = () => unasked.map((run) => `\n${run.command} ended with ${run.signal ?? run.code}: ${run.err.slice(-2000)}`).join('');

/** A directory that is removed when the test ends, after the programs that were started with it have ended. */
export function scratch(t) {
  const dir = mkdtempSync(join(tmpdir(), 'epi-e2e-'));
  t.after(async () => {
    await Promise.all([...running].filter((run) => run.command.includes(dir)).map((run) => run.stop('SIGKILL')));
    rmSync(dir, { recursive: true, force: true, maxRetries: 10 });
  });
  return dir;
}

/** Starts a child process and keeps its output; the process is ended with the test. */
export function start(t, program, args, options = {}) {
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'], ...options });
  const run = { child, out: '', err: '', code: undefined, signal: undefined, command: [program, ...args, options.cwd].join(' ') };
  running.add(run);
  child.stdout.on('data', (d) => (run.out += d));
  child.stderr.on('data', (d) => (run.err += d));
  run.ended = new Promise((done) => {
    const ended = (code, signal) => {
      running.delete(run);
      run.code = code;
      run.signal = signal;
      if (!run.stopping && (run.serves || code !== 0)) unasked.push(run);
      done(run);
    };
    child.on('error', (e) => { run.err += e.stack; ended(-1); });
    child.on('close', ended);
  });
  run.stop = async (signal = 'SIGTERM') => {
    run.stopping = true;
    if (run.code === undefined) child.kill(signal);
    return run.ended;
  };
  t.after(() => run.stop('SIGKILL'));
  return run;
}

/** Waits for the end of a program. It is killed if it hangs, after `seconds` or more. */
export async function programEnds(run, seconds = 60) {
  const timer = setTimeout(() => {
    run.err += '\nkilled, since it did not end';
    run.child.kill('SIGKILL');
  }, Math.max(HANGS_S, seconds) * 1000);
  await run.ended;
  clearTimeout(timer);
  return run;
}

/** Runs a program to its end, or as long as programEnds() has it. */
export const finish = (t, program, args, seconds = 60, options = {}) => programEnds(start(t, program, args, options), seconds);

/** The long flags that what a program's --help printed lists, in order; `[no-]NAME` where --no-NAME is one too. */
export const helpFlags = (help) => [...help.matchAll(/^  (?:-\w, |    )--((?:\[no-\])?[a-z][a-z0-9._-]*)/gm)].map((m) => m[1]);

/**
 * The server, on a free port unless one is given; config is YAML text, or undefined for a start without a file. `seconds`:
 * until it is ready, as until() has it; `by`: a program with arguments that starts it. ready: false does not wait;
 * 'listening' waits for its port only, which answers before the server is ready.
 */
export async function startServer(t, { dir, config, args = [], ready = true, scheme = 'http', port = 0, seconds = 20, env,
  program = epimetheus, by = [] }) {
  const list = [`--web.listen-address=127.0.0.1:${port}`, `--storage.tsdb.path=${join(dir, 'data')}`, ...args];
  if (config !== undefined) {
    writeFileSync(join(dir, 'epimetheus.yml'), config);
    list.push(`--config.file=${join(dir, 'epimetheus.yml')}`);
  }
  const [first, ...rest] = [...by, program, ...list];
  const run = start(t, first, rest, { cwd: dir, env });
  run.began = Date.now();
  run.serves = true;
  // In no test may the server need a system call that its sandbox does not allow.
  t.after(async () => {
    await run.stop('SIGKILL');
    assert.doesNotMatch(run.err, /system call refused|are not limited/);
    assert.notEqual(run.signal, 'SIGSYS');
  });
  if (!ready) return run;
  const event = ready === true ? 'ready' : ready;
  run.port = await until(`server is ${event}`, seconds, () => run.code !== undefined ||
    run.err.match(new RegExp(`msg=${event}\\b.*\\bport=(\\d+)`))?.[1]);
  if (run.code !== undefined) throw new Error(`server ended with ${run.code}: ${run.err}`);
  run.url = `${scheme}://127.0.0.1:${run.port}`;
  return run;
}

/** One HTTP exchange, without following redirects or decoding. */
export function request(url, { method = 'GET', headers = {}, body, ...rest } = {}) {
  return new Promise((done, fail) => {
    const req = (url.startsWith('https') ? https : http).request(url, { method, headers, agent: false, ...rest }, (res) => {
      const chunks = [];
      res.on('data', (c) => chunks.push(c));
      res.on('end', () => done({ status: res.statusCode, headers: res.headers, body: Buffer.concat(chunks) }));
      res.on('error', fail);
    });
    req.on('error', fail);
    req.setTimeout(HANGS_S * 1000, () => req.destroy(new Error(`no answer within ${HANGS_S} s`)));
    req.end(body);
  });
}

export async function api(server, path, params = {}, options = {}) {
  const res = await request(`${server.url}/api/v1/${path}?${new URLSearchParams(params)}`, options);
  const answer = JSON.parse(res.body);
  if (answer.status !== 'success') throw new Error(`${path} ${JSON.stringify(params)}: ${res.status} ${answer.error}`);
  return answer.data;
}

export function query(server, text, params = {}) {
  return api(server, 'query', { query: text, ...params });
}

export async function targets(server) {
  return (await api(server, 'targets')).activeTargets;
}

/**
 * A time whose answers do not change any more: each target's profiles are stored up to the end of its last scrape,
 * which is told to the millisecond. A profile has the time of its scrape's end, numbers have that of its start. `of` says
 * which targets count, where some are never scraped by themselves.
 */
export async function settled(server, of = () => true) {
  const all = await until('each target was scraped', 60, async () => {
    const list = (await targets(server)).filter(of);
    return list.length && list.every((x) => x.scrapes > 0) && list;
  });
  return Math.min(...all.map((x) => Date.parse(x.lastScrape) + x.lastScrapeDuration * 1000)) / 1000 - 0.002;
}

/**
 * The directory of the programs of a Debian package, or of several that are kept as `name`. They are fetched at their first
 * use, with 'libraries' those that are missing here too.
 */
export function debian(name, libraries = '', packages = name) {
  return execFileSync(join(root, 'tests/debian.sh'), [packages, join(root, 'build', name), libraries]).toString().trim();
}

/** Debian's Prometheus on a free port, with this configuration. */
export async function startPrometheus(t, dir, config) {
  const program = join(debian('prometheus'), 'prometheus');
  const file = join(dir, 'prometheus.yml');
  mkdirSync(dir, { recursive: true });
  writeFileSync(file, config);
  return startOnFreePort(t, 'prometheus', (port) => start(t, program, [`--config.file=${file}`,
    `--storage.tsdb.path=${join(dir, 'data')}`, `--web.listen-address=127.0.0.1:${port}`,
    '--enable-feature=no-default-scrape-port'], { cwd: dir }));
}

/** For programs that cannot choose a port themselves: `run(port)` starts one. A port that is in use is replaced by another. */
export async function startOnFreePort(t, what, run) {
  for (let attempt = 0; attempt < 5; attempt++) {
    const port = 20000 + Math.floor(Math.random() * 12000);
    const one = run(port);
    one.url = `http://127.0.0.1:${port}`;
    const ready = await until(`${what} is ready`, 30, async () => {
      if (one.code !== undefined) return 'ended';
      return (await request(`${one.url}/-/ready`)).status === 200 && 'ready';
    });
    if (ready === 'ready') return one;
    if (!/address already in use/.test(one.err)) throw new Error(one.err);
  }
  throw new Error('no free port');
}

/** The demo program, built once; without Go the test fails. */
export function buildDemo() {
  mkdirSync(dirname(demoProgram), { recursive: true });
  execFileSync('go', ['build', '-o', demoProgram, '.'], { cwd: join(root, 'examples/demo'), stdio: 'pipe' });
  return demoProgram;
}

export function demoRegressions() {
  return execFileSync(buildDemo(), ['--list-regressions']).toString().trim().split('\n');
}

/** Starts a demo on a free port; returns host:port. */
export async function startDemo(t, version, regression, load = 100) {
  const run = start(t, buildDemo(), ['--listen=127.0.0.1:0', '--print-port', `--version-label=${version}`,
    `--regression=${regression}`, `--load=${load}`]);
  run.address = await until(`demo ${version} listens`, 10, () => run.out.match(/127\.0\.0\.1:\d+/)?.[0]);
  return run;
}

/** A pprof profile of one sample, of the function main.work; value is up to 127. */
export function oneSampleProfile(value) {
  const strings = ['', 'samples', 'count', 'main.work'];
  const field = (n, bytes) => [n << 3 | 2, bytes.length, ...bytes];
  return gzipSync(Buffer.from([
    ...field(1, [8, 1, 16, 2]), // sample_type
    ...field(2, [8, 1, 16, value]), // sample: location 1
    ...field(4, [8, 1, ...field(4, [8, 1])]), // location 1: line of function 1
    ...field(5, [8, 1, 16, 3]), // function 1
    ...strings.flatMap((s) => field(6, [...Buffer.from(s)])),
  ]));
}

/** A CPU profile of a Go program, which was recorded once. */
export const recordedCpu = () => readFileSync(join(root, 'tests/proto/testdata/go_cpu.pb.gz'));

export { existsSync, join, writeFileSync, execFileSync };
