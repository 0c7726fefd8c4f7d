// Configurations of other programs (corpus/PROGRAM): each is converted, and what comes out is taken by the server's own
// check. Goldens are beside each file: NAME.converted.yml, with NAME.notes for what was said meanwhile; NAME.check for
// what `check config` says of the file itself. EPI_UPDATE=1 writes them anew.
import test from 'node:test';
import assert from 'node:assert/strict';
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { basename } from 'node:path';
import { api, epitool, finish, join, programEnds, request, root, scratch, startServer, writeFileSync } from './lib.mjs';

const corpus = join(root, 'tests/e2e/corpus');
const goldens = /\.(converted\.yml|notes|check)$/;

function compare(file, got) {
  if (process.env.EPI_UPDATE) writeFileSync(file, got);
  assert.equal(got, existsSync(file) ? readFileSync(file, 'utf8') : '', basename(file));
}

const run = (t, ...args) => finish(t, epitool, args, 60, { cwd: corpus });

for (const program of readdirSync(corpus)) {
  test(`configurations of ${program}`, async (t) => {
    const files = readdirSync(join(corpus, program)).filter((name) => !goldens.test(name));
    assert.ok(files.length > 1, program);
    for (const name of files) {
      const path = `${program}/${name}`, golden = join(corpus, program, name);
      const converted = await run(t, 'convert', program, path);
      assert.equal(converted.code, 0, `${path}: ${converted.err}`);
      compare(`${golden}.converted.yml`, converted.out);
      compare(`${golden}.notes`, converted.err);
      const check = await run(t, 'check', 'config', '--syntax-only', `${path}.converted.yml`);
      assert.equal(check.code, 0, check.err);
      // It says all that it has to say at once, of these with the flag that passes sections over.
      if (program === 'alloy') continue;
      const whole = await run(t, 'check', 'config', '--syntax-only', '--config.ignore-foreign', path);
      compare(`${golden}.check`, whole.err);
    }
  });
}

/** A YAML text without the lines of the key at `at` and what is below it; or with the key and no value. */
function without(lines, at, empty) {
  const [, indent, dash, key] = lines[at].match(/^( *)((?:- )*)([^\s:#][^:]*):(?: |$)/) ?? [];
  if (key === undefined || /^["'{[|*&]/.test(key)) return undefined;
  const depth = indent.length + dash.length;
  let end = at + 1;
  // A list may stand below its key without an indent.
  while (end < lines.length && (/^ *(#|$)/.test(lines[end]) || lines[end].search(/\S/) > depth
    || (lines[end].search(/\S/) === depth && lines[end].trimStart().startsWith('- ') && !dash))) end++;
  if (!empty && dash) return undefined; // the rest of its item would need the dash
  return [...lines.slice(0, at), ...(empty ? [`${indent}${dash}${key}:`] : []), ...lines.slice(end)].join('\n');
}

/** Writes the text, converts it, and gives the exit code and what came out. */
async function converted(t, dir, program, name, text) {
  const file = join(dir, `${name}.in`), to = join(dir, `${name}.yml`);
  writeFileSync(file, text);
  const r = await run(t, 'convert', program, '-o', to, file);
  return { ...r, to, code: r.code, text: existsSync(to) ? readFileSync(to, 'utf8') : '' };
}

/** All these load; several at a time. */
async function assertLoad(t, files) {
  for (let i = 0; i < files.length; i += 100) {
    const check = await run(t, 'check', 'config', '--syntax-only', ...files.slice(i, i + 100));
    assert.deepEqual(check.err.split('\n').filter((x) => /FAILED/.test(x)), []);
    assert.equal(check.code, 0);
  }
}

test('a value that is empty is as if its key were not there, and what comes out loads', async (t) => {
  const dir = scratch(t), cases = [], loads = [];
  for (const program of ['prometheus', 'parca', 'pyroscope'])
    for (const name of readdirSync(join(corpus, program)).filter((x) => !goldens.test(x))) {
      const lines = readFileSync(join(corpus, program, name), 'utf8').split('\n');
      for (const [at, line] of lines.entries())
        if (!/^scrape[-_]configs:/.test(line)) // by which Pyroscope's versions are told apart
          cases.push({ program, name, at, line, empty: without(lines, at, true), gone: without(lines, at, false) });
    }
  const one = async ({ program, name, at, line, empty, gone }) => {
    if (empty === undefined) return;
    const a = await converted(t, dir, program, `${program}-${name}-${at}-empty`, empty);
    if (!a.code) loads.push(a.to);
    else assert.match(a.err, /^epitool: error: /m);
    if (gone === undefined) return;
    const b = await converted(t, dir, program, `${program}-${name}-${at}-gone`, gone);
    assert.equal(a.code, b.code, `${name}:${at + 1}: ${line}\n${a.err}${b.err}`);
    if (!b.code) loads.push(b.to);
  };
  for (let i = 0; i < cases.length; i += 8) await Promise.all(cases.slice(i, i + 8).map(one));
  assert.ok(loads.length > 500, `${loads.length}`);
  await assertLoad(t, loads);
});

/** All blocks of an Alloy file that are one below the other, at any depth: [from, to) of lines. */
function blocks(lines) {
  const open = [], found = [];
  lines.forEach((line, i) => {
    if (/\{\s*$/.test(line)) open.push(i);
    else if (/^\s*\},?\s*$/.test(line)) found.push({ from: open.pop(), to: i + 1, depth: open.length });
    else if (/^\s*[\w.]+( "\w+")? \{.*\}\s*$/.test(line)) found.push({ from: i, to: i + 1, depth: open.length });
  });
  return found.sort((a, b) => a.from - b.from);
}

test('blocks of Alloy in any order, or without one of them', async (t) => {
  const dir = scratch(t), loads = [];
  const settings = (text) => text.replace(/ *#.*$/gm, '').split('\n').filter((x) => x.trim()).sort();
  for (const name of readdirSync(join(corpus, 'alloy')).filter((x) => !goldens.test(x))) {
    const lines = readFileSync(join(corpus, 'alloy', name), 'utf8').split('\n');
    const all = blocks(lines), before = await converted(t, dir, 'alloy', name, lines.join('\n'));
    assert.equal(before.code, 0, before.err);
    for (const [i, a] of all.entries()) {
      const less = [...lines.slice(0, a.from), ...lines.slice(a.to)].join('\n');
      const r = await converted(t, dir, 'alloy', `${name}-${i}-less`, less);
      if (r.code) assert.match(r.err, /: node selectors of the pod role need attach_metadata: .*\nepitool: error: what was written does not load/);
      else loads.push(r.to);
      // Two profiles that change places say the same.
      const b = all.find((x) => x.from >= a.to && x.depth === a.depth && [a, x].every((y) => /^\s*profile\./.test(lines[y.from])));
      if (!b) continue;
      const swapped = [...lines.slice(0, a.from), ...lines.slice(b.from, b.to), ...lines.slice(a.to, b.from),
        ...lines.slice(a.from, a.to), ...lines.slice(b.to)].join('\n');
      const s = await converted(t, dir, 'alloy', `${name}-${i}-swapped`, swapped);
      assert.equal(s.code, 0, s.err);
      assert.deepEqual(settings(s.text), settings(before.text), `${name}:${a.from + 1}\n${swapped}\n${s.text}`);
      loads.push(s.to);
    }
  }
  assert.ok(loads.length > 30, `${loads.length}`);
  await assertLoad(t, loads);
});

test('the configuration of Alloy in examples/', async (t) => {
  const dir = scratch(t), file = join(root, 'examples/senders/config.alloy'), to = join(dir, 'epimetheus.yml');
  const r = await run(t, 'convert', 'alloy', '-o', to, file);
  assert.equal(r.code, 0, r.err);
  assert.equal((await run(t, 'check', 'config', to)).code, 0);
  const wrong = await run(t, 'check', 'config', file);
  assert.equal(wrong.code, 1);
  assert.match(wrong.err, /\n {2}HINT: `epitool convert alloy \S+config\.alloy` writes it as YAML\n/);
});

test('what the operator writes for pods loads as it is, with the flag', async (t) => {
  const dir = scratch(t);
  const pods = readFileSync(join(corpus, 'prometheus/operator.yml'), 'utf8')
    .replace(/- job_name: serviceMonitor[^]*?(?=- job_name: podMonitor)/, '').replace(/rule_files:\n.*\n/, '').replace(/^alerting:[^]*/m, '')
    .replace(/ {2}kubernetes_sd_configs:\n(?: {2}- .*\n| {4}.*\n| {6}.*\n)*/, '  static_configs: [{targets: ["127.0.0.1:1"]}]\n');
  const refused = await startServer(t, { dir, config: pods, ready: false });
  assert.equal((await programEnds(refused)).code, 2, refused.err);
  assert.match(refused.err, /epimetheus\.yml:\d+:1: field storage not found in type config: .*; --config\.ignore-foreign skips the field"/);
  const server = await startServer(t, { dir, config: pods, args: ['--config.ignore-foreign', '--web.enable-lifecycle'] });
  assert.match(server.err, /level=warn component=main msg=configuration warning="\S+epimetheus\.yml:\d+:3: metrics_path is not used here: each/);
  assert.equal(server.err.match(/ metrics_path is not used here/g).length, 1);
  assert.deepEqual((await api(server, 'scrape_pools')).scrapePools, ['podMonitor/shop/checkout/0']);
  // A reload with several errors is one readable message.
  writeFileSync(join(dir, 'epimetheus.yml'), pods.replace('scrape_interval: 30s', 'scrape_intervall: 30s').replace('label_limit', 'label_limitt'));
  const res = await request(`${server.url}/-/reload`, { method: 'POST' });
  assert.equal(res.status, 500);
  assert.match(res.body.toString(), /epimetheus\.yml:2:3: field scrape_intervall not found in type global_config; did you mean "scrape_interval"\? \(and 1 more error; `epitool check config` lists them\)\n?$/);
});

test('a file that is not what it is said to be', async (t) => {
  const dir = scratch(t);
  const cases = [
    ['alloy', 'scrape_configs: []\n', /^epitool: error: .*:1:15: expected "=", a label or "{", found ":"|expected|a character/],
    ['prometheus', 'a: [\n', /^epitool: error: .*:2:1: did not find expected node content/],
    ['pyroscope', 'server: {}\n', /^epitool: error: .*:1:1: it has neither scrape-configs nor scrape_configs: /],
    ['parca', '- a\n', /^epitool: error: .*:1:1: expected a map\n$/],
    // What cannot be right is converted, and the check of the output says so.
    ['prometheus', 'scrape_configs: [{job_name: a, scheme: ftp}]\n', /error: standard output:\d+:\d+: scheme "ftp" is not http or https\nepitool: error: what was written does not load: see above\n$/],
  ];
  for (const [i, [program, text, want]] of cases.entries()) {
    const file = join(dir, `${i}`);
    writeFileSync(file, text);
    const r = await run(t, 'convert', program, file);
    assert.equal(r.code, 1, r.err);
    assert.match(r.err, want);
  }
  const unknown = await run(t, 'convert', 'promteus', join(dir, '0'));
  assert.equal(unknown.code, 2);
  assert.match(unknown.err, /unknown command 'convert promteus'; it has prometheus, parca, alloy, pyroscope; did you mean "convert prometheus"\?/);
});
