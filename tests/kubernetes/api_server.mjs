// A real Kubernetes API server with its etcd, and the calls of KubeApi (tests/e2e/kube_api.mjs) that cases use: put and remove.
// No controllers, no kubelets: what nodes and controllers write is written here.
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import https from 'node:https';
import net from 'node:net';
import { isDeepStrictEqual } from 'node:util';
import { fileURLToPath } from 'node:url';
import { groups } from '../e2e/kube_api.mjs';
import { join, root, scratch, start, until } from '../e2e/lib.mjs';

const TOKEN = 'a-token-of-an-administrator';
const cluster = new Set(['nodes', 'namespaces']); // without a namespace

async function freePort() {
  const server = net.createServer();
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  const { port } = server.address();
  await new Promise((done) => server.close(done));
  return port;
}

const template = { metadata: { labels: { of: 'it' } }, spec: { restartPolicy: 'Never', containers: [{ name: 'main', image: 'main:1' }] } };

/** What the API server wants of an object beyond what discovery reads; and what it does not take. */
const complete = {
  services: (o) => ({ ...o, spec: { ...o.spec, clusterIP: undefined } }), // it gives one
  ingresses: (o) => ({ ...o, spec: { rules: o.spec.rules.map((r) => ({ ...r, http: { paths: r.http.paths.map((p) =>
    ({ ...p, pathType: 'Prefix', backend: { service: { name: 'any', port: { number: 80 } } } })) } })) } }),
  replicasets: (o) => ({ ...o, spec: { replicas: 0, selector: { matchLabels: { of: 'it' } },
    template: { ...template, spec: { ...template.spec, restartPolicy: 'Always' } } } }),
  jobs: (o) => ({ ...o, spec: { template: { spec: template.spec } } }),
  pods: (o) => ({ ...o, status: { ...o.status, podIP: o.status.podIP || undefined } }),
};

export class ApiServer {
  constructor(t) {
    this.t = t;
    this.dir = scratch(t);
    this.objects = Object.fromEntries(Object.keys(groups).map((r) => [r, new Map()])); // as they were put
    this.agent = new https.Agent({ keepAlive: true, rejectUnauthorized: false });
    this.namespaces = new Set();
    t.after(() => this.agent.destroy());
  }

  async listen() {
    const programs = execFileSync(fileURLToPath(new URL('prepare.sh', import.meta.url)), { cwd: root, maxBuffer: 1 << 20 }).toString().trim();
    const [client, peer] = [await freePort(), await freePort()].map((port) => `http://127.0.0.1:${port}`);
    this.etcd = client;
    this.port = await freePort();
    this.url = `https://127.0.0.1:${this.port}`;
    this.access = `, authorization: {credentials: ${TOKEN}}, tls_config: {ca_file: ${join(this.dir, 'certs/apiserver.crt')}}`;
    start(this.t, join(programs, 'etcd'), ['--data-dir', join(this.dir, 'etcd'), '--listen-client-urls', client, '--advertise-client-urls', client,
      '--listen-peer-urls', peer, '--initial-advertise-peer-urls', peer, '--initial-cluster', `default=${peer}`]);
    execFileSync('openssl', ['genrsa', '-out', join(this.dir, 'accounts.key'), '2048'], { stdio: 'ignore' });
    writeFileSync(join(this.dir, 'tokens.csv'), `${TOKEN},admin,admin,system:masters\n`);
    this.program = join(programs, 'kube-apiserver');
    this.prometheus = join(programs, 'prometheus');
    this.kubectl = join(programs, 'kubectl');
    await this.begin();
    return this;
  }

  async begin() {
    const key = join(this.dir, 'accounts.key');
    this.run = start(this.t, this.program, [`--etcd-servers=${this.etcd}`, '--bind-address=127.0.0.1', `--secure-port=${this.port}`,
      `--cert-dir=${join(this.dir, 'certs')}`, `--token-auth-file=${join(this.dir, 'tokens.csv')}`, '--authorization-mode=RBAC',
      '--service-account-issuer=https://kubernetes.default.svc', `--service-account-key-file=${key}`, `--service-account-signing-key-file=${key}`,
      '--service-cluster-ip-range=10.96.0.0/16', '--disable-admission-plugins=ServiceAccount', '--allow-privileged=true', '--etcd-compaction-interval=5s']);
    await until('the API server is ready', 120, async () => {
      if (this.run.code !== undefined) throw new Error(`it ended: ${this.run.err.slice(-2000)}`);
      return (await this.ask('GET', '/readyz')).status === 200;
    });
  }

  /** It ends, for so long, and begins again: streams break off, and it knows no older versions. */
  async restart(ms) {
    await this.run.stop('SIGKILL');
    await new Promise((done) => setTimeout(done, ms));
    await this.begin();
  }

  ask(method, path, body, type = 'application/json') {
    return new Promise((done, fail) => {
      const req = https.request(`${this.url}${path}`, { method, agent: this.agent, headers: { Authorization: `Bearer ${TOKEN}`, 'Content-Type': type } }, (res) => {
        let text = '';
        res.on('data', (d) => (text += d));
        res.on('end', () => done({ status: res.statusCode, text }));
        res.on('error', fail);
      });
      req.on('error', fail);
      req.end(body && JSON.stringify(body));
    });
  }

  async must(...args) {
    const res = await this.ask(...args);
    if (res.status === 404) return false; // endpoints go with their service
    if (res.status >= 300) throw new Error(`${args[0]} ${args[1]}: ${res.status} ${res.text}`);
    return true;
  }

  async need(namespace) {
    if (this.namespaces.has(namespace)) return;
    const res = await this.ask('POST', '/api/v1/namespaces', { metadata: { name: namespace } });
    if (res.status >= 300 && res.status !== 409) throw new Error(res.text);
    this.namespaces.add(namespace);
  }

  path(resource, namespace, name) {
    return `${groups[resource]}${namespace ? `/namespaces/${namespace}` : ''}/${resource}${name ? `/${name}` : ''}`;
  }

  async put(resource, object) {
    const { namespace, name } = object.metadata, key = namespace ? `${namespace}/${name}` : name;
    const made = complete[resource]?.(object) ?? { ...object }, before = this.objects[resource].get(key);
    const at = this.path(resource, namespace, name);
    delete made.metadata.managedFields;
    if (namespace) await this.need(namespace);
    if (resource === 'namespaces') await this.need(name);
    // Most of a pod cannot change: another one takes its place.
    const anew = before && resource === 'pods' && !(isDeepStrictEqual(before.spec, object.spec) && isDeepStrictEqual(before.status, object.status));
    if (anew) await this.remove(resource, key);
    const patched = ((before && !anew) || resource === 'namespaces') &&
      await this.must('PATCH', at, { ...made, status: undefined }, 'application/merge-patch+json');
    if (!patched) await this.must('POST', this.path(resource, namespace), made);
    if (made.status) await this.must('PATCH', `${at}/status`, { status: made.status }, 'application/merge-patch+json');
    this.objects[resource].set(key, object);
  }

  async remove(resource, key) {
    if (!this.objects[resource].has(key) || resource === 'namespaces') return; // nobody would finish a namespace's deletion
    const [namespace, name] = cluster.has(resource) ? [undefined, key] : key.split('/');
    await this.must('DELETE', `${this.path(resource, namespace, name)}?gracePeriodSeconds=0&propagationPolicy=Background`);
    this.objects[resource].delete(key);
  }

  /** What it has, which is not always what it was sent: equal addresses of endpoints become one, for example. */
  async refresh(namespaces) {
    for (const [resource, map] of Object.entries(this.objects)) {
      map.clear();
      const { text } = await this.ask('GET', this.path(resource));
      for (const o of JSON.parse(text).items) {
        const { namespace, name } = o.metadata;
        if (!namespace || namespaces.includes(namespace)) map.set(namespace ? `${namespace}/${name}` : name, o);
      }
    }
  }

  async clear() {
    for (const [resource, map] of Object.entries(this.objects))
      for (const key of [...map.keys()]) await this.remove(resource, key);
  }
}
