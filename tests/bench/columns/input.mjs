// The profiles of the section columns, as files and as dense ids. They are made once, and again for another program or size.
import { createHash } from 'node:crypto';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { build, root } from '../../e2e/lib.mjs';
import { data, fleet } from '../common.mjs';

export const SERVICES = 20, PODS = 10, STEP_S = 10;
export const SERVICE = 3; // the one that is merged
const FILES_START = 1700000000; // in their names

export const jobOf = (service) => `svc${String(service).padStart(3, '0')}`;

function profiles(files, scrapes) {
  const list = [];
  for (let scrape = 0; scrape < scrapes; scrape++)
    for (let service = 0; service < SERVICES; service++)
      for (let pod = 0; pod < PODS; pod++)
        list.push({ series: service * PODS + pod, scrape, service, job: jobOf(service), instance: `pod${pod}`,
          file: join(files, `${jobOf(service)}.pod${pod}.cpu.${FILES_START + scrape * STEP_S}.pb.gz`) });
  return list;
}

function makeDense(source, dense, list) {
  const program = join(build, 'bench', 'dense');
  mkdirSync(join(build, 'bench'), { recursive: true });
  mkdirSync(dense, { recursive: true });
  execFileSync('go', ['build', '-o', program, source],
    { cwd: root, env: { ...process.env, GO111MODULE: 'off', GOFLAGS: '', GOPATH: '/usr/share/gocode' } });
  const lines = list.map((f) => `${f.series} ${f.scrape} ${f.service} ${f.file}`);
  return JSON.parse(execFileSync(program, [dense, `${SERVICE}`], { env: { ...process.env, GOMAXPROCS: '1' }, input: lines.join('\n') }));
}

/** `list`: the files in the order of scrapes; `dense`: a directory (dense.go); `made`: what dense.go printed. */
export function makeInput(scrapes) {
  const dir = join(data, 'columns'), stamp = join(dir, 'made.json'), files = join(dir, 'files'), dense = join(dir, 'dense');
  const source = join(root, 'tests/bench/columns/dense.go');
  const of = createHash('sha256').update(readFileSync(fleet)).update(readFileSync(source)).update(`${scrapes}`).digest('hex');
  const list = profiles(files, scrapes), old = existsSync(stamp) ? JSON.parse(readFileSync(stamp)) : {};
  if (old.of === of) return { list, dense, made: old.made };
  rmSync(dir, { recursive: true, force: true });
  execFileSync(fleet, ['write', files, '--set=fleet-cpu', `--service=${SERVICES}`, `--pods=${PODS}`, `--scrapes=${scrapes}`]);
  const made = makeDense(source, dense, list);
  writeFileSync(stamp, JSON.stringify({ of, made }));
  return { list, dense, made };
}
