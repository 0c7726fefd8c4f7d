// Records successive scrapes of demo processes under load, for `fleet fit`:
//   node tests/fleet/record.mjs DIR [ROUNDS [SECONDS [LOAD,LOAD,...]]]
// Files are DIR/demo.podN.KIND.ROUND.pb.gz, as `fleet write` names them; one process for each load.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { request, startDemo } from '../e2e/lib.mjs';

const [dir, rounds = '30', seconds = '10', loads = '30,50,70,90'] = process.argv.slice(2);
if (!dir) throw new Error('usage: record.mjs DIR [ROUNDS [SECONDS [LOAD,LOAD,...]]]');
const pages = { cpu: `profile?seconds=${seconds}`, heap: 'allocs', goroutine: 'goroutine', mutex: 'mutex', block: 'block' };
const ends = [];
const t = { after: (fn) => ends.push(fn) };
mkdirSync(dir, { recursive: true });
try {
  const demos = [];
  for (const load of loads.split(',')) demos.push(await startDemo(t, 'v1', 'none', Number(load)));
  for (let round = 0; round < Number(rounds); round++) {
    await Promise.all(demos.map(async (demo, pod) => {
      for (const [kind, page] of Object.entries(pages)) {
        const res = await request(`http://${demo.address}/debug/pprof/${page}`);
        if (res.status !== 200) throw new Error(`${page}: ${res.status}`);
        writeFileSync(join(dir, `demo.pod${pod}.${kind}.${String(round).padStart(6, '0')}.pb.gz`), res.body);
      }
    }));
  }
} finally {
  for (const end of ends.reverse()) await end();
}
