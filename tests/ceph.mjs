// A Ceph cluster with an S3 gateway on loopback, for tests and demos:
//
//   node tests/ceph.mjs run DIR [--osds=N] [--while-stdin]   until SIGTERM, `stop`, or the end of its input
//   node tests/ceph.mjs kill|pause|resume|start DIR NAME     NAME is mon, osd.0, osd.1, ... or rgw
//   node tests/ceph.mjs stop DIR
//
// `run` makes DIR, starts the cluster, and prints one line of JSON when the store answers: endpoint, bucket, accessKey,
// secretKey. It removes DIR at its end; nothing in it is worth keeping. Several clusters may run beside each other.
//
// The programs are Debian's. They are unpacked below build/ceph and run from there by their paths: LD_LIBRARY_PATH names
// their libraries, options name the folders of their plugins. One monitor, N OSDs, one gateway; no manager, since
// pools with fixed numbers of placement groups need none, and so no Python. Each object has three copies (as many as there
// are OSDs, if fewer) and is acknowledged by at least two.
//
// Space: the programs take 260 MB below build/. An OSD's store is a sparse file of 6 GiB that takes 4 MB at first, the
// monitor 40 MB. One OSD and the gateway are up in 6 s, three in 7 s; the daemons begin with 40 to 60 MB of memory each.
//
// End: every daemon is a child of this process and has asked the kernel for SIGKILL when its parent dies. A shell whose
// input is a pipe from here removes DIR when the pipe ends. So nothing stays behind a kill -9 of this process. Daemons have
// process groups of their own, so Ctrl-C in a terminal reaches this process alone. One that was killed, by whom ever, stays
// dead until it is started.
import { spawn } from 'node:child_process';
import { createConnection, createServer } from 'node:net';
import { existsSync, mkdirSync, openSync, closeSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { randomBytes, randomUUID } from 'node:crypto';
import { basename, dirname, join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { debian, request, sleep, until } from './e2e/lib.mjs';
import { S3 } from './s3_client.mjs';

const blockSize = 6 * 2 ** 30; // with less, an OSD of this version calls itself full early

/** Fetches the programs at the first use: { bin, lib, env }. */
export function fetchCeph() {
  const bin = debian('ceph', 'libraries', 'ceph-mon ceph-osd ceph-common radosgw');
  const usr = dirname(bin);
  const lib = readdirSync(join(usr, 'lib')).map((name) => join(usr, 'lib', name)).find((dir) => existsSync(join(dir, 'ceph')));
  const other = join(usr, '../lib', basename(lib)); // some packages put theirs beside usr
  return { bin, lib, env: { PATH: process.env.PATH, LD_LIBRARY_PATH: [lib, join(lib, 'ceph'), other].join(':') } };
}

function configuration({ dir, lib, fsid, osds, monPort, rgwPort }) {
  return `[global]
fsid = ${fsid}
mon_host = v2:127.0.0.1:${monPort}
public_addr = 127.0.0.1
cluster_addr = 127.0.0.1
ms_bind_msgr1 = false
keyring = ${dir}/keyring
auth_allow_insecure_global_id_reclaim = false
plugin_dir = ${join(lib, 'ceph')}
erasure_code_dir = ${join(lib, 'ceph/erasure-code')}
osd_class_dir = ${join(lib, 'rados-classes')}
run_dir = ${dir}
crash_dir =
chdir =
log_file = ${dir}/log/$name.log
log_to_stderr = false
err_to_stderr = true
mon_cluster_log_file = ${dir}/log/cluster.log
osd_pool_default_size = ${Math.min(osds, 3)}
osd_pool_default_min_size = ${Math.min(osds, 2)}
osd_pool_default_pg_num = 8
osd_pool_default_pgp_num = 8
osd_pool_default_pg_autoscale_mode = off
osd_crush_chooseleaf_type = 0
[mon]
mon_data = ${dir}/mon
admin_socket = ${dir}/$name.asok
mon_allow_pool_size_one = true
mon_osd_reporter_subtree_level = osd
paxos_propose_interval = 0.05
mon_data_avail_warn = 2
mon_data_avail_crit = 1
[osd]
osd_data = ${dir}/$name
admin_socket = ${dir}/$name.asok
osd_objectstore = bluestore
bluestore_block_size = ${blockSize}
bluestore_block_create = true
bdev_enable_discard = false
osd_memory_target = 939524096
osd_crush_update_on_start = false
osd_class_update_on_start = false
[client.rgw]
admin_socket = ${dir}/$name.asok
rgw_data = ${dir}/rgw
rgw_frontends = beast endpoint=127.0.0.1:${rgwPort}
rgw_dns_name = localhost
rgw_thread_pool_size = 64
rgw_enable_usage_log = false
`;
}

/** A key as Ceph writes it: its kind (AES), the time it was made, its length, its bytes. */
function key() {
  const head = Buffer.alloc(12);
  head.writeUInt16LE(1, 0);
  head.writeUInt32LE(Math.floor(Date.now() / 1000), 2);
  head.writeUInt16LE(16, 10);
  return Buffer.concat([head, randomBytes(16)]).toString('base64');
}

/** The monitor takes all these keys when it is made, and each daemon finds its own in the file. */
function keyring(osdNames) {
  const entry = (name, ...caps) => `[${name}]\n\tkey = ${key()}\n${caps.map(([on, what]) => `\tcaps ${on} = "allow ${what}"\n`).join('')}`;
  return [
    entry('mon.', ['mon', '*']),
    entry('client.admin', ['mon', '*'], ['osd', '*']),
    entry('client.rgw', ['mon', 'rw'], ['osd', 'rwx']),
    ...osdNames.map((name) => entry(name, ['mon', 'profile osd'], ['osd', '*'])),
  ].join('');
}

/** A port that nobody listens on now. Others look for theirs from 20000 on. */
export async function freePort() {
  for (;;) {
    const port = 10000 + Math.floor(Math.random() * 10000);
    const free = await new Promise((done) => {
      const server = createServer();
      server.on('error', () => done(false));
      server.listen(port, '127.0.0.1', () => server.close(() => done(true)));
    });
    if (free) return port;
  }
}

/** A command on a daemon's admin socket: a text with NUL at its end; the answer has four bytes of length before it. */
function ask(socket, prefix) {
  return new Promise((done, fail) => {
    const chunks = [];
    const c = createConnection(socket, () => c.write(`${JSON.stringify({ prefix })}\0`));
    c.on('data', (d) => chunks.push(d));
    c.on('end', () => {
      try {
        done(JSON.parse(Buffer.concat(chunks).subarray(4)));
      } catch (e) {
        fail(e); // an error as text: the daemon does not know the command yet
      }
    });
    c.on('error', fail);
  });
}

function removeAtEnd(dir) {
  const script = 'cat >/dev/null; for i in 1 2 3 4 5 6 7 8 9; do rm -rf -- "$1" && exit; sleep 1; done';
  const child = spawn('sh', ['-c', script, 'sh', dir], { stdio: ['pipe', 'ignore', 'ignore'], detached: true });
  const gone = new Promise((done) => child.on('close', done));
  return () => {
    child.stdin.end();
    return gone;
  };
}

export class Ceph {
  /** `ended(name, how)` is called when a daemon ends that nobody killed by `kill`. */
  constructor({ dir, osds = 1, ended = () => {} }) {
    Object.assign(this, { dir: resolve(dir), osds, ended, running: new Map(), wanted: new Set(), lost: [] });
  }

  /** Starts everything; on a failure nothing stays. */
  async begin() {
    const programs = fetchCeph();
    this.programs = programs;
    mkdirSync(this.dir); // a new one: it is removed at the end
    this.removed = removeAtEnd(this.dir);
    try {
      for (const name of ['log', 'mon', 'rgw']) mkdirSync(join(this.dir, name));
      await this.configure();
      await this.make();
      await this.start('mon');
      await Promise.all(this.osdNames().map((name) => this.start(name)));
      await this.createUser();
      await this.start('rgw');
      await until('a bucket', 30, () => new S3(this).createBucket());
    } catch (e) {
      await this.end();
      throw e;
    }
    return this;
  }

  osdNames() {
    return Array.from({ length: this.osds }, (_, i) => `osd.${i}`);
  }

  async configure() {
    this.fsid = randomUUID();
    this.monPort = await freePort();
    do this.rgwPort = await freePort(); while (this.rgwPort === this.monPort);
    writeFileSync(join(this.dir, 'ceph.conf'), configuration({ ...this, lib: this.programs.lib }));
    writeFileSync(join(this.dir, 'keyring'), keyring(this.osdNames()), { mode: 0o600 });
    this.endpoint = `http://127.0.0.1:${this.rgwPort}`;
    this.bucket = 'profiles';
    this.accessKey = `AK${randomBytes(9).toString('hex').toUpperCase()}`;
    this.secretKey = randomBytes(20).toString('hex');
  }

  /** The first map of OSDs has them all, so that they need not be announced one by one. */
  async make() {
    const map = (name) => join(this.dir, name);
    await this.run('monmaptool', ['--create', '--fsid', this.fsid, '--addv', 'a', `[v2:127.0.0.1:${this.monPort}]`, map('monmap')]);
    await this.run('osdmaptool', ['--osd_crush_chooseleaf_type=0', '--createsimple', `${this.osds}`, map('osdmap')]);
    const mon = this.run('ceph-mon', ['--mkfs', '-i', 'a', '--monmap', map('monmap'), '--osdmap', map('osdmap'),
      '--keyring', map('keyring')]);
    await Promise.all([mon, ...this.osdNames().map((name) => {
      mkdirSync(join(this.dir, name));
      return this.run('ceph-osd', ['--mkfs', '-i', name.slice(4), '--osd-uuid', randomUUID()]);
    })]);
  }

  async createUser() {
    await this.run('radosgw-admin', ['user', 'create', '--uid=profiles', '--display-name=profiles',
      `--access-key=${this.accessKey}`, `--secret-key=${this.secretKey}`]);
  }

  // ---- processes

  spawn(program, args, output) {
    if (this.ending) throw new Error('the cluster ends');
    const path = join(this.programs.bin, program);
    const fd = openSync(output, 'a');
    const child = spawn('setpriv', ['--pdeathsig', 'KILL', path, '-c', join(this.dir, 'ceph.conf'), '--no-mon-config', ...args],
      { stdio: ['ignore', fd, fd], env: this.programs.env, cwd: this.dir, detached: true });
    closeSync(fd);
    const run = { child, code: undefined };
    run.ended = new Promise((done) => {
      child.on('error', (e) => { run.code = e.message; done(); });
      child.on('exit', (code, signal) => { run.code = signal ?? code; done(); });
    });
    return run;
  }

  /** A program that ends. */
  async run(program, args) {
    const output = join(this.dir, 'log', `${program}.${randomUUID()}.out`);
    const run = this.spawn(program, args, output);
    this.running.set(output, run);
    const timer = setTimeout(() => run.child.kill('SIGKILL'), 240000);
    await run.ended;
    clearTimeout(timer);
    this.running.delete(output);
    if (run.code !== 0) throw new Error(`${program} ${args.join(' ')}: ended with ${run.code}: ${readFileSync(output)}`);
  }

  command(name) {
    if (name === 'mon') return ['ceph-mon', ['-f', '-i', 'a']];
    if (name === 'rgw') return ['radosgw', ['-f', '-n', 'client.rgw']];
    if (this.osdNames().includes(name)) return ['ceph-osd', ['-f', '-i', name.slice(4)]];
    throw new Error(`${name} is none of mon, ${this.osdNames().join(', ')}, rgw`);
  }

  /** True when the daemon does its work. */
  async ready(name) {
    if (name === 'mon') return (await ask(join(this.dir, 'mon.a.asok'), 'mon_status')).state === 'leader';
    if (name === 'rgw') return (await request(this.endpoint)).status < 500;
    return (await ask(join(this.dir, `${name}.asok`), 'status')).state === 'active';
  }

  output(name) {
    const logs = [`${name}.out`, { mon: 'mon.a.log', rgw: 'client.rgw.log' }[name] ?? `${name}.log`];
    return logs.map((log) => join(this.dir, 'log', log)).filter(existsSync)
      .map((log) => `${log}:\n${readFileSync(log).subarray(-4000)}`).join('\n');
  }

  /** Starts a daemon, and waits until it does its work. */
  async start(name) {
    const [program, args] = this.command(name);
    if (this.wanted.has(name)) throw new Error(`${name} runs already`);
    const run = this.spawn(program, args, join(this.dir, 'log', `${name}.out`));
    this.running.set(name, run);
    this.wanted.add(name);
    run.ended.then(() => {
      if (this.running.get(name) !== run || !this.wanted.delete(name)) return;
      this.lost.push(`${name} ended with ${run.code}: ${this.output(name)}`);
      this.ended(name, run.code);
    });
    await until(`${name} is ready`, 60, async () => {
      if (run.code === undefined) return this.ready(name);
      return 'ended';
    });
    if (run.code !== undefined) throw new Error(`${name} ended with ${run.code}: ${this.output(name)}`);
  }

  find(name) {
    this.command(name);
    if (!this.wanted.has(name)) throw new Error(`${name} does not run`);
    return this.running.get(name);
  }

  /** Undefined if it does not run. */
  pid(name) {
    return this.wanted.has(name) ? this.running.get(name).child.pid : undefined;
  }

  async kill(name) {
    const run = this.find(name);
    this.wanted.delete(name);
    run.child.kill('SIGKILL');
    await run.ended;
  }

  /** The daemon stops where it is: its connections stay open and silent. */
  async pause(name) {
    this.find(name).child.kill('SIGSTOP');
  }

  async resume(name) {
    this.find(name).child.kill('SIGCONT');
  }

  async end() {
    this.ending = true;
    this.wanted.clear();
    await Promise.all([...this.running.values()].map((run) => {
      if (run.code === undefined) run.child.kill('SIGKILL');
      return run.ended;
    }));
    await this.removed?.();
  }

  /** Ends all. It fails if a daemon ended by itself before. */
  async stop() {
    const lost = [...this.lost];
    await this.end();
    if (lost.length) throw new Error(lost.join('\n'));
  }
}

// ---- the command

/**
 * One command a connection on the socket DIR/control: "kill osd.1" calls ceph.kill("osd.1"). The answer is an error, or "ok"
 * and, behind a line's end, the text that the call gave.
 */
export function control(ceph, commands) {
  const server = createServer((socket) => {
    socket.on('error', () => {});
    socket.once('data', async (line) => {
      const [command, name] = line.toString().trim().split(' ');
      try {
        if (!commands.includes(command)) throw new Error(`${command} is no command`);
        socket.end(`ok\n${(await ceph[command](name)) ?? ''}`);
      } catch (e) {
        socket.end(e.message);
      }
    });
  });
  server.listen(join(ceph.dir, 'control'));
  return server;
}

async function runCommand(dir, options) {
  const osds = Number(options.find((o) => o.startsWith('--osds='))?.slice(7) ?? 1);
  const ceph = new Ceph({ dir, osds });
  let stopping;
  const stop = (code) => {
    stopping ??= ceph.end().then(() => process.exit(code));
    return stopping;
  };
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.on(signal, () => stop(0));
  if (options.includes('--while-stdin')) process.stdin.on('end', () => stop(0)).resume();
  await ceph.begin();
  ceph.quit = async () => { setTimeout(() => stop(0), 10); };
  control(ceph, ['kill', 'pause', 'resume', 'start', 'quit']);
  const { endpoint, bucket, accessKey, secretKey } = ceph;
  console.log(JSON.stringify({ endpoint, bucket, accessKey, secretKey, dir: ceph.dir }));
}

/** Sends a command to who listens in this directory; gives the text of the answer. */
export function tell(dir, line) {
  return new Promise((done, fail) => {
    let answer = '';
    const c = createConnection(join(dir, 'control'), () => c.write(`${line}\n`));
    c.on('data', (d) => (answer += d));
    c.on('end', () => (answer.startsWith('ok\n') ? done(answer.slice(3)) : fail(new Error(answer))));
    c.on('error', fail);
  });
}

async function main([command, dir, ...rest]) {
  if (command === 'run' && dir) return runCommand(dir, rest);
  if (command === 'stop' && dir) {
    await tell(dir, 'quit');
    while (existsSync(dir)) await sleep(50);
    return undefined;
  }
  if (['kill', 'pause', 'resume', 'start'].includes(command) && rest.length === 1) return tell(dir, `${command} ${rest[0]}`);
  throw new Error('usage: ceph.mjs run DIR [--osds=N] [--while-stdin] | kill|pause|resume|start DIR NAME | stop DIR');
}

if (process.argv[1] && import.meta.url === pathToFileURL(resolve(process.argv[1])).href) {
  main(process.argv.slice(2)).catch((e) => {
    console.error(e.message);
    process.exit(1);
  });
}
