// The Model Context Protocol with its real clients: the conformance suite, the clients for TypeScript and Python in each
// revision, a scripted assistant that finds three planted faults, and what no client sends.
import test from 'node:test';
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { finish, join, request, root, scratch, startServer, writeFileSync } from './lib.mjs';
import { profiles } from './mcp/faults.mjs';

execFileSync(join(root, 'tests/e2e/senders/prepare.sh'), ['mcp'], { stdio: ['ignore', 'ignore', 'inherit'] });
const here = join(root, 'tests/e2e/mcp');
const tools = join(root, 'build/senders/mcp');
// Both packages need a newer Node.js than Debian's.
const node = join(tools, `node_modules/node-linux-${process.arch}/bin/node`);

const ANSWERS_BYTES_MAX = 24 * 1024, CALLS_MAX = 4;

function start(t, dir = scratch(t)) {
  return startServer(t, { dir, config: 'scrape_configs: []\n', args: ['--web.enable-ingest', '--web.enable-mcp'] });
}

/** A server with forty minutes of profiles that end now; `end` is the time of the last ones. */
async function startWithFaults(t) {
  const server = await start(t);
  const endS = Math.floor(Date.now() / 1000);
  for (const p of profiles(endS)) {
    const params = new URLSearchParams({ name: p.name, service_name: 'shop', pod: p.pod, time: p.timeS, interval: `${p.everyS}s` });
    const res = await request(`${server.url}/api/v1/ingest?${params}`, { method: 'POST', body: p.body });
    assert.equal(res.status, 200, res.body.toString());
  }
  return Object.assign(server, { end: new Date(endS * 1000).toISOString().replace('.000', '') });
}

async function runJson(t, program, args, env) {
  const run = await finish(t, program, args, 300, { env: { ...process.env, ...env } });
  assert.equal(run.code, 0, run.err + run.out);
  return JSON.parse(run.out);
}

const NAMES = ['services', 'top', 'tree', 'function', 'compare', 'query', 'help'];

test('the conformance suite finds what a server without test tools should have', async (t) => {
  const server = await start(t), dir = scratch(t);
  // The suite calls tools, prompts and resources that only a server made for it has, and warns if there are no sessions. A
  // scenario of this list that passes, and one outside of it that fails, is an error.
  const lacks = ['logging-set-level', 'completion-complete', 'tools-call-simple-text', 'tools-call-image', 'tools-call-audio',
    'tools-call-embedded-resource', 'tools-call-mixed-content', 'tools-call-with-logging', 'tools-call-error',
    'tools-call-with-progress', 'tools-call-sampling', 'tools-call-elicitation', 'json-schema-2020-12',
    'elicitation-sep1034-defaults', 'elicitation-sep1330-enums', 'server-sse-polling', 'server-sse-multiple-streams', 'resources-list', 'resources-read-text',
    'resources-read-binary', 'resources-templates-read', 'resources-subscribe', 'resources-unsubscribe', 'prompts-list',
    'prompts-get-simple', 'prompts-get-with-args', 'prompts-get-embedded-resource', 'prompts-get-with-image'];
  writeFileSync(join(dir, 'lacks.yml'), `server:\n${lacks.map((name) => `  - ${name}\n`).join('')}`);
  const cli = join(tools, 'node_modules/@modelcontextprotocol/conformance/dist/index.js');
  const args = [cli, 'server', '--url', `${server.url}/mcp`];
  const run = await finish(t, node, [...args, '--suite', 'all', '--expected-failures', join(dir, 'lacks.yml')], 300, { cwd: dir });
  assert.equal(run.code, 0, run.out + run.err);
  for (const scenario of ['server-initialize', 'ping', 'tools-list', 'dns-rebinding-protection']) {
    const one = await finish(t, node, [...args, '--scenario', scenario], 120, { cwd: dir });
    assert.equal(one.code, 0, `${scenario}: ${one.out}${one.err}`);
  }
});

test('a scripted assistant finds three faults', async (t) => {
  const server = await startWithFaults(t);
  for (const [mode, version] of [['auto', '2026-07-28'], ['legacy', '2025-11-25']]) {
    const { faults, ...said } = await runJson(t, node, [join(tools, 'assistant.mjs'), `${server.url}/mcp`, mode, server.end,
      'slow', 'grows', 'waits']);
    assert.equal(said.version, version);
    assert.equal(said.server.name, 'epimetheus');
    assert.deepEqual(said.tools, NAMES);
    const wants = {
      slow: ['main.scoreItems', 'work.go:31', 'main.(*shop).search', 'work.go:38', /^changed \(\+/],
      grows: ['main.(*leak).keepReceipt', 'leak.go:40', 'main.(*shop).checkout', 'leak.go:46', /^(changed|rises) \(\+/],
      waits: ['main.(*stock).reserve', 'shop.go:90', 'main.(*shop).checkout', 'shop.go:97'],
    };
    for (const [symptom, [name, where, caller, line, verdict]] of Object.entries(wants)) {
      const fault = faults[symptom], text = JSON.stringify(fault, null, 1);
      assert.ok(fault.calls.length <= CALLS_MAX, text);
      assert.ok(fault.calls.reduce((sum, c) => sum + c.bytes, 0) <= ANSWERS_BYTES_MAX, text);
      assert.equal(fault.service, 'shop');
      assert.deepEqual([fault.function, fault.where, fault.callers[0], fault.lines[0]], [name, where, caller, line], text);
      // The lock's own function has all of the wait in both windows, so only who calls it moved.
      if (verdict) assert.match(fault.moved.verdict, verdict, text);
      else assert.equal(fault.moved.points > 50, true, text);
      assert.ok(fault.grown > 1.2, text);
    }
  }
});

test('the client for Python calls each tool, in each revision', async (t) => {
  const server = await startWithFaults(t);
  for (const [mode, version] of [['auto', '2026-07-28'], ['legacy', '2025-11-25']]) {
    const said = await runJson(t, 'python3', [join(here, 'assistant.py'), `${server.url}/mcp`, mode, server.end],
      { PYTHONPATH: join(tools, 'site') });
    assert.equal(said.version, version);
    assert.deepEqual(said.tools, NAMES);
    const wants = [/ - +shop +memory 80, mutex 80, cpu 80\n/, /\d+\.\d\d% +main\.renderCart +work\.go:70\n/,
      /main\.main > net\/http\.\(\*conn\)\.serve\n.*main\.\(\*shop\)\.search\n/, /where: work\.go:31\n/,
      /main\.scoreItems +changed \(\+\d/, /costs:\n/, /unexpected end of query/, /Selectors: /];
    said.answers.forEach((a, i) => {
      assert.match(a.text, wants[i]);
      assert.ok(Buffer.byteLength(a.text) <= 8192, a.text);
      assert.equal(a.isError, /^error: /.test(a.text));
      assert.equal(typeof a.structured, 'object');
    });
  }
});

test('hostile messages are refused, and the server goes on', async (t) => {
  const server = await start(t);
  const send = (body, headers = {}) => request(`${server.url}/mcp`, { method: 'POST', body,
    headers: { 'Content-Type': 'application/json', ...headers } });
  const ping = '{"jsonrpc":"2.0","id":1,"method":"ping"}';
  const rows = [
    ['x'.repeat(1 << 20), {}, 413],
    ['['.repeat(60000), {}, 400],
    [`{"a":`.repeat(10000), {}, 400],
    [`[${ping}]`, {}, 400],
    [ping, { 'MCP-Protocol-Version': '1900-01-01' }, 400],
    [ping, { 'MCP-Protocol-Version': 'x'.repeat(8000) }, 400],
    [ping, { Origin: 'http://evil.example' }, 403],
    [ping, { Host: 'evil.example', Origin: 'http://evil.example' }, 403],
    [ping, { 'Content-Type': 'text/plain' }, 415],
    [ping, {}, 200],
  ];
  for (const [body, headers, status] of rows)
    assert.equal((await send(body, headers)).status, status, body.slice(0, 60) + JSON.stringify(headers).slice(0, 60));
  const without = await startServer(t, { dir: scratch(t), config: 'scrape_configs: []\n' });
  assert.equal((await request(`${without.url}/mcp`, { method: 'POST', body: ping,
    headers: { 'Content-Type': 'application/json' } })).status, 404);
});
