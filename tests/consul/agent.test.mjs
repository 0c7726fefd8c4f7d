// Discovery with a real Consul agent: `make test-consul`.
import test from 'node:test';
import assert from 'node:assert/strict';
import { execFileSync, freePort, join, request, root, scratch, start, until, writeFileSync } from '../e2e/lib.mjs';
import { ours, pair } from '../e2e/discoverers.mjs';

const program = execFileSync(join(root, 'tests/consul/prepare.sh')).toString().trim();

test('a consul agent', async (t) => {
  const ports = Object.fromEntries(await Promise.all(['http', 'dns', 'grpc', 'server', 'serf_lan', 'serf_wan'].map(async (k) => [k, await freePort()])));
  const dir = scratch(t), file = join(dir, 'agent.json');
  writeFileSync(file, JSON.stringify({ ports, datacenter: 'here', node_name: 'n-1', node_meta: { rack: 'r1' }, bind_addr: '127.0.0.1' }));
  const agent = start(t, program, ['agent', '-dev', `-config-file=${file}`]);
  const url = `http://127.0.0.1:${ports.http}`;
  const put = async (path, body) => assert.equal((await request(`${url}/v1/agent/service/${path}`, { method: 'PUT', body: body && JSON.stringify(body) })).status, 200);
  await until('a leader', 30, async () => {
    assert.equal(agent.code, undefined, agent.out);
    return (await request(`${url}/v1/status/leader`)).body.toString().length > 2;
  });
  await put('register', { ID: 'w1', Name: 'web', Tags: ['go', 'v2'], Address: '10.1.0.1', Port: 6060, Meta: { version: '1' },
    Checks: [{ CheckID: 'c1', TTL: '1h', Status: 'warning' }] });
  await put('register', { ID: 'w2', Name: 'web', Tags: ['v1'], Port: 6061, Check: { TTL: '1h', Status: 'passing' } });
  await put('register', { ID: 'd', Name: 'a b', Address: 'fd00::1' });
  const entry = { server: `127.0.0.1:${ports.http}`, refresh_interval: '1s' };
  const both = await pair(t, { all: { kind: 'consul', entry }, web: { kind: 'consul', entry: { ...entry, services: ['web'], tags: ['go'] } },
    healthy: { kind: 'consul', entry: { ...entry, services: ['web'], health_filter: 'not Checks.Status == "warning"' } },
    rack: { kind: 'consul', entry: { ...entry, node_meta: { rack: 'r1' } } } });
  await both.same({ all: 4, web: 1, healthy: 1, rack: 4 });
  // The agent holds queries back until something changes.
  await put('deregister/w1');
  await put('register', { ID: 'w3', Name: 'web', Tags: ['go'], Port: 7000 });
  await put('maintenance/d?enable=true&reason=x');
  await both.same({ all: 4, web: 1, healthy: 2, rack: 4 });
  assert.ok((await ours(both.server)).all.some((x) => x.includes('"maintenance"')));
  await put('deregister/d');
  await both.same({ all: 3, web: 1, healthy: 2, rack: 3 });
});
