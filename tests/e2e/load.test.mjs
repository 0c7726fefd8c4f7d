// A small fleet of tests/load, a third of it hostile: the honest ones are asked well, each hostile one is told.
import test from 'node:test';
import assert from 'node:assert/strict';
import { readFileSync, renameSync } from 'node:fs';
import { build, join, request, scratch, start, startServer, targets, until, writeFileSync } from './lib.mjs';

const N = 60;
const LATE = /^context deadline exceeded/;
const told = {
  honest: /^$/,
  silent: LATE,
  drip: LATE,
  huge: /^body size limit exceeded: more than \d+ bytes \(body_size_limit of the job\)$/,
  redirects: /^stopped after 10 redirects; the target redirected to http:\/\/\S+$/,
  wrong_type: /^target answers a web page/,
  error: /^server returned HTTP status 500/,
};

const metric = async (server, name) => {
  const line = (await request(`${server.url}/metrics`)).body.toString().split('\n').find((l) => l.startsWith(`${name} `));
  return Number(line?.slice(name.length + 1));
};

test('honest targets beside hostile ones', async (t) => {
  const dir = scratch(t), file = join(dir, 'targets.json');
  const fleet = start(t, join(build, 'tests/load/load'), [`--targets=${N}`, '--hostile=33', `--file=${file}`, '--interval=2s',
    '--services=3', '--variants=1', '--scrapes=2']);
  await until('targets listen', 60, () => {
    assert.equal(fleet.code, undefined, fleet.err);
    return fleet.out.includes('"port"');
  });
  const server = await startServer(t, { dir, config: `
global: {scrape_interval: 2s}
scrape_configs:
- job_name: fleet
  scrape_timeout: 1s
  body_size_limit: 2MB
  file_sd_configs: [{files: ['${file}']}]
  profiling_config:
    pprof_config: {process_cpu: {seconds: 1}, block: {enabled: false}, mutex: {enabled: false}, goroutine: {enabled: false}, goroutineleak: {enabled: false}}
` });
  // Any scrape of a busy machine may be out of time: each target is at some time what it has to be.
  const right = new Set(), wrong = [];
  const list = await until('each honest target is up, each hostile one has its error', 60, async () => {
    const all = await targets(server);
    for (const x of all) {
      const honest = x.labels.kind === 'honest';
      if (honest ? x.lastError && !LATE.test(x.lastError) : x.health === 'up') wrong.push(x);
      if (x.health === (honest ? 'up' : 'down') && (told[x.labels.kind] ?? /./).test(x.lastError)) right.add(x.scrapeUrl);
    }
    const left = all.filter((x) => !right.has(x.scrapeUrl) || x.scrapes < 6);
    assert.equal(left.length, 0, JSON.stringify(left.map((x) => [x.labels.kind, x.scrapes, x.lastError])));
    return all.length === 2 * N && all;
  });
  assert.deepEqual(wrong, []);
  for (const kind of Object.keys(told)) assert.ok(list.some((x) => x.labels.kind === kind), kind);
  assert.ok(await metric(server, 'epimetheus_scrape_start_delay_seconds_count') >= 2 * N);
  assert.equal(await metric(server, 'epimetheus_scrape_pool_targets{scrape_pool="fleet"}'), 2 * N);

  // Most targets go; those that stay are not scraped anew.
  const before = new Map(list.map((x) => [x.scrapeUrl, x.scrapes]));
  const document = JSON.parse(readFileSync(file));
  writeFileSync(`${file}.new`, JSON.stringify(document.slice(40)));
  renameSync(`${file}.new`, file);
  const left = await until('targets are gone', 10, async () => {
    const all = await targets(server);
    return all.length === 2 * (N - 40) && all;
  });
  for (const x of left) assert.ok(x.scrapes >= before.get(x.scrapeUrl), JSON.stringify(x));

  await fleet.stop();
  const came = JSON.parse(fleet.out.trim().split('\n').at(-1));
  assert.equal(came.honest.refused, 0, 'one CPU profile of a target at a time');
  assert.ok(came.honest.gaps >= 80, JSON.stringify(came));
});
