// profefe's API, both ways: its agent's and kube-profefe's requests (tests/e2e/profefe), and `go tool pprof` on what comes
// back.
import test from 'node:test';
import assert from 'node:assert/strict';
import { finish, join, query, request, root, scratch, startDemo, startServer, until } from './lib.mjs';

const INGEST = ['--web.enable-ingest'];
const TYPES = ['cpu', 'heap', 'block', 'mutex', 'goroutine', 'threadcreate'];
const INDEXES = { cpu: ['samples', 'cpu'], heap: ['alloc_objects', 'alloc_space', 'inuse_objects', 'inuse_space'],
  block: ['contentions', 'delay'], mutex: ['contentions', 'delay'], goroutine: ['goroutine'], threadcreate: ['threadcreate'] };

async function build(t, dir) {
  const program = join(dir, 'sender');
  const built = await finish(t, 'go', ['build', '-o', program, '.'], 120, { cwd: join(root, 'tests/e2e/profefe') });
  assert.equal(built.code, 0, built.err);
  return program;
}

async function run(t, program, ...args) {
  const done = await finish(t, program, args, 120);
  assert.equal(done.code, 0, done.err);
  return done.out.trimEnd().split('\n');
}

/** Rows of `go tool pprof -top` of files or URLs: they are merged. Without the file's name and time. */
async function top(t, dir, index, ...sources) {
  const done = await finish(t, 'go', ['tool', 'pprof', '-top', '-lines', '-nodefraction=0', '-nodecount=100000', '-symbolize=none',
    `-sample_index=${index}`, ...sources], 120, { env: { ...process.env, PPROF_TMPDIR: dir } });
  assert.equal(done.code, 0, done.err);
  const lines = done.out.split('\n').filter((line) => !/^(File|Time|Duration|Build ID|Showing|Dropped|Entering)/.test(line));
  return [done.out.match(/Duration: .*/)?.[0] ?? '', ...lines.sort()];
}

const span = (seconds = 3600) => {
  const at = (ms) => new Date(ms).toISOString().slice(0, 19);
  return `from=${at(Date.now() - seconds * 1000)}&to=${at(Date.now() + 60000)}`;
};

test("profefe's agent and kube-profefe's tools send and read", async (t) => {
  const dir = scratch(t);
  const program = await build(t, dir);
  let server = await startServer(t, { dir, args: INGEST, config: 'scrape_configs: []\n' });
  let sent;
  const lines = (out) => out.map((line) => line.split(' '));

  await t.test('an agent sends each of its profiles', async () => {
    sent = lines(await run(t, program, 'agent', server.url, dir, 'api', 'region', 'europe-west3', 'pod-name', 'a b'));
    assert.deepEqual(sent.map(([, type]) => type), TYPES);
    assert.equal(new Set(sent.map(([id]) => id)).size, TYPES.length);
  });

  await t.test('its profiles are found under our names', async () => {
    const answer = await query(server, 'total(cpu{service_name="api",job="api",region="europe-west3",pod_name="a b"}[5m])');
    assert.equal(answer.result.length, 1, JSON.stringify(answer));
  });

  const same = async (of) => {
    for (const [id, type] of sent) {
      const url = `${of.url}/api/0/profiles/${id}`;
      for (const index of INDEXES[type]) {
        assert.deepEqual(await top(t, dir, index, url), await top(t, dir, index, join(dir, `${type}.pb.gz`)), `${type} ${index}`);
      }
    }
  };
  await t.test('go tool pprof opens each by its id', () => same(server));

  await t.test('kube-profefe sends a file of a pod', async () => {
    const [[, type, service]] = lines(await run(t, program, 'kube', server.url, join(dir, 'cpu.pb.gz'), 'shop', 'shop-1'));
    assert.deepEqual([type, service], ['cpu', 'shop']);
    await run(t, program, 'kube', server.url, join(dir, 'cpu.pb.gz'), 'shop', 'shop-2');
    assert.deepEqual(await run(t, program, 'services', server.url), ['api', 'shop']);
    const [first, second, ...more] = lines(await run(t, program, 'list', server.url, 'shop', 'cpu'));
    assert.equal(more.length, 0);
    assert.notEqual(first[0], second[0]);
    const res = await request(`${server.url}/api/0/profiles?service=shop&labels=pod=shop-1&${span()}`);
    const [one] = JSON.parse(res.body).body;
    assert.deepEqual(one.labels, [{ key: 'from', value: 'kube-profefe' }, { key: 'instance', value: '10.0.0.7' },
      { key: 'namespace', value: 'web' }, { key: 'pod', value: 'shop-1' }]);
  });

  await t.test('go tool pprof opens a merge', async () => {
    const again = lines(await run(t, program, 'agent', server.url, scratch(t), 'api', 'region', 'us'));
    for (const type of TYPES) {
      const ids = [...sent, ...again].filter((line) => line[1] === type).map(([id]) => id);
      const urls = ids.map((id) => `${server.url}/api/0/profiles/${id}`);
      for (const index of INDEXES[type]) {
        const want = await top(t, dir, index, ...urls);
        assert.deepEqual(await top(t, dir, index, `${server.url}/api/0/profiles/${ids.join('+')}`), want, `${type} ${index}`);
        assert.deepEqual(await top(t, dir, index, `${server.url}/api/0/profiles/merge?service=api&type=${type}&${span()}`), want,
          `${type} ${index}`);
      }
      assert.deepEqual(
        await top(t, dir, INDEXES[type][0], `${server.url}/api/0/profiles/merge?service=api&type=${type}&labels=region=us&${span()}`),
        await top(t, dir, INDEXES[type][0], urls[1]), type);
    }
  });

  await t.test('ids stay after kill -9', async () => {
    const before = await run(t, program, 'list', server.url, 'api', 'heap');
    await server.stop('SIGKILL');
    server = await startServer(t, { dir, args: INGEST, config: 'scrape_configs: []\n' });
    assert.deepEqual(await run(t, program, 'list', server.url, 'api', 'heap'), before);
    await same(server);
  });

  await t.test('an agent sees why it is refused', async () => {
    const off = await startServer(t, { dir: scratch(t), config: 'scrape_configs: []\n' });
    const done = await finish(t, program, ['kube', off.url, join(dir, 'cpu.pb.gz'), 'shop', 'shop-1']);
    assert.equal(done.code, 1);
    assert.match(done.err, /^404: ingest is disabled: start with --web\.enable-ingest$/m);
    const empty = await finish(t, program, ['services', off.url]);
    assert.match(empty.err, /^404: nothing found$/m);
  });
});

test("times are those that Go's parser takes", async (t) => {
  const dir = scratch(t);
  const program = await build(t, dir);
  const server = await startServer(t, { dir, config: 'scrape_configs: []\n' });
  const texts = ['2026-01-02T15:04:05', '2026-01-02T5:04:05', '2026-01-02T05:04:05', '2026-01-02T15:04:05.123456789',
    '2026-01-02T15:04:05,5', '2026-01-02T15:04:05.', '2026-1-02T15:04:05', '2026-01-2T15:04:05', '2026-01-02T15:4:05',
    '2026-01-02T15:04:5', '2026-02-29T00:00:00', '2024-02-29T00:00:00', '2026-13-01T00:00:00', '2026-00-01T00:00:00',
    '2026-01-00T00:00:00', '2026-01-02T24:00:00', '2026-01-02T23:60:00', '2026-01-02T23:59:60', '2026-01-02 15:04:05',
    '2026-01-02t15:04:05', ' 2026-01-02T15:04:05', '2026-01-02T15:04:05 ', '2026-01-02', '', '20260-01-02T15:04:05',
    '1970-01-01T00:00:00', '2100-12-31T23:59:59', '0001-01-01T00:00:00', '1767366245', 'T', '2026-01-02T:04:05',
    '1500-02-28T00:00:00', '1500-02-29T00:00:00', '0000-02-29T00:00:00', '0001-01-01T00:00:01', '2105-01-01T00:00:00'];
  const theirs = await run(t, program, 'times', ...texts);
  for (const [i, text] of texts.entries()) {
    const q = new URLSearchParams({ service: 'a', from: text, to: '9999-12-31T23:59:59' });
    const res = await request(`${server.url}/api/0/profiles?${q}`);
    // A time that is taken finds nothing here.
    assert.equal(res.status, theirs[i] === '-' ? 400 : 404, `${text}: ${theirs[i]}, ${res.body}`);
  }
});

test('scraped profiles are read, and push_config names what is pushed', async (t) => {
  const dir = scratch(t);
  const demo = await startDemo(t, 'v1', 'none');
  const server = await startServer(t, { dir, args: INGEST, config: `
push_config: {labels: {cluster: eu}, drop_labels: ["secret"], attributes: {az: zone}}
scrape_configs:
  - job_name: demo
    scrape_interval: 2s
    profiling_config: {pprof_config: {fgprof: {enabled: true, path: /debug/pprof/goroutine}}}
    static_configs: [{targets: ["${demo.address}"], labels: {version: v1}}]
` });
  const list = async (type) => {
    const res = await request(`${server.url}/api/0/profiles?service=demo&type=${type}&limit=1&${span()}`);
    return res.status === 200 && JSON.parse(res.body).body;
  };
  for (const type of ['cpu', 'heap', 'block', 'mutex', 'goroutine', 'other']) {
    const [one] = await until(`${type} is scraped`, 30, () => list(type));
    assert.deepEqual({ ...one, id: '', created_at: '' }, { id: '', type, service: 'demo',
      labels: [{ key: 'instance', value: demo.address }, { key: 'version', value: 'v1' }], created_at: '' });
    const res = await request(`${server.url}/api/0/profiles/${one.id}`);
    assert.equal(res.status, 200, res.body.toString());
  }
  const merged = `${server.url}/api/0/profiles/merge?service=demo&type=heap&${span()}`;
  assert.match((await top(t, dir, 'inuse_space', merged)).join('\n'), /main\./);

  const [{ id }] = await list('cpu');
  const body = (await request(`${server.url}/api/0/profiles/${id}`)).body;
  const res = await request(`${server.url}/api/0/profiles?service=s&type=cpu&labels=az%3Db,secret%3Dx,a.b%3Dc`, { method: 'POST', body });
  assert.equal(res.status, 200, res.body.toString());
  assert.deepEqual(JSON.parse(res.body).body.labels,
    [{ key: 'a_b', value: 'c' }, { key: 'cluster', value: 'eu' }, { key: 'zone', value: 'b' }]);
  for (const labels of ['az%3Db', 'zone%3Db', 'a.b%3Dc,cluster%3Deu']) {
    const found = await request(`${server.url}/api/0/profiles?service=s&labels=${labels}&${span()}`);
    assert.equal(JSON.parse(found.body).body?.length, 1, labels);
  }
});
