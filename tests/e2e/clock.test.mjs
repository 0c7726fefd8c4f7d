// The server while the system's clock makes steps.
import test from 'node:test';
import assert from 'node:assert/strict';
import { query, request, until } from './lib.mjs';
import { DAY, HOLD, HOUR, S, steppedWorld } from './stepped.mjs';

const AHEAD = /ahead of this server's own time/;

test('16 days ahead for a moment, and one profile in it', async (t) => {
  const w = await steppedWorld(t);
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
  const w = await steppedWorld(t);
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
  const w = await steppedWorld(t);
  w.step(-26n * HOUR);
  await until('the step is seen', 20, async () => /behind this server's own time/.test(await w.told()));
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
  const w = await steppedWorld(t);
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
