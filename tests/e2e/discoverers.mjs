// Discovery beside Prometheus's own (tests/e2e/discoverers): the same servers are asked, and the same targets with the same labels
// are to come out.
import assert from 'node:assert/strict';
import { api, execFileSync, join, root, scratch, start, startServer, until, writeFileSync } from './lib.mjs';

const program = join(root, 'build/senders/discoverers/discoverers');

// It may take minutes to build, which no test's time is for.
execFileSync(join(root, 'tests/e2e/senders/prepare.sh'), ['discoverers'], { stdio: ['ignore', 'ignore', 'inherit'] });

/** Jobs, name -> {kind, entry}. Each target keeps what was found, so that no two of a job are one. */
export function configuration(jobs) {
  const off = Object.fromEntries(['process_cpu', 'memory', 'block', 'mutex'].map((k) => [k, { enabled: false }]));
  return JSON.stringify({
    scrape_configs: Object.entries(jobs).map(([job_name, { kind, entry }]) => ({
      job_name, scrape_interval: '1h', [`${kind}_sd_configs`]: [entry], profiling_config: { pprof_config: off },
      relabel_configs: [{ action: 'labelmap', regex: '__meta_(.+)', replacement: 'found_$1' }],
    })),
  });
}

const text = (labels) => JSON.stringify(Object.entries(labels).filter(([k, v]) => v !== '' && (k === '__address__' || k.startsWith('__meta_'))).sort());

/** job -> sorted texts of its targets, as this server has them. */
export async function ours(server) {
  const out = {};
  for (const x of (await api(server, 'targets')).activeTargets) (out[x.scrapePool] ??= []).push(text(x.discoveredLabels));
  for (const list of Object.values(out)) list.sort();
  return out;
}

/** The same of one of Prometheus's discoverers, from its last line. */
function theirs(run) {
  const line = run.out.trimEnd().split('\n').at(-1);
  if (!line) return undefined;
  return Object.values(JSON.parse(line)).flatMap((g) => (g.targets ?? []).map((x) => text({ ...g.labels, ...x }))).sort();
}

/** A server and a discoverer per job; same(n) waits until both have the same targets, of which n(job) there are. */
export async function pair(t, jobs, env = {}) {
  const dir = scratch(t);
  const outside = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('AWS_')));
  const all = { ...outside, HOME: dir, AWS_EC2_METADATA_DISABLED: 'true', ...env };
  const runs = Object.entries(jobs).map(([name, { kind, entry }]) => {
    const file = join(dir, `${name}.yml`);
    writeFileSync(file, JSON.stringify(entry));
    return [name, start(t, program, [kind, file], { env: all })];
  });
  const server = await startServer(t, { dir, config: configuration(jobs), env: all });
  return {
    server,
    async same(counts) {
      const state = async () => {
        const got = await ours(server);
        return Object.fromEntries(runs.map(([name, run]) => [name, [got[name] ?? [], theirs(run), run.err]]));
      };
      const good = ([got, want], n) => want && got.length === n && want.length === n && got.every((x, i) => x === want[i]);
      try {
        await until('the same targets', 20, async () => Object.entries(await state()).every(([name, pair]) => good(pair, counts[name])));
      } catch {
        for (const [name, [got, want, err]] of Object.entries(await state()))
          assert.deepEqual({ name, n: got.length, got }, { name, n: counts[name], got: want ?? err });
      }
    },
  };
}
