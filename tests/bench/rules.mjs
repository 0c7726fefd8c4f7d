// All rules of many services each minute on one core, on profiles that a fleet has just pushed.
import { join } from 'node:path';
import { build } from '../e2e/lib.mjs';
import { emptyDirectory, env, fleet, lines } from './common.mjs';
import { note } from './report.mjs';

const ROUNDS = 3;
const SCRAPES = 30 + 6 * (ROUNDS - 1); // five minutes for the first round, a minute more for each other

export function rules() {
  const services = env('BENCH_RULE_SERVICES', 200), pods = env('BENCH_PODS', 3);
  const dir = emptyDirectory('rules');
  const at = Math.floor(Date.now() / 1000);
  const [p] = lines(fleet, ['push', `--data=${dir}`, '--set=fleet-cpu', '--kinds=1', `--service=${services}`,
    `--pods=${pods}`, `--scrapes=${SCRAPES}`, '--every=0', '--json']);
  if (p.failed) throw new Error(`${p.failed} profiles were not stored`);
  const of = { services, pods, scrapes: SCRAPES, samples: p.samples };
  const ways = lines(join(build, 'tests/bench/rules/rules_bench'),
    [`--data=${dir}`, `--services=${services}`, `--at=${at}`, `--rounds=${ROUNDS}`]);
  for (const w of ways) {
    note(`${services} services x ${pods} pods: ${w.name}`, { ours: w.cpu_s, unit: 's of CPU a round', of: { ...of, ...w } });
  }
}
