// `make cluster` as a person uses it: it prints who runs where, any member may be killed and started again while the others
// answer, and Ctrl-C leaves nothing behind.
import test from 'node:test';
import assert from 'node:assert/strict';
import { readdirSync, readFileSync, readlinkSync, realpathSync } from 'node:fs';
import { relative } from 'node:path';
import { S3Fake } from '../s3_fake.mjs';
import {
  api, build, epitool, existsSync, finish, join, programEnds, query, request, root, scratch, start, startServer, until,
} from './lib.mjs';

const script = join(root, 'examples/cluster/run.mjs');
const SHOPS = ['shop-0', 'shop-1', 'shop-2', 'shop-3', 'shop-4', 'shop-5'];
const SERVERS = ['query-0', 'query-1', 'shard-0', 'shard-1', 'shard-2'];

/** The processes in these directories, or whose command names one of them. */
function processes(...dirs) {
  return readdirSync('/proc').filter((pid) => /^\d+$/.test(pid) && Number(pid) !== process.pid).filter((pid) => {
    try {
      const text = `${readlinkSync(`/proc/${pid}/cwd`)} ${readFileSync(`/proc/${pid}/cmdline`)}`;
      return dirs.some((dir) => text.includes(dir));
    } catch {
      return false; // it has ended
    }
  });
}

/** A cluster that was started by a command in a terminal of its own. */
class Terminal {
  constructor(t, command, args, more = {}) {
    this.t = t;
    this.dir = join(realpathSync(scratch(t)), 'cluster');
    const { MAKEFLAGS, MAKELEVEL, MFLAGS, EPI_S3_ENDPOINT, ...env } = process.env;
    this.env = { ...env, EPI_BUILD: build, EPI_DIR: this.dir, EPI_PORT: '0', ...more };
    this.run = start(t, command, args, { cwd: root, env: this.env, detached: true });
    t.after(async () => {
      this.press('SIGKILL');
      await until('nothing runs', 30, () => processes(this.dir).length === 0);
    });
  }

  /** As Ctrl-C does: all in the terminal's foreground get it. */
  press(signal) {
    if (this.run.code === undefined) process.kill(-this.run.child.pid, signal);
  }

  async ready() {
    await until('the cluster is there', 180, () => {
      assert.equal(this.run.code, undefined, `${this.run.out}${this.run.err}`);
      return this.run.out.includes('Ctrl-C ends all');
    });
    this.members = await this.status();
  }

  /** Names with { pid, url, about }. */
  async status() {
    const text = await this.command('status');
    return new Map([...text.matchAll(/^ {2}(\S+) +(?:pid (\d+)|dead) +(?:(http\S+)\/)?(?: +(.*))?$/gm)]
      .map(([, name, pid, url, about]) => [name, { pid: Number(pid), url, about }]));
  }

  async command(...args) {
    const run = await finish(this.t, script, args, 600, { cwd: root, env: this.env });
    assert.equal(run.code, 0, `${args}: ${run.out}${run.err}\n${this.run.out}`);
    return run.out;
  }

  async refused(...args) {
    const run = await finish(this.t, script, args, 60, { cwd: root, env: this.env });
    assert.equal(run.code, 1, run.out);
    return run.err;
  }

  async ends() {
    await programEnds(this.run);
    assert.match(this.run.out, /All have ended/, this.run.err);
    assert.deepEqual(processes(this.dir), []);
  }
}

/** What a member says of all that the shops cost since then: { pods, warnings }. */
async function asked(member, since) {
  const params = { query: 'total(merge by (pod) (cpu:samples{job="shop"}))', start: since, end: Date.now() / 1000 };
  const answer = JSON.parse((await request(`${member.url}/api/v1/query?${new URLSearchParams(params)}`)).body);
  assert.equal(answer.status, 'success', answer.error);
  return { pods: answer.data.result.filter((one) => Number(one.value[1]) > 0).map((one) => one.metric.pod).sort(),
    warnings: answer.warnings ?? [] };
}

/** A query node has profiles of all shops since then, and lacks nothing. */
function hasAll(member, since, what) {
  return until(what, 60, async () => {
    const { pods, warnings } = await asked(member, since);
    assert.deepEqual(pods, SHOPS);
    assert.deepEqual(warnings, []);
    return true;
  });
}

test('make cluster: members die and come back', async (t) => {
  const began = Date.now() / 1000;
  const terminal = new Terminal(t, 'make', ['--no-print-directory', 'cluster', `BUILD=${relative(root, build)}`]);
  await terminal.ready();
  const { members } = terminal;
  const [node, other] = ['query-0', 'query-1'].map((name) => members.get(name));
  const ceph = readFileSync(`/proc/${members.get('rgw').pid}/cmdline`, 'utf8').match(/-c\0(.*)\/ceph\.conf/)[1];

  await t.test('it says who is there', async () => {
    assert.deepEqual([...members.keys()], [...SERVERS, ...SHOPS, 'rgw', 'mon', 'osd.0', 'osd.1', 'osd.2']);
    for (const { pid } of members.values()) assert.ok(existsSync(`/proc/${pid}`), `${pid}`);
    for (const name of SERVERS) assert.ok(terminal.run.out.includes(`${members.get(name).url}/`), name);
    for (const i of [0, 1, 2]) {
      const mine = SHOPS.filter((name) => members.get(name).about.endsWith(`scraped by shard-${i}`));
      const targets = await until('its targets', 30, async () => {
        const { activeTargets } = await api(members.get(`shard-${i}`), 'targets', { scrapePool: 'shop' });
        return activeTargets.length > 0 && activeTargets;
      });
      assert.deepEqual([...new Set(targets.map((x) => x.labels.pod))].sort(), mine);
      assert.equal(mine.length, 2);
    }
  });

  await t.test('both query nodes have profiles of all shards', async () => {
    for (const one of [node, other]) await hasAll(one, began, 'all shops');
  });

  await t.test('one query node evaluates the rules', async () => {
    await until('the rules are evaluated', 60, async () =>
      [...(await terminal.status()).values()].filter((m) => m.about?.includes('evaluates the rules')).length === 1);
    await until('recorded costs are there', 60, async () => (await query(node, 'version:cpu:cores')).result.length === 2);
  });

  await t.test('a shard is killed by its pid: answers say so until it is started', async () => {
    process.kill(members.get('shard-1').pid, 'SIGKILL');
    await until('it is told', 30, () => /shard-1 ended \(SIGKILL\).*run\.mjs start shard-1\n/.test(terminal.run.out));
    assert.ok(Number.isNaN((await terminal.status()).get('shard-1').pid));
    await until('a warning', 60, async () => (await asked(node, began)).warnings.some((w) => /shard shard-1 is late/.test(w)));
    assert.deepEqual((await asked(node, began)).pods, SHOPS); // what it had put there
    const since = Date.now() / 1000;
    await terminal.command('start', 'shard-1');
    await hasAll(node, since, 'it goes on');
  });

  await t.test('a query node is killed while a shard that lost its disk waits for its lease', async () => {
    await terminal.command('wipe', 'shard-2');
    assert.equal(existsSync(join(terminal.dir, 'data/shard-2')), false);
    const wiped = terminal.command('start', 'shard-2');
    await terminal.command('kill', 'query-1');
    await assert.rejects(request(other.url), { code: 'ECONNREFUSED' });
    assert.deepEqual((await asked(node, began)).pods, SHOPS);
    await terminal.command('start', 'query-1');
    await wiped;
    const { pods } = await asked(members.get('shard-2'), began); // what was in the bucket
    assert.deepEqual(pods, SHOPS.filter((name) => members.get(name).about.endsWith('shard-2')));
    await hasAll(other, began, 'it has all again');
  });

  await t.test('the gateway and a disk of the store die, and answers go on', async () => {
    await terminal.command('kill', 'rgw');
    await terminal.command('kill', 'osd.1');
    assert.deepEqual((await asked(node, began)).pods, SHOPS);
    const since = Date.now() / 1000;
    await terminal.command('start', 'osd.1');
    await terminal.command('start', 'rgw');
    await hasAll(node, since, 'shards have put what waited');
  });

  await t.test('Ctrl-C leaves nothing', async () => {
    terminal.press('SIGINT');
    await terminal.ends();
    assert.deepEqual(processes(ceph), []);
    assert.equal(existsSync(ceph), false);
    assert.equal(existsSync(join(terminal.dir, 'data')), false);
  });
});

test('a store that the environment names', async (t) => {
  const fake = await new S3Fake().listen();
  t.after(() => fake.close());
  const store = { EPI_S3_ENDPOINT: fake.endpoint, EPI_S3_BUCKET: fake.bucket, EPI_S3_REGION: fake.region, EPI_S3_PREFIX: 'mine',
    AWS_ACCESS_KEY_ID: fake.accessKey, AWS_SECRET_ACCESS_KEY: fake.secretKey };
  const terminal = new Terminal(t, script, [], store);
  await terminal.ready();
  assert.deepEqual([...terminal.members.keys()], [...SERVERS, ...SHOPS]);
  await hasAll(terminal.members.get('query-1'), Date.now() / 1000 - 600, 'all shops');

  await t.test('the files that it writes are right', async () => {
    const config = readFileSync(join(terminal.dir, 'epimetheus.yml'), 'utf8');
    assert.ok(config.includes(`endpoint: ${JSON.stringify(fake.endpoint)}\n`) && config.includes('prefix: "mine"\n'), config);
    assert.ok(!config.includes(fake.secretKey));
    const run = await finish(t, epitool, ['check', 'config', join(terminal.dir, 'epimetheus.yml')]);
    assert.equal(run.code, 0, run.out + run.err);
    assert.match(run.out + run.err, /rules\.yml\n +SUCCESS: 3 rules/);
  });

  await t.test('one more shard comes and is drained', async () => {
    assert.match(await terminal.command('add'), /^assignment \d+: 4 shards/);
    const members = await terminal.status();
    const scraped = async (name) => (await api(members.get(name), 'targets')).activeTargets.map((x) => x.discoveredLabels.__address__);
    await until('it scrapes', 60, async () => (await scraped('shard-3')).length > 0);
    assert.match(await terminal.command('drain', 'shard-3'), /^assignment \d+: 3 shards\nshard shard-3 has no targets any more: it may be stopped$/m);
    assert.deepEqual(await scraped('shard-3'), []);
    assert.match(await terminal.refused('drain', 'query-0'), /^query-0 is no shard\n$/);
  });

  await t.test('what makes no sense is refused', async () => {
    assert.match(await terminal.refused('kill', 'shard-7'), /^shard-7 is none of query-0, query-1, shard-0, .*\n$/);
    assert.match(await terminal.refused('start', 'shard-0'), /^shard-0 runs already\n$/);
    assert.match(await terminal.refused('wipe', 'shop-0'), /^shop-0 has no data directory\n$/);
    assert.match(await terminal.refused('burn', 'shard-0'), /^burn is no command\n$/);
    assert.match(await terminal.refused('kill'), /^usage: /);
    assert.match(await terminal.refused(), /^A cluster runs already in .*run\.mjs stop\n$/);
  });

  await t.test('it stands still and goes on', async () => {
    await terminal.command('pause', 'shard-0');
    assert.match(await terminal.command('status'), /^ {2}shard-0 +pid \d+, stands still /m);
    await terminal.command('resume', 'shard-0');
    assert.equal((await request(`${terminal.members.get('shard-0').url}/-/ready`)).status, 200);
  });

  await t.test('stop ends it', async () => {
    assert.ok(processes(terminal.dir).length >= 11);
    await terminal.command('stop');
    await terminal.ends();
    assert.match(await terminal.refused('status'), /^No cluster runs in /);
  });

  await t.test('nothing stays behind a kill -9', async () => {
    const again = new Terminal(t, script, [], store);
    await until('members run', 120, () => processes(again.dir).length >= 4);
    again.press('SIGKILL');
    await until('its processes end', 30, () => processes(again.dir).length === 0);
  });
});

test('Ctrl-C while it begins leaves nothing', async (t) => {
  const terminal = new Terminal(t, script, []);
  const parent = new RegExp(`^PPid:\\s${terminal.run.child.pid}$`, 'm');
  const ceph = await until('Ceph begins', 120, () => {
    assert.equal(terminal.run.code, undefined, terminal.run.err);
    return processes('epi-ceph-').filter((pid) => parent.test(readFileSync(`/proc/${pid}/status`, 'utf8')))
      .map((pid) => readFileSync(`/proc/${pid}/cmdline`, 'utf8').match(/ceph-osd\0-c\0(.*)\/ceph\.conf/)?.[1]).find(Boolean);
  });
  terminal.press('SIGINT');
  await terminal.ends();
  await until('nothing runs', 30, () => processes(ceph).length === 0);
  assert.equal(existsSync(ceph), false);
  assert.doesNotMatch(terminal.run.out, /shards and/);
});

test('what is wrong is told before anything is started', async (t) => {
  const server = await startServer(t, { dir: scratch(t), config: 'scrape_configs: []\n' });
  for (const [more, message] of [
    [{ EPI_PORT: server.port }, `127.0.0.1:${server.port} is in use already: EPI_PORT=PORT chooses others`],
    [{ EPI_PORT: 'x' }, 'EPI_PORT is x; it may be 0 to 65000'],
    [{ EPI_S3_ENDPOINT: 'http://127.0.0.1:1' }, 'EPI_S3_ENDPOINT is set, but not EPI_S3_BUCKET'],
  ]) {
    const { EPI_S3_BUCKET, ...env } = process.env;
    const run = await finish(t, script, [], 60, { cwd: root, env: { ...env, EPI_DIR: join(scratch(t), 'cluster'), EPI_PORT: '0', ...more } });
    assert.equal(run.code, 1);
    assert.equal(run.err, `${message}\n`);
    assert.doesNotMatch(run.out, /begin/);
  }
});
