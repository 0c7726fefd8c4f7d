// kill -9 of a server again and again, while the system's clock makes steps of minutes, hours and days, both ways, while it
// runs and while it is dead. `make crash` runs many rounds; EPI_CLOCK_KILLS and EPI_CRASH_SEED say how many, and which.
//
// - What was acknowledged is there after each start, once. What was on its way at a kill may be there or not.
// - A profile that the server gives its own time is taken, whatever the clock says, once it has looked at it; so is one of now from a sender with the
//   right time, if the server's time is right too.
// - No answer has a warning but that about profiles of the future.
import test from 'node:test';
import assert from 'node:assert/strict';
import { api, request, sleep, until } from './lib.mjs';
import { DAY, HOLD, HOUR, S, steppedWorld } from './stepped.mjs';

const ROUNDS = Number(process.env.EPI_CLOCK_KILLS || 12), SEED = Number(process.env.EPI_CRASH_SEED || 1);
const MINUTE = 60n * S;
const STEPS = [MINUTE, 50n * MINUTE, 3n * HOUR, 26n * HOUR, 3n * DAY, 40n * DAY];
const OFF = /(ahead of|behind) this server's own time/;
const FUTURE = /^profiles of the future, up to /;

/** Whole numbers below n, the same ones for the same seed. */
function drawer(seed) {
  let a = seed >>> 0;
  return (n) => {
    a = (a + 0x6d2b79f5) >>> 0;
    let t = Math.imul(a ^ (a >>> 15), a | 1);
    t = (t + Math.imul(t ^ (t >>> 7), t | 61)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) % n;
  };
}

test('kill -9 and steps of the clock in any order', async (t) => {
  const w = await steppedWorld(t, ['--storage.tsdb.retention.time=20y']); // nothing may go
  const draw = drawer(SEED);
  const done = { steps: 0, kills: 0, unknown: 0, honest: 0 };
  const times = []; // of pushes, by the system's clock, less what has really passed
  let off = 0n; // how far the system's clock is from the right time

  const step = () => {
    let to = draw(3) ? STEPS[draw(STEPS.length)] : 0n;
    if (draw(2)) to = -to;
    if (times.length && draw(3) === 0) to = times[draw(times.length)] - w.passed; // to where profiles are, perhaps in blocks
    if (to === off) return;
    w.step(to - off);
    off = to;
    done.steps++;
  };
  const pass = () => w.pass([BigInt(draw(8 * 60)) * S, HOLD, BigInt(1 + draw(9)) * HOUR, BigInt(4 + draw(6)) * HOUR][draw(4)]);
  // Time may run into a window that is sealed; the server sees it when it looks at the clock, within a second.
  const take = (what) => until(`${what}: a profile is taken`, 10, async () => {
    const res = await w.send();
    if (res.status === 200) return ++w.acknowledged;
    assert.match(res.body.toString(), /takes no more rows/);
    throw new Error(res.body.toString());
  });
  const check = async (what) => {
    const at = Date.now() / 1000 + Number(w.passed / S) + 200 * 86400;
    const q = new URLSearchParams({ query: 'merge(pushed[4000d])', time: at });
    const answer = JSON.parse((await request(`${w.server.url}/api/v1/query?${q}`)).body);
    assert.equal(answer.status, 'success', `${what}: ${answer.error}`);
    assert.deepEqual((answer.warnings ?? []).filter((text) => !FUTURE.test(text)), [], what);
    const { profiles } = answer.data.result[0];
    assert.ok(profiles >= w.acknowledged, `${what}: ${w.acknowledged - profiles} of ${w.acknowledged} profiles are lost`);
    assert.ok(profiles <= w.acknowledged + done.unknown, `${what}: ${profiles} profiles, ${w.acknowledged} were sent`);
    // What is there was stored, and has to stay; what is not was never stored.
    w.acknowledged = profiles;
    done.unknown = 0;
  };

  for (let round = 0; round < ROUNDS; round++) {
    const what = `seed ${SEED}, round ${round}`;
    for (let n = draw(5); n > 0; n--) {
      [step, pass, () => {}][draw(3)]();
      for (let k = draw(4); k > 0; k--) {
        await take(what);
        times.push(w.passed + off);
      }
      // The server looks at the clock and cuts windows each second: between some events it comes to that.
      if (draw(2)) await sleep(1200);
    }
    const told = await w.told();
    if (told === '' && draw(2)) await w.scraped();
    // One is on its way while the server dies.
    const last = w.send().then((res) => res.status, () => 0);
    if (draw(2)) await sleep(draw(8));
    await w.server.stop('SIGKILL');
    const status = await last;
    if (status === 200) w.acknowledged++;
    else if (status === 0) done.unknown++;
    done.kills++;
    if (draw(2)) step();
    if (draw(3) === 0) pass();
    await w.start();
    await check(what);
    if (off === 0n && !OFF.test(await w.told())) {
      await w.push();
      done.honest++;
    }
  }
  w.step(-off);
  off = 0n;
  await w.server.stop();
  await w.start();
  await check('the end');
  w.pass(12n * HOUR);
  await until('a block is cut', 30, async () => (await api(w.server, 'status/tsdb')).numBlocks >= 1);
  await check('a block is cut');
  const { numBlocks } = await api(w.server, 'status/tsdb');
  t.diagnostic(`seed ${SEED}: ${done.kills} kills, ${done.steps} steps, ${w.acknowledged} profiles in ${numBlocks} blocks and ` +
    `the head, ${done.honest} with the sender's time`);
  assert.ok(done.steps > ROUNDS / 3, `${done.steps} steps`);
});
