// The server while the system's clock makes steps. Its program is the server's, with a clock that a file moves.
import test from 'node:test';
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { writeFileSync } from 'node:fs';
import { api, build, join, oneSampleProfile, query, request, scratch, startServer, targets, until } from './lib.mjs';

const S = 10n ** 9n, HOUR = 3600n * S, DAY = 24n * HOUR;
const HOLD = 301n * S;
const AHEAD = /ahead of the time that this server keeps/;

async function world(t) {
  const dir = scratch(t), file = join(dir, 'clock');
  const w = { stepped: 0n, passed: 0n, acknowledged: 0 };
  const write = () => {
    const bytes = Buffer.alloc(16);
    bytes.writeBigInt64LE(w.stepped, 0);
    bytes.writeBigInt64LE(w.passed, 8);
    writeFileSync(file, bytes, { flag: 'r+' });
  };
  writeFileSync(file, Buffer.alloc(16));
  const target = createServer((req, res) => res.end(oneSampleProfile(1)));
  await new Promise((done) => target.listen(0, '127.0.0.1', done));
  t.after(() => target.close());
  w.step = (ns) => { w.stepped += ns; write(); };
  w.pass = (ns) => { w.passed += ns; write(); };
  w.start = async () => {
    w.server = await startServer(t, { dir, program: join(build, 'tests/e2e/stepped_epimetheus'),
      env: { ...process.env, EPI_CLOCK_FILE: file }, args: ['--web.enable-ingest'], config: `
scrape_configs:
  - job_name: told
    scrape_interval: 500ms
    static_configs: [{targets: ["127.0.0.1:${target.address().port}"]}]
    profiling_config:
      pprof_config: {process_cpu: {enabled: false}, memory: {enabled: false}, block: {enabled: false}, mutex: {enabled: false}}
` });
  };
  // The time of the system's clock, in seconds.
  w.now = () => Date.now() / 1000 + Number((w.stepped + w.passed) / S);
  w.push = async () => {
    const q = new URLSearchParams({ name: 'pushed', job: 'p', time: w.now().toFixed(6) });
    const res = await request(`${w.server.url}/api/v1/ingest?${q}`, { method: 'POST', body: oneSampleProfile(1) });
    assert.equal(res.status, 200, res.body.toString());
    w.acknowledged++;
  };
  w.scraped = async () => {
    const before = (await targets(w.server))[0]?.lastScrape;
    const after = await until('a scrape', 30, async () => {
      const [x] = await targets(w.server);
      return x && x.lastScrape !== before && x.lastScrape[0] !== '0' && x;
    });
    assert.equal(after.lastError, '');
    assert.equal(after.health, 'up');
  };
  // Of all times.
  w.stored = async () => (await query(w.server, 'merge(pushed[400d])', { time: w.now() + 30 * 86400 })).result[0].profiles;
  w.told = async () => (await api(w.server, 'notifications')).map((n) => n.text).join(' ');
  await w.start();
  await w.push();
  await w.scraped();
  return w;
}

test('16 days ahead for a moment, and one profile in it', async (t) => {
  const w = await world(t);
  w.step(16n * DAY);
  await until('the step is seen', 20, async () => AHEAD.test(await w.told()));
  await w.push();
  await w.scraped();
  w.step(-16n * DAY);
  await until('it is right again', 20, async () => await w.told() === '');
  for (let turn = 0; turn < 2; turn++) {
    await w.push();
    await w.scraped();
    assert.equal(await w.stored(), w.acknowledged);
    const now = await query(w.server, 'merge(pushed[400d])', { time: w.now() });
    assert.equal(now.result[0].profiles, w.acknowledged - 1);
    w.pass(6n * HOUR); // windows are cut
    await w.push();
    await w.scraped();
    await w.server.stop('SIGKILL');
    await w.start();
  }
  const res = await request(`${w.server.url}/api/v1/query?${new URLSearchParams({ query: 'merge(pushed[400d])', time: w.now() + 30 * 86400 })}`);
  assert.match(res.body.toString(), /profiles of the future, up to/);
});

test('26 hours ahead at a start, a scrape, and right again', async (t) => {
  const w = await world(t);
  await w.server.stop();
  w.step(26n * HOUR);
  await w.start();
  await w.push();
  await w.scraped();
  await w.server.stop('SIGKILL');
  w.step(-26n * HOUR);
  await w.start();
  await w.push();
  await w.scraped();
  assert.equal(await w.stored(), w.acknowledged);
});

test('26 hours back: scrapes go on, and the clock is set right', async (t) => {
  const w = await world(t);
  w.step(-26n * HOUR);
  await until('the step is seen', 20, async () => /behind the time that this server keeps/.test(await w.told()));
  await w.scraped();
  w.pass(HOLD);
  await w.scraped();
  w.step(26n * HOUR);
  w.pass(HOLD);
  await until('it is right again', 20, async () => {
    w.pass(HOLD);
    return await w.told() === '';
  });
  await w.push();
  await w.scraped();
  assert.equal(await w.stored(), w.acknowledged);
});

test('a step that holds: retention says what goes, and waits', async (t) => {
  const w = await world(t);
  w.pass(6n * HOUR);
  await w.push();
  w.step(20n * DAY);
  await until('the step is seen', 20, async () => AHEAD.test(await w.told()));
  w.pass(HOLD);
  await until('it is taken over', 20, async () => !AHEAD.test(await w.told()));
  await w.push();
  await w.scraped();
  assert.equal(await w.stored(), w.acknowledged);
  w.pass(61n * S); // a round of retention
  await until('retention says so', 30, async () => /became too old at once.*dropped after 5m/.test(await w.told()));
  assert.match(w.server.err, /msg="much became too old at once/);
  assert.equal(await w.stored(), w.acknowledged);
  await until('retention goes on', 30, async () => {
    w.pass(HOLD);
    return await w.stored() < w.acknowledged;
  });
});
