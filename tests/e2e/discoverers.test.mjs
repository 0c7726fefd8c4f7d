// consul, nomad, docker and ec2 discovery beside Prometheus's own and Debian's prometheus.
import test from 'node:test';
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { debian, root, scratch, start, startPrometheus, startServer, until } from './lib.mjs';
import { configuration, ours, pair } from './discoverers.mjs';
import * as fakes from './api_fakes.mjs';

/** An instance of a service in Consul. */
function instance(Service, Node = {}, Checks = []) {
  return { Node: { ID: 'u', Node: 'node-1', Address: '10.0.0.1', Datacenter: 'dc1', TaggedAddresses: null, Meta: null, ...Node },
    Service: { ID: 'id-1', Service: 'x', Tags: [], Address: '', Port: 8080, Meta: null, ...Service }, Checks };
}

test('consul', async (t) => {
  const check = (Status, CheckID = 'c') => ({ CheckID, Status, Name: 'n', Output: '' });
  const fake = await fakes.consul(t, {
    consul: [instance({ ID: 'consul', Service: 'consul', Port: 8300 })],
    web: [
      instance({ ID: 'web-1', Service: 'web', Tags: ['go', 'v2', 'a,b'], Address: '10.1.0.1', Port: 6060, Meta: { version: '1', 'team/x': 'core' },
        Namespace: 'ns', Partition: 'p' },
      { Meta: { rack: 'r1', 'é-ñ': 'x' }, TaggedAddresses: { lan: '10.0.0.1', wan: '1.2.3.4', lan_ipv4: '10.0.0.1' } }, [check('passing'), check('warning')]),
      instance({ ID: 'web-2', Service: 'web', Tags: ['v1'], Address: 'fd00::1', Port: 0 }, { Meta: { rack: 'r2' } }, [check('critical', '_node_maintenance')]),
      instance({ ID: 'web-3', Service: 'web', Tags: null }, { Address: 'web.internal' }, [check('critical')]),
    ],
    'a b/c': [instance({ ID: 'odd', Service: 'a b/c', Tags: [''] }, {}, [check('unheard-of')])],
    gone: [],
  });
  const entry = { server: fake.address, refresh_interval: '1s' };
  const jobs = {
    all: entry,
    services: { ...entry, services: ['web', 'nonesuch'] },
    tags: { ...entry, tags: ['go', 'v2'], tag_separator: '|' },
    both: { ...entry, services: ['web', 'consul'], tags: ['v1'], datacenter: 'dc-given' },
    meta: { ...entry, node_meta: { rack: 'r2' }, allow_stale: false, server: `http://${fake.address}` },
    filtered: { ...entry, services: ['web'], filter: 'x == y', health_filter: 'z == 1', scheme: 'http', token: 't' },
  };
  const both = await pair(t, Object.fromEntries(Object.entries(jobs).map(([k, v]) => [k, { kind: 'consul', entry: v }])));
  await both.same({ all: 5, services: 3, tags: 1, both: 1, meta: 1, filtered: 3 });

  // A change shows on both, by the query that waits for it.
  fake.state.web.pop();
  fake.state.web[1].Service.Tags = ['v1', 'go', 'v2'];
  fake.state.fresh = [instance({ ID: 'f', Service: 'fresh', Tags: ['go', 'v2'] }), instance({ ID: 'g', Service: 'fresh' })];
  delete fake.state.consul;
  fake.changed();
  await both.same({ all: 5, services: 2, tags: 3, both: 1, meta: 1, filtered: 2 });

  const asked = (re) => fake.seen.filter((x) => re.test(x)).length;
  assert.ok(asked(/^GET \/v1\/catalog\/services\?.*index=\d+&wait=120000ms/) > 0);
  assert.ok(asked(/^GET \/v1\/health\/service\/a%20b%2Fc\?/) > 0);
});

test('nomad', async (t) => {
  const of = (ServiceName, ID, more) => ({ ID, ServiceName, Namespace: 'default', NodeID: 'n1', Datacenter: 'dc1', JobID: 'j', AllocID: 'a',
    Tags: [], Address: '10.0.0.1', Port: 20000, CreateIndex: 1, ModifyIndex: 1, ...more });
  const fake = await fakes.nomad(t, [
    of('api', '1', { Tags: ['go', 'v2'] }), of('api', '2', { Address: 'fd00::2', Tags: null }), of('db', '3', { Port: 5432, Tags: ['x,y'] }),
    of('api', '4', { Namespace: 'other', Datacenter: '' }),
  ]);
  const entry = { server: `http://${fake.address}`, refresh_interval: '1s' };
  const both = await pair(t, {
    all: { kind: 'nomad', entry },
    other: { kind: 'nomad', entry: { ...entry, namespace: 'other', region: 'r', tag_separator: ';', allow_stale: false } },
  });
  await both.same({ all: 3, other: 1 });
  fake.state.splice(0, 2, of('web', '9', { Tags: ['z'] }));
  fake.changed();
  await both.same({ all: 2, other: 1 });
});

const networks = [
  { Id: 'N1', Name: 'bridge', Scope: 'local', Internal: false, Ingress: false, Labels: { 'com.example/owner': 'x', a: '' } },
  { Id: 'N2', Name: 'back', Scope: 'swarm', Internal: true, Ingress: true, Labels: {} },
];
const bridge = (ip, more) => ({ bridge: { NetworkID: 'N1', IPAddress: ip, GlobalIPv6Address: '', ...more } });
function container(Id, NetworkMode, Networks, Ports, more) {
  return { Id, Names: [`/${Id}`], Image: 'image:1', ImageID: 'sha256:1', Labels: { 'org.label-schema.name': Id, role: 'x' }, HostConfig: { NetworkMode },
    NetworkSettings: { Networks }, Ports, ...more };
}
const ports = [
  { IP: '0.0.0.0', PrivatePort: 6060, PublicPort: 16060, Type: 'tcp' }, { IP: '::', PrivatePort: 6060, PublicPort: 16061, Type: 'tcp' },
  { PrivatePort: 53, Type: 'udp' }, { PrivatePort: 7070, Type: 'tcp' },
];

test('docker', async (t) => {
  const state = { networks, containers: [
    container('plain', 'default', bridge('172.17.0.2'), ports),
    container('udp', 'default', bridge('172.17.0.3'), [{ PrivatePort: 53, Type: 'udp' }]),
    container('two', 'default', { ...bridge('172.17.0.4'), back: { NetworkID: 'N2', IPAddress: '10.5.0.4' } }, [{ PrivatePort: 1, Type: 'tcp' }]),
    container('host', 'host', { host: { NetworkID: 'gone', IPAddress: '' } }, []),
    container('shares', 'container:plain', {}, [{ PrivatePort: 9, Type: 'tcp' }]),
    container('six', 'default', { six: { NetworkID: 'N2', IPAddress: '', GlobalIPv6Address: 'fd00::7' } }, []),
    container('none', 'none', {}, []),
    container('nameless', 'default', bridge('172.17.0.9'), [], { Names: [] }),
    container('bare', 'default', bridge('172.17.0.5'), [], { Labels: null, Image: '', ImageID: '' }),
  ] };
  const path = join(scratch(t), 'docker.sock');
  const [local, remote] = [await fakes.docker(t, path, state), await fakes.docker(t, 0, state)];
  const jobs = {
    local: { kind: 'docker', entry: { host: `unix://${path}`, refresh_interval: '1s' } },
    tcp: { kind: 'docker', entry: { host: `tcp://${remote.address}`, refresh_interval: '1s', match_first_network: false, port: 99,
      host_networking_host: 'node-1' } },
    filtered: { kind: 'docker', entry: { host: `http://${remote.address}`, refresh_interval: '1s', filters: [{ name: 'label', values: ['role=x'] }] } },
  };
  const both = await pair(t, jobs);
  await both.same({ local: 9, tcp: 10, filtered: 8 });
  state.containers.splice(0, 1, container('new', 'default', bridge('172.17.0.8'), ports));
  await both.same({ local: 8, tcp: 9, filtered: 7 });
});

/** Debian's Docker daemon in `dir`, or why it does not run here. `command(...args)` is its client. */
async function startDocker(t, dir) {
  const at = dirname(debian('docker', 'libraries', 'docker.io containerd runc').replace(/\/$/, ''));
  const libraries = [`${at}/lib/x86_64-linux-gnu`, `${dirname(at)}/lib/x86_64-linux-gnu`].join(':');
  const socket = join(dir, 'docker.sock');
  const env = { ...process.env, PATH: `${at}/bin:${at}/sbin:${process.env.PATH}`, LD_LIBRARY_PATH: libraries, DOCKER_HOST: `unix://${socket}` };
  if (process.getuid() !== 0) return { reason: 'the Docker daemon needs root' };
  const daemon = start(t, join(at, 'sbin/dockerd'), [`--data-root=${dir}/data`, `--exec-root=${dir}/exec`, `--pidfile=${dir}/pid`, '--host', `unix://${socket}`,
    '--iptables=false', '--ip6tables=false', '--ip-forward=false', '--ip-masq=false', '--bridge=none', '--storage-driver=vfs'], { env });
  await until('the daemon runs, or not', 30, () => daemon.code !== undefined || /API listen on/.test(daemon.err));
  if (daemon.code !== undefined) return { reason: `the Docker daemon does not run here: ${daemon.err.trim().split('\n').at(-1)}` };
  return { daemon, socket, command: (...args) => execFileSync(join(at, 'bin/docker'), args, { env, stdio: 'pipe' }).toString().trim() };
}

test('a Docker daemon', async (t) => {
  const dir = scratch(t), { reason, daemon, socket, command } = await startDocker(t, dir);
  if (reason) return t.skip(reason);
  try {
    execFileSync('gcc', ['-static', '-O1', '-xc', '-', '-o', join(dir, 'pause')], { input: '#include <unistd.h>\nint main(void) { for (;;) pause(); }\n' });
    execFileSync('tar', ['-C', dir, '-cf', join(dir, 'image.tar'), 'pause']);
    command('import', join(dir, 'image.tar'), 'pause:1');
    const run = (name, ...args) => command('run', '-d', '--name', name, ...args, 'pause:1', '/pause');
    run('host', '--network=host', '--label=role=x', '--label=com.example/owner=y');
    run('alone', '--network=none', '--expose=6060');
    run('beside', '--network=container:alone', '--label=role=x');
    const entry = { host: `unix://${socket}`, refresh_interval: '1s' };
    const both = await pair(t, { all: { kind: 'docker', entry: { ...entry, port: 6060 } },
      some: { kind: 'docker', entry: { ...entry, filters: [{ name: 'label', values: ['role=x'] }, { name: 'network', values: ['host'] }] } } });
    await both.same({ all: 3, some: 1 });
    command('rm', '-f', 'alone');
    await both.same({ all: 1, some: 1 });
  } finally {
    for (const name of command('ps', '-aq').split('\n').filter(Boolean)) command('rm', '-f', name);
    await daemon.stop('SIGTERM');
    // Inner ones first; what is still in use goes when it no longer is.
    const mounts = [...readFileSync('/proc/mounts', 'utf8').matchAll(/^\S+ (\S+) /gm)].map(([, at]) => at).filter((at) => at.startsWith(dir));
    for (const at of mounts.reverse()) execFileSync('umount', ['-l', at]);
  }
});

const zones = [{ zoneName: 'eu-west-2a', zoneId: 'euw2-az2', zoneState: 'available' }, { zoneName: 'eu-west-2b', zoneId: 'euw2-az3' }];
const reservation = (...instancesSet) => ({ reservationId: 'r-1', ownerId: '123', instancesSet });
const full = {
  instanceId: 'i-1', imageId: 'ami-1', instanceState: { code: 16, name: 'running' }, privateDnsName: 'ip-10.internal', dnsName: 'ec2-1.example',
  instanceType: 't3.micro', placement: { availabilityZone: 'eu-west-2a' }, platform: 'windows', subnetId: 'subnet-1', vpcId: 'vpc-1',
  privateIpAddress: '10.0.0.1', ipAddress: '1.2.3.4', architecture: 'x86_64', instanceLifecycle: 'spot',
  tagSet: [{ key: 'Name', value: 'api & <web>' }, { key: 'team/x', value: '' }, { key: 'a:b', value: 'c' }],
  networkInterfaceSet: [{ subnetId: 'subnet-1' }, { subnetId: 'subnet-2' }, { subnetId: 'subnet-1' }],
};
const small = (instanceId, more) => ({ instanceId, imageId: 'ami-2', instanceState: { name: 'running' }, instanceType: 't3.nano', privateDnsName: '',
  dnsName: '', placement: { availabilityZone: 'eu-west-2c' }, privateIpAddress: `10.0.1.${instanceId.length}`, ...more });

test('ec2', async (t) => {
  const six = (ip, index, primary) => ({ subnetId: 's', attachment: { deviceIndex: index },
    ipv6AddressesSet: [{ ipv6Address: ip, ...(primary ? { isPrimaryIpv6: true } : {}) }] });
  const state = { zones, reservations: [
    reservation(full, small('i-22')),
    reservation(small('i-333', { instanceState: { name: 'stopped' }, vpcId: 'v', subnetId: 's' })),
    reservation(small('i-4444', { privateIpAddress: '10.0.2.1', vpcId: 'v', subnetId: 's', networkInterfaceSet: [six('fd00::1', 0), six('fd00::2', 2, true)] })),
    reservation(small('i-55555', { privateIpAddress: '10.0.2.2', vpcId: 'v', subnetId: 's', networkInterfaceSet: [six('fd00::9', 0)] })),
    { reservationId: 'r-2', ownerId: '456', instancesSet: [] },
  ] };
  const keys = { AK: 'SK/+=', ENV: 'env-secret' };
  const fake = await fakes.ec2(t, state, keys);
  const entry = { region: 'eu-west-2', endpoint: `http://${fake.address}`, access_key: 'AK', secret_key: 'SK/+=', refresh_interval: '1s' };
  const both = await pair(t, {
    keys: { kind: 'ec2', entry },
    environment: { kind: 'ec2', entry: { endpoint: entry.endpoint, refresh_interval: '1s', port: 6060,
      filters: [{ name: 'instance-state-name', values: ['running', 'pending'] }] } },
  }, { AWS_ACCESS_KEY_ID: 'ENV', AWS_SECRET_ACCESS_KEY: 'env-secret', AWS_REGION: 'us-east-1' });
  await both.same({ keys: 5, environment: 4 });
  assert.deepEqual([...fake.scopes].sort(), ['eu-west-2/ec2/aws4_request', 'us-east-1/ec2/aws4_request']);
  state.reservations.splice(1, 2);
  await both.same({ keys: 3, environment: 3 });
  // A wrong key: the targets stay, and the log says why.
  keys.AK = 'another';
  await until('a refusal', 30, () => /provider=ec2 err="[^"]*describe instances: server returned HTTP status 403 Forbidden: SignatureDoesNotMatch/
    .test(both.server.err));
  assert.equal((await ours(both.server)).keys.length, 3);
});

test('ec2 with the credentials of the instance, and those of a role', async (t) => {
  const fake = await fakes.ec2(t, { zones, reservations: [reservation(full)] }, { INSTANCE: 'is', ROLE: 'rs' });
  const entry = { endpoint: `http://${fake.address}`, refresh_interval: '1s' };
  const both = await pair(t, {
    instance: { kind: 'ec2', entry },
    role: { kind: 'ec2', entry: { ...entry, role_arn: 'arn:aws:iam::1:role/r', external_id: 'e' } },
  }, { AWS_EC2_METADATA_DISABLED: 'false', AWS_EC2_METADATA_SERVICE_ENDPOINT: `http://${fake.address}`, AWS_ENDPOINT_URL_STS: `http://${fake.address}` });
  await both.same({ instance: 1, role: 1 });
  assert.equal(fake.assumed, 'arn:aws:iam::1:role/r e INSTANCE');
  assert.deepEqual([...fake.scopes].sort(), ['eu-central-1/ec2/aws4_request', 'eu-central-1/sts/aws4_request']);
});

test("Debian's prometheus finds the same with docker and ec2", async (t) => {
  // It is older: it knows no image of a container and no region, and takes all networks.
  const since = /__meta_(docker_container_image(_id)?|ec2_region|ec2_(default|primary)_ipv6_address(es)?)$/;
  const older = (list) => list.map((x) => JSON.stringify(JSON.parse(x).filter(([k]) => !since.test(k)))).sort();
  const machine = await fakes.docker(t, 0, { networks, containers: [container('plain', 'default', bridge('172.17.0.2'), ports),
    container('host', 'host', { host: { NetworkID: 'gone', IPAddress: '' } }, [])] });
  const cloud = await fakes.ec2(t, { zones, reservations: [reservation(full), reservation(small('i-22')), reservation(small('i-333'))] }, { AK: 'SK' });
  const jobs = {
    docker: { kind: 'docker', entry: { host: `tcp://${machine.address}`, refresh_interval: '1s' } },
    ec2: { kind: 'ec2', entry: { region: 'eu-west-2', endpoint: `http://${cloud.address}`, access_key: 'AK', secret_key: 'SK', refresh_interval: '1s' } },
  };
  const dir = scratch(t);
  const config = JSON.parse(configuration(jobs));
  const server = await startServer(t, { dir, config: JSON.stringify(config) });
  for (const job of config.scrape_configs) delete job.profiling_config;
  const prometheus = await startPrometheus(t, join(dir, 'prometheus'), JSON.stringify(config));
  const counts = { docker: 4, ec2: 3 };
  const state = async () => {
    const [got, want] = [await ours(server), await ours(prometheus)];
    return Object.keys(jobs).map((name) => [older(got[name] ?? []), older(want[name] ?? [])]);
  };
  await until('targets of both', 60, async () => (await state()).every((lists, i) => lists.every((x) => x.length === Object.values(counts)[i])));
  for (const [got, want] of await state()) assert.deepEqual(got, want);
});
