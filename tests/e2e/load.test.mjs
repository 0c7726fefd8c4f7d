// A small fleet of tests/load, a third of it hostile: the honest ones are asked on time and well, each hostile one is told.
import test from 'node:test';
import assert from 'node:assert/strict';
import { readFileSync, renameSync } from 'node:fs';
import { build, join, request, scratch, start, startServer, targets, until, writeFileSync } from './lib.mjs';

const N = 60;

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
    pprof_config: {process_cpu: {seconds: 1}, block: {enabled: false}, mutex: {enabled: false}, goroutine: {enabled: false}}
` });
  const scraped = (n) => until(`every target was scraped ${n} times`, 60, async () => {
    const all = await targets(server);
    return all.length === 2 * N && all.every((x) => x.scrapes >= n) && all;
  });
  await scraped(2);
  fleet.child.kill('SIGUSR1'); // counts begin anew
  const list = await scraped(6);
  assert.equal(list.length, 2 * N);
  for (const x of list) {
    if (x.labels.kind === 'honest') assert.deepEqual([x.health, x.lastError, x.failures, x.skipped], ['up', '', 0, 0], JSON.stringify(x));
    else assert.ok(x.health === 'down' && x.lastError, JSON.stringify(x));
  }
  const errors = Object.fromEntries(list.map((x) => [x.labels.kind, x.lastError]));
  assert.match(errors.silent, /^context deadline exceeded/);
  assert.match(errors.drip, /^context deadline exceeded/);
  assert.equal(errors.huge, 'body size limit exceeded');
  assert.match(errors.redirects, /^stopped after 10 redirects; the target redirected to http:\/\/\S+$/);
  assert.match(errors.wrong_type, /^target answers a web page/);
  assert.match(errors.error, /^server returned HTTP status 500/);
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
  assert.ok(came.honest.gaps >= 3 * 80, JSON.stringify(came)); // what a loaded machine had time for
  assert.equal(came.honest.late, 0, JSON.stringify(came));
});
