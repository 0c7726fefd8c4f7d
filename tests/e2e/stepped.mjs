// Tests of a server while the system's clock makes steps: its program is the server's, with a clock that a file moves.
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { writeFileSync } from 'node:fs';
import { api, build, join, oneSampleProfile, query, request, scratch, startServer, targets, until } from './lib.mjs';

export const S = 10n ** 9n, HOUR = 3600n * S, DAY = 24n * HOUR;
export const HOLD = 301n * S; // a step is taken over after it held so long

/** The clock of a program in `dir`, and how to start one by it. `now` is the time of the system's clock, in seconds. */
export function steppedClock(dir) {
  const file = join(dir, 'clock'), c = { stepped: 0n, passed: 0n };
  const write = () => {
    const bytes = Buffer.alloc(16);
    bytes.writeBigInt64LE(c.stepped, 0);
    bytes.writeBigInt64LE(c.passed, 8);
    writeFileSync(file, bytes, { flag: 'r+' });
  };
  writeFileSync(file, Buffer.alloc(16));
  c.step = (ns) => { c.stepped += ns; write(); };
  c.pass = (ns) => { c.passed += ns; write(); };
  c.now = () => Date.now() / 1000 + Number((c.stepped + c.passed) / S);
  c.program = { program: join(build, 'tests/e2e/stepped_epimetheus'), env: { ...process.env, EPI_CLOCK_FILE: file } };
  return c;
}

/** A server whose clock the test moves, a target that it scrapes, and a sender on the same machine. */
export async function steppedWorld(t, args = []) {
  const dir = scratch(t), w = steppedClock(dir);
  w.acknowledged = 0;
  const target = createServer((req, res) => res.end(oneSampleProfile(1)));
  await new Promise((done) => target.listen(0, '127.0.0.1', done));
  t.after(() => target.close());
  w.start = async () => {
    w.server = await startServer(t, { ...w.program, dir, args: ['--web.enable-ingest', ...args], config: `
scrape_configs:
  - job_name: told
    scrape_interval: 500ms
    static_configs: [{targets: ["127.0.0.1:${target.address().port}"]}]
    profiling_config:
      pprof_config: {process_cpu: {enabled: false}, memory: {enabled: false}, block: {enabled: false}, mutex: {enabled: false}}
` });
  };
  // Without a time the server gives it its own.
  w.send = (time = null) => {
    const q = new URLSearchParams({ name: 'pushed', job: 'p', ...time !== null && { time } });
    return request(`${w.server.url}/api/v1/ingest?${q}`, { method: 'POST', body: oneSampleProfile(1) });
  };
  w.push = async (time = w.now().toFixed(6)) => {
    const res = await w.send(time);
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
