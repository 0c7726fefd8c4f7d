// The short version of the campaign of kills: `make campaign` has hundreds of them.
import test from 'node:test';
import assert from 'node:assert/strict';
import { Campaign } from './campaign.mjs';
import { scratch } from './lib.mjs';

// No disk of a shard is lost: that takes a minute, and cluster.test.mjs does it.
const KINDS = ['shard', 'shard-start', 'query-disk', 'net-cut', 'caretaker', 'rgw', 'net-busy', 'osd'].map((kind) => [kind, 1]);

test('a few kills in a cluster', async (t) => {
  const campaign = new Campaign(t, { kills: KINDS.length, seed: 1, dir: scratch(t), kinds: KINDS, print: (line) => t.diagnostic(line) });
  await campaign.begin();
  try {
    await campaign.run();
  } finally {
    campaign.ended = true;
    t.diagnostic(campaign.summary());
  }
  assert.deepEqual(campaign.counts, Object.fromEntries(KINDS.map(([kind]) => [kind, 1])));
  assert.equal(campaign.lost.profiles, 0);
  assert.ok(campaign.answers.all > 0);
});
