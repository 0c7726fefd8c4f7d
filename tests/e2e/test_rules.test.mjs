// `epitool test rules`: the verdicts of Debian's promtool on files that both can read, profiles, and the rules and
// dashboards of examples/.
import test from 'node:test';
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { epitool, finish, root, scratch } from './lib.mjs';
import { cases } from './rule_test_cases.mjs';

const rules = join(root, 'examples/rules');

function promtool() {
  return join(execFileSync(join(root, 'tests/prometheus.sh'), [join(root, 'build/prometheus')]).toString().trim(), 'promtool');
}

const shown = (run) => `exit ${run.code}\n${run.out}${run.err}`;

test('files of numbers have the verdicts and the words of promtool', { timeout: 180000 }, async (t) => {
  const program = promtool();
  const dir = scratch(t);
  const wrong = [];
  let passed = 0;
  for (const [i, [what, rulesText, testText, differs]] of cases.entries()) {
    mkdirSync(join(dir, `${i}`));
    writeFileSync(join(dir, `${i}/rules.yml`), rulesText);
    writeFileSync(join(dir, `${i}/test.yml`), testText);
    const args = ['test', 'rules', 'test.yml'];
    const theirs = await finish(t, program, args, 60, { cwd: join(dir, `${i}`) });
    const ours = await finish(t, epitool, args, 60, { cwd: join(dir, `${i}`) });
    const same = differs ? ours.code === theirs.code : shown(ours) === shown(theirs);
    if (!same) wrong.push(`${what}\n${testText}\nis\n${shown(ours)}\nof promtool\n${shown(theirs)}`);
    passed += theirs.code === 0;
    assert.ok([0, 1].includes(ours.code), shown(ours));
  }
  assert.equal(wrong.join('\n'), '');
  assert.ok(passed > 30 && cases.length - passed > 30, `${passed} of ${cases.length} succeed`);
});
