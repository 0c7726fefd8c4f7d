// The tools of prepare.sh.
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { join, root } from '../e2e/lib.mjs';

// Made at the first use, which takes long.
const dir = execFileSync(join(root, 'tests/charts/prepare.sh'), { stdio: ['ignore', 'pipe', 'inherit'] }).toString().trim();
const tool = (name) => join(dir, name);

const limits = { maxBuffer: 64 << 20, encoding: 'utf8' };

/** Runs one to its end: code, out and err. */
export function run(name, args, input = '') {
  const { status, stdout, stderr, error } = spawnSync(tool(name), args, { ...limits, input });
  if (error) throw error;
  return { code: status, out: stdout, err: stderr };
}

export function parse(text) {
  const { code, out, err } = run('objects', [], text);
  assert.equal(code, 0, err);
  return JSON.parse(out);
}

/** Every object has a kind with a schema, and is as the schema says. */
export function validate(text) {
  const { code, out, err } = run('kubeconform', ['-strict', '-summary', '-output=json',
    '-schema-location', `${tool('kinds')}/{{ .ResourceKind }}{{ .KindSuffix }}.json`, '-'], text);
  assert.equal(code, 0, out + err);
  const { summary } = JSON.parse(out);
  assert.deepEqual([summary.valid, summary.skipped], [parse(text).length, 0], out);
}
