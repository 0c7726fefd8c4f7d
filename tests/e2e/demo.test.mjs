// The main job: real Go programs are scraped, and the answers name what they do.
import test from 'node:test';
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { api, demoRegressions, finish, join, query, request, root, scratch, settled, startDemo, startServer, targets, until,
  writeFileSync } from './lib.mjs';

const regression = 'scoreItems';

function config(v1, v2) {
  return `
global: {scrape_interval: 5s}
scrape_configs:
  - job_name: demo
    static_configs:
      - {targets: ["${v1.address}"], labels: {version: v1}}
      - {targets: ["${v2.address}"], labels: {version: v2}}
`;
}

function names(flamebearer) {
  return new Set(flamebearer.names);
}

/** Rows of `go tool pprof -top`: flat, flat%, sum%, cum, cum%, name. */
function topRows(text) {
  const lines = text.split('\n');
  const head = lines.findIndex((l) => /^\s*flat\s+flat%/.test(l));
  assert.notEqual(head, -1, text);
  return lines.slice(head + 1).filter((l) => l.trim() !== '').map((l) => l.trim().split(/\s+/).join(' '));
}

test(`two versions of the demo, ${regression} regresses`, async (t) => {
  assert.ok(demoRegressions().includes(regression));
  const dir = scratch(t);
  const v1 = await startDemo(t, 'v1', 'none');
  const v2 = await startDemo(t, 'v2', regression);
  let server = await startServer(t, { dir, config: config(v1, v2) });

  await t.test('the query returns functions of the demo', async () => {
    const found = await until('cpu profiles of both versions', 55, async () => {
      const by = await query(server, 'merge by (version) (cpu:samples{job="demo"}[5m])');
      return by.result.length === 2 && by.result.every((e) => e.profiles >= 2) && by;
    });
    assert.equal(found.resultType, 'profiles');
    const all = await query(server, 'merge(cpu:samples{job="demo"}[5m])');
    assert.equal(all.result.length, 1);
    const fb = all.result[0].flamebearer;
    assert.equal(all.result[0].unit, 'count');
    assert.equal(fb.numTicks, all.result[0].total);
    assert.ok([...names(fb)].some((n) => n.startsWith('main.')), [...names(fb)].slice(0, 50).join(' '));
  });

  await t.test('every default profile of a Go program is up', async () => {
    const list = await until('ten scrapes', 30, async () => {
      const all = await targets(server);
      return all.length === 10 && all.every((x) => x.health === 'up') && all;
    });
    assert.deepEqual([...new Set(list.map((x) => new URL(x.scrapeUrl).pathname))].sort(), ['/debug/pprof/allocs',
      '/debug/pprof/block', '/debug/pprof/goroutine', '/debug/pprof/mutex', '/debug/pprof/profile']);
    assert.ok(list.every((x) => x.lastError === ''));
    for (const [selector, unit] of [['memory:inuse_space', 'bytes'], ['goroutine', 'count'], ['mutex', 'nanoseconds'],
      ['block:contentions', 'count'], ['memory:alloc_space', 'bytes']]) {
      const got = await until(selector, 20, async () => {
        const r = await query(server, `merge(${selector}{job="demo"}[2m])`);
        return r.result.length === 1 && r.result[0].total > 0 && r.result[0];
      });
      assert.equal(got.unit, unit, selector);
    }
  });

  await t.test('the diff names the planted regression on top', async () => {
    // Chance has no part in 500 samples of each. A busy machine takes minutes for them.
    const top = await until('enough samples to tell', 60, async () => {
      const r = await query(server, 'merge by (version) (cpu{job="demo"}[1h])');
      if (!r.result.every((e) => e.total >= 5e9)) return null;
      return query(server, 'top(100, diff(merge(cpu{version="v2"}[1h]), merge(cpu{version="v1"}[1h])))');
    });
    // Of the program's functions: what the runtime costs depends on the machine's other work.
    const own = top.result[0].rows.filter((r) => r.function.startsWith('main.'));
    assert.equal(own[0]?.function, `main.${regression}`, JSON.stringify(top.result[0].rows, null, 1));
    const same = await query(server, 'topk(1, flat(merge(cpu{version="v2"}[1h]) - merge(cpu{version="v1"}[1h]), {function=~"main[.].*"}))');
    assert.equal(same.result[0].metric.function, `main.${regression}`);
    const diff = await query(server, 'diff(merge(cpu{version="v2"}[1h]), merge(cpu{version="v1"}[1h]))');
    const e = diff.result[0];
    assert.equal(e.total, e.left_total);
    assert.equal(e.cost, e.right_total - e.left_total);
    assert.equal(e.flamebearer.leftTicks, e.left_total);
  });

  await t.test("the README's queries print what it says", async () => {
    const rows = [...readFileSync(join(root, 'README.md'), 'utf8').matchAll(/^\| `(.+)` \| (\d+) (profile|row|number)s?: (.*) \|$/gm)];
    assert.equal(rows.length, 8);
    for (const [, q, n, what, says] of rows) {
      const got = await until(`${n} ${what}s of ${q}`, 60, async () => {
        const { resultType, result } = await query(server, q);
        const found = what === 'row' ? (result[0]?.rows ?? []) : resultType === (what === 'profile' ? 'profiles' : 'vector') ? result : [];
        return found.length === Number(n) && found;
      });
      for (const [, name] of says.matchAll(/`(main\.\w+)` first/g)) assert.equal(got[0].function, name, q);
      for (const [, label] of says.matchAll(/labels? `(\w+)`/g)) assert.ok(got.every((e) => e.metric[label]), q);
    }
  });

  await t.test('go tool pprof opens the URL and shows the rows of format=text', async () => {
    const time = await settled(server);
    const q = new URLSearchParams({ query: 'merge(cpu:samples{job="demo"}[5m])', time });
    const run = await finish(t, 'go', ['tool', 'pprof', '-top', '-nodefraction=0', '-nodecount=100000',
      `${server.url}/api/v1/query?${q}&format=pprof`], 300);
    assert.equal(run.code, 0, run.err);
    const text = await request(`${server.url}/api/v1/query?${q}&format=text`);
    assert.equal(text.status, 200);
    assert.deepEqual(topRows(text.body.toString()), topRows(run.out));
    assert.ok(run.out.includes('main.'), run.out);
    const folded = (await request(`${server.url}/api/v1/query?${q}&format=folded`)).body.toString();
    const sum = folded.trim().split('\n').reduce((n, l) => n + Number(l.slice(l.lastIndexOf(' ') + 1)), 0);
    const all = await query(server, 'merge(cpu:samples{job="demo"}[5m])', { time });
    assert.equal(sum, all.result[0].total);
  });

  await t.test('matchers see pprof labels, and merge by groups by them', async () => {
    const at = { time: await settled(server) };
    const by = await query(server, 'merge by (handler) (cpu{job="demo"}[5m])', at);
    const handlers = by.result.map((e) => e.metric.handler ?? '');
    assert.ok(handlers.includes('/search'), handlers.join(' '));
    const all = await query(server, 'merge(cpu{job="demo"}[5m])', at);
    const one = await query(server, 'merge(cpu{job="demo",handler="/search"}[5m])', at);
    const rest = await query(server, 'merge(cpu{job="demo",handler!="/search"}[5m])', at);
    assert.ok(one.result[0].total > 0);
    assert.equal(one.result[0].total + rest.result[0].total, all.result[0].total);
  });

  await t.test('folders of the API answer as Prometheus does', async () => {
    assert.deepEqual(await api(server, 'label/version/values'), ['v1', 'v2']);
    const labels = await api(server, 'labels');
    for (const name of ['__name__', 'handler', 'instance', 'job', 'region', 'version']) assert.ok(labels.includes(name), labels.join(' '));
    assert.ok((await api(server, 'label/handler/values')).includes('/search'));
    const series = await api(server, 'series', { 'match[]': 'process_cpu{version="v1"}' });
    assert.deepEqual(series, [{ __name__: 'process_cpu', instance: v1.address, job: 'demo', version: 'v1' }]);
    const types = (await api(server, 'profile_types')).map((x) => x.type);
    assert.ok(types.includes('process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta'), types.join(' '));
    assert.ok(types.includes('memory:alloc_space:bytes:space:bytes:delta'), types.join(' '));
    assert.ok(types.includes('memory:inuse_space:bytes:space:bytes'), types.join(' '));
    assert.equal((await api(server, 'status/buildinfo')).version, readFileSync('base/VERSION', 'utf8').trim());
    const range = await api(server, 'query_range', { query: 'total(merge by (version) (cpu[15s]))', step: 5,
      start: Date.now() / 1000 - 30, end: Date.now() / 1000 });
    assert.equal(range.resultType, 'matrix');
    assert.equal(range.result.length, 2);
  });

  await t.test('kill -9: every acknowledged profile is there after a restart', async () => {
    const at = { time: await settled(server) };
    const ask = ['merge by (version) (cpu{job="demo"}[1h])', 'merge(memory:alloc_space[1h])', 'merge(goroutine[1h])']
      .map((q) => [q, at]);
    const want = [];
    for (const [q, p] of ask) want.push(await query(server, q, p));
    await server.stop('SIGKILL');
    server = await startServer(t, { dir, config: config(v1, v2) });
    for (let i = 0; i < ask.length; i++) assert.deepEqual(await query(server, ...ask[i]), want[i], ask[i][0]);
    assert.ok(want.every((w) => w.result.length > 0 && w.result.every((e) => e.profiles > 0)), JSON.stringify(want));
  });

  await t.test('SIGTERM ends in order', async () => {
    await until('scrapes go on', 30, async () => (await targets(server)).some((x) => x.scrapes > 0));
    const run = await server.stop();
    assert.equal(run.code, 0, run.err);
    assert.match(run.err, /msg=ended/);
  });
});

test('a scrape read back is what was scraped', async (t) => {
  const dir = scratch(t);
  const demo = await startDemo(t, 'v1', 'none');
  // What the demo said once is said again and again, so that it is known what was scraped.
  const bodies = {};
  const say = async (path, from) => (bodies[path] = (await request(`http://${demo.address}/debug/pprof/${from}`)).body);
  await say('/debug/pprof/goroutine', 'goroutine');
  const traces = async (file, index) => {
    const run = await finish(t, 'go', ['tool', 'pprof', '-traces', '-lines', `-sample_index=${index}`, file]);
    assert.equal(run.code, 0, run.err);
    // Stacks without any cost in this column are left out: zero samples are not kept.
    return run.out.split(/-{11}\+-+/).slice(1).map((s) => s.trim()).filter((s) => s && !/^ *0 {2,}/m.test(s)).sort();
  };
  // Of what is in use, one allocation in 512 KB is seen: in a demo that has just begun it may be too few. One that gets
  // little of a busy machine has few samples of its time.
  for (const [path, from, index] of [['/debug/pprof/allocs', 'allocs', 'inuse_space'], ['/debug/pprof/profile', 'profile?seconds=2', 'cpu']])
    await until(`${index} on many stacks`, 30, async () => {
      writeFileSync(join(dir, 'said.pb.gz'), await say(path, from));
      return (await traces(join(dir, 'said.pb.gz'), index)).length > 5;
    });
  const target = createServer((req, res) => {
    const body = bodies[req.url.split('?')[0]];
    res.statusCode = body ? 200 : 404;
    res.end(body);
  });
  await new Promise((done) => target.listen(0, '127.0.0.1', done));
  t.after(() => target.close());
  const server = await startServer(t, { dir, config: `
global: {scrape_interval: 2s}
scrape_configs:
  - job_name: said
    static_configs: [{targets: ["127.0.0.1:${target.address().port}"]}]
` });
  for (const [path, name, indexes] of [['/debug/pprof/profile', 'process_cpu', ['samples', 'cpu']],
    ['/debug/pprof/goroutine', 'goroutine', ['goroutine']], ['/debug/pprof/allocs', 'memory', ['inuse_objects', 'inuse_space']]]) {
    const back = await until(name, 30, async () => {
      const q = new URLSearchParams({ query: `${name}{job="said"}`, format: 'pprof', types: 'all' });
      const res = await request(`${server.url}/api/v1/query?${q}`);
      return res.status === 200 && res.body;
    });
    writeFileSync(join(dir, 'back.pb.gz'), back);
    writeFileSync(join(dir, 'said.pb.gz'), bodies[path]);
    for (const index of indexes) {
      const want = await traces(join(dir, 'said.pb.gz'), index);
      assert.ok(want.length > 5, `${name} has ${want.length} stacks`);
      assert.deepEqual(await traces(join(dir, 'back.pb.gz'), index), want, `${name} ${index}`);
    }
  }
  const two = await request(`${server.url}/api/v1/query?${new URLSearchParams({ query: '{job="said"}', format: 'pprof', types: 'all' })}`);
  assert.equal(two.status, 400);
  assert.match(two.body.toString(), /a whole scrape needs one series/);
});

test('a reload takes up a target, and a broken file changes nothing', async (t) => {
  const dir = scratch(t);
  const v1 = await startDemo(t, 'v1', 'none', 10);
  const server = await startServer(t, { dir, config: 'scrape_configs: []\n', args: ['--web.enable-lifecycle'] });
  const file = join(dir, 'epimetheus.yml');
  assert.deepEqual(await targets(server), []);
  writeFileSync(file, `global: {scrape_interval: 2s}\nscrape_configs:\n- job_name: demo\n  static_configs: [{targets: ["${v1.address}"]}]\n`);
  assert.equal((await request(`${server.url}/-/reload`, { method: 'POST' })).status, 200);
  await until('the new target is up', 20, async () => (await targets(server)).some((x) => x.health === 'up'));
  writeFileSync(file, 'scrape_configs:\n- job_nam: demo\n');
  const bad = await request(`${server.url}/-/reload`, { method: 'POST' });
  assert.equal(bad.status, 500);
  assert.match(bad.body.toString(), /epimetheus\.yml:2:3: field job_nam not found in type/);
  assert.ok((await targets(server)).length > 0);
  assert.match((await request(`${server.url}/metrics`)).body.toString(), /^epimetheus_config_last_reload_successful 0$/m);
  server.child.kill('SIGHUP');
  await until('the log says so', 10, () => server.err.split('reload failed').length === 3);
  assert.equal((await request(`${server.url}/-/healthy`)).status, 200);
});
