// A process of the cluster with a name: one that was killed, by whom ever, stays dead until it is started again.
import { spawn } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { request, sleep } from '../../tests/e2e/lib.mjs';

const READY_SECONDS = 300; // a shard that lost its disk waits a minute for its lease

export class Member {
  /** It is ready when `path` is answered with 200. `ended(name, how)` is called when it ends and nobody asked for that. */
  constructor({ name, about, program, args, env, port, path, ended }) {
    Object.assign(this, { name, about, program, args, env, port, path, ended, url: `http://127.0.0.1:${port}`, run: undefined, paused: false });
  }

  /**
   * The kernel kills it when this process dies. It has a process group of its own, so that Ctrl-C in a terminal ends it in
   * order: through this process, while the store is still there.
   */
  async start() {
    if (this.run) throw new Error(`${this.name} runs already`);
    const fd = openSync(`log/${this.name}.log`, 'a');
    const child = spawn('setpriv', ['--pdeathsig', 'KILL', this.program, ...this.args],
      { stdio: ['ignore', fd, fd], env: this.env, detached: true });
    closeSync(fd);
    const run = { child, wanted: true, how: undefined };
    this.run = run;
    this.paused = false;
    run.done = new Promise((done) => {
      const ended = (how) => {
        run.how = how;
        this.run = undefined;
        if (run.wanted) this.ended(this.name, how);
        done();
      };
      child.on('error', (e) => ended(e.message));
      child.on('exit', (code, signal) => ended(signal ?? `exit code ${code}`));
    });
    await this.ready(run);
  }

  async ready(run) {
    const end = Date.now() + READY_SECONDS * 1000;
    while (run.how === undefined) {
      const answer = await request(this.url + this.path).catch(() => ({}));
      if (answer.status === 200 && run.how === undefined) return;
      if (Date.now() > end) throw new Error(`${this.name} is not ready after ${READY_SECONDS} s: ${this.lastLines()}`);
      await sleep(100);
    }
    throw new Error(`${this.name} ended (${run.how}): ${this.lastLines()}`);
  }

  lastLines() {
    return readFileSync(`log/${this.name}.log`, 'utf8').trimEnd().split('\n').slice(-3).join('\n');
  }

  pid() {
    return this.run?.child.pid;
  }

  state() {
    if (!this.run) return 'dead';
    return `pid ${this.pid()}${this.paused ? ', stands still' : ''}`;
  }

  running() {
    if (!this.run) throw new Error(`${this.name} does not run`);
    return this.run;
  }

  async kill() {
    const run = this.running();
    run.wanted = false;
    run.child.kill('SIGKILL');
    await run.done;
  }

  async pause() {
    this.running().child.kill('SIGSTOP');
    this.paused = true;
  }

  async resume() {
    this.running().child.kill('SIGCONT');
    this.paused = false;
  }

  /** In order, if it can; nothing is said of it. */
  async end(seconds) {
    const { run } = this;
    if (!run) return;
    run.wanted = false;
    run.child.kill('SIGCONT');
    run.child.kill('SIGTERM');
    const timer = setTimeout(() => run.child.kill('SIGKILL'), seconds * 1000);
    await run.done;
    clearTimeout(timer);
  }
}
