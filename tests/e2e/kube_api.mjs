// The part of a Kubernetes API server that discovery uses: lists in pages, watches in chunks, bookmarks, expired versions,
// tokens, and failures of all of these. Objects are plain JSON and not checked.
import http from 'node:http';
import { Buffer } from 'node:buffer';

export const groups = {
  nodes: '/api/v1', namespaces: '/api/v1', pods: '/api/v1', services: '/api/v1', endpoints: '/api/v1',
  endpointslices: '/apis/discovery.k8s.io/v1', ingresses: '/apis/networking.k8s.io/v1',
  replicasets: '/apis/apps/v1', jobs: '/apis/batch/v1',
};

const at = (o, path) => path.split('.').reduce((v, k) => v?.[k], o);

/** Selectors of equalities and inequalities; the tests use no others. */
function selected(o, labels, fields) {
  const holds = (terms, value) => !terms || terms.split(',').every((t) => {
    const [, key, op, want] = t.match(/^(.*?)(!=|==?)(.*)$/);
    return ((value(key) ?? '') === want) === (op !== '!=');
  });
  return holds(labels, (k) => o.metadata.labels?.[k]) && holds(fields, (k) => at(o, k));
}

export class KubeApi {
  constructor() {
    this.version = 1000;
    this.gone = 0; // versions up to this one are expired
    this.log = []; // { version, resource, type, object, before }
    this.objects = Object.fromEntries(Object.keys(groups).map((r) => [r, new Map()]));
    this.pages = new Map(); // by continue token
    this.watches = new Set();
    this.requests = []; // { resource, namespace, watch, token, status, query }
    this.fail = {}; // resource: the number of requests to answer with 500
    this.token = undefined;
    this.delay = 0;
    this.page = 0; // a page size below the client's limit
    this.server = http.createServer((req, res) => this.answer(req, res));
  }

  async listen(t) {
    await new Promise((done) => this.server.listen(0, '127.0.0.1', done));
    this.url = `http://127.0.0.1:${this.server.address().port}`;
    const timer = setInterval(() => this.bookmark(), 100);
    t.after(() => {
      clearInterval(timer);
      this.server.closeAllConnections();
      this.server.close();
    });
    return this;
  }

  // ---- changes of objects

  put(resource, object) {
    const { namespace, name } = object.metadata;
    const key = namespace ? `${namespace}/${name}` : name;
    const before = this.objects[resource].get(key);
    const made = structuredClone(object);
    made.metadata.resourceVersion = String(++this.version);
    made.metadata.uid = before?.metadata.uid ?? object.metadata.uid ?? `uid-${this.version}`;
    this.objects[resource].set(key, made);
    this.tell({ version: this.version, resource, type: before ? 'MODIFIED' : 'ADDED', object: made, before });
  }

  remove(resource, key) {
    const before = this.objects[resource].get(key);
    if (!before) return;
    this.objects[resource].delete(key);
    const last = structuredClone(before);
    last.metadata.resourceVersion = String(++this.version);
    this.tell({ version: this.version, resource, type: 'DELETED', object: last, before });
  }

  // ---- failures

  /** Ends every stream in the middle of a line, as when a proxy dies. */
  cut(resource) {
    for (const w of this.of(resource)) {
      w.res.write('{"type":"MODIFIED","object":{"metadata":{"na');
      w.ended = true;
      setTimeout(() => w.res.destroy(), 5);
    }
  }

  /** Ends every stream in order, as servers do every few minutes. */
  close(resource) {
    for (const w of this.of(resource)) w.res.end();
  }

  /** Expires all versions so far: no watch can start from them. */
  compact() {
    this.gone = this.version;
    this.log = [];
    this.pages.clear();
  }

  /** The same, announced within the streams. */
  expire(resource) {
    this.compact();
    for (const w of this.of(resource)) {
      const object = { kind: 'Status', code: 410, reason: 'Expired', message: 'too old resource version' };
      w.res.end(JSON.stringify({ type: 'ERROR', object }) + '\n');
    }
  }

  of(resource) {
    return [...this.watches].filter((w) => !resource || w.resource === resource);
  }

  /** The number of open streams: `"pods shop": 2`. */
  open() {
    const n = {};
    for (const w of this.watches) {
      const k = `${w.resource} ${w.namespace}`.trim();
      n[k] = (n[k] ?? 0) + 1;
    }
    return n;
  }

  count(what) {
    return this.requests.filter((r) => Object.entries(what).every(([k, v]) => r[k] === v)).length;
  }

  // ---- HTTP

  async answer(req, res) {
    const url = new URL(req.url, 'http://api');
    const m = url.pathname.match(/^(\/api\/v1|\/apis\/[^/]+\/v1)(?:\/namespaces\/([^/]+))?\/([a-z]+)$/);
    const q = Object.fromEntries(url.searchParams);
    const r = { resource: m?.[3], namespace: m?.[2] ?? '', watch: q.watch === '1' || q.watch === 'true',
      token: req.headers.authorization, query: q, status: 200 };
    this.requests.push(r);
    if (this.delay) await new Promise((done) => setTimeout(done, this.delay));
    const refuse = (status, message) => {
      r.status = status;
      res.writeHead(status, { 'Content-Type': 'application/json' });
      res.end(JSON.stringify({ kind: 'Status', status: 'Failure', message, code: status }));
    };
    if (!m || groups[r.resource] !== m[1]) return refuse(404, 'the server could not find the requested resource');
    if (this.token && r.token !== `Bearer ${this.token}`) return refuse(401, 'Unauthorized');
    if (this.fail[r.resource] > 0) {
      this.fail[r.resource]--;
      return refuse(500, 'etcdserver: leader changed');
    }
    if (r.watch) return this.watch(r, res, refuse);
    return this.list(r, res, refuse);
  }

  matches(r, object) {
    return (!r.namespace || object.metadata.namespace === r.namespace) &&
      selected(object, r.query.labelSelector, r.query.fieldSelector);
  }

  list(r, res, refuse) {
    let rest, version = this.version;
    if (r.query.continue) {
      const page = this.pages.get(r.query.continue);
      if (!page) return refuse(410, 'The provided continue parameter is too old');
      ({ rest, version } = page);
    } else {
      rest = [...this.objects[r.resource].values()].filter((o) => this.matches(r, o));
    }
    const limit = this.page || Number(r.query.limit) || rest.length || 1;
    const metadata = { resourceVersion: String(version) };
    if (rest.length > limit) {
      metadata.continue = Buffer.from(`${r.resource} ${Math.random()}`).toString('base64');
      this.pages.set(metadata.continue, { rest: rest.slice(limit), version });
    }
    res.writeHead(200, { 'Content-Type': 'application/json' });
    res.end(JSON.stringify({ kind: 'List', apiVersion: 'v1', metadata, items: rest.slice(0, limit) }));
  }

  watch(r, res, refuse) {
    const from = Number(r.query.resourceVersion ?? 0);
    if (from < this.gone) return refuse(410, `too old resource version: ${from} (${this.gone})`);
    res.writeHead(200, { 'Content-Type': 'application/json', 'Transfer-Encoding': 'chunked' });
    res.flushHeaders();
    const w = { ...r, res };
    this.watches.add(w);
    res.on('close', () => this.watches.delete(w));
    res.on('error', () => {});
    for (const e of this.log) if (e.version > from) this.send(w, e);
    const timer = setTimeout(() => res.end(), Number(r.query.timeoutSeconds ?? 300) * 1000);
    res.on('close', () => clearTimeout(timer));
  }

  tell(event) {
    this.log.push(event);
    for (const w of this.watches) this.send(w, event);
  }

  /** To a watch with a selector, an object that stops matching is deleted, and one that starts matching is added. */
  send(w, e) {
    if (e.resource !== w.resource || w.ended || w.res.writableEnded) return;
    const was = e.before && this.matches(w, e.before), is = e.type !== 'DELETED' && this.matches(w, e.object);
    if (!was && !is) return;
    const line = JSON.stringify({ type: is ? (was ? 'MODIFIED' : 'ADDED') : 'DELETED', object: e.object }) + '\n';
    const half = line.length >> 1; // chunks may end anywhere
    w.res.write(line.slice(0, half));
    w.res.write(line.slice(half));
  }

  bookmark() {
    for (const w of this.watches)
      if (w.query.allowWatchBookmarks && !w.ended && !w.res.writableEnded)
        w.res.write(JSON.stringify({ type: 'BOOKMARK', object: { metadata: { resourceVersion: String(this.version) } } }) + '\n');
  }
}

// ---- objects for tests

export const meta = (namespace, name, labels = {}) => ({ ...(namespace ? { namespace } : {}), name, labels });

export function pod(namespace, name, { ip = '', node = '', labels, ports = [6060], phase = 'Running' } = {}) {
  return {
    metadata: { ...meta(namespace, name, labels), managedFields: [{ manager: 'kubelet' }] },
    spec: { nodeName: node, containers: [{ name: 'main', image: 'main:1', ports: ports.map((p) => ({ containerPort: p, protocol: 'TCP' })) }] },
    status: { podIP: ip, hostIP: '10.0.0.1', phase, conditions: [{ type: 'Ready', status: 'True' }] },
  };
}

export function service(namespace, name, { ports = [80], labels } = {}) {
  return { metadata: meta(namespace, name, labels),
    spec: { type: 'ClusterIP', clusterIP: '10.96.0.1', ports: ports.map((p) => ({ name: `p${p}`, port: p, protocol: 'TCP' })) } };
}

const ref = (namespace, name) => ({ kind: 'Pod', namespace, name });

/** addresses: [ip, name of a pod or undefined] */
export function endpoints(namespace, name, addresses, port, labels) {
  return { metadata: meta(namespace, name, labels), subsets: [{
    addresses: addresses.map(([ip, p]) => ({ ip, ...(p ? { targetRef: ref(namespace, p) } : {}) })),
    ports: [{ port, protocol: 'TCP' }] }] };
}

export function slice(namespace, name, of, addresses, port) {
  return { metadata: meta(namespace, name, { 'kubernetes.io/service-name': of }), addressType: 'IPv4',
    endpoints: addresses.map(([ip, p]) => ({ addresses: [ip], conditions: { ready: true }, ...(p ? { targetRef: ref(namespace, p) } : {}) })),
    ports: [{ port, protocol: 'TCP' }] };
}

export function node(name, ip, labels) {
  return { metadata: meta('', name, labels), status: { addresses: [{ type: 'InternalIP', address: ip }],
    daemonEndpoints: { kubeletEndpoint: { Port: 10250 } }, conditions: [{ type: 'Ready', status: 'True' }] } };
}

export function ingress(namespace, name, hosts) {
  return { metadata: meta(namespace, name), spec: { rules: hosts.map((host) => ({ host, http: { paths: [{ path: '/' }] } })) } };
}

/** An object that another one controls: a replica set of a deployment, a job of a cron job. owner: [kind, name] */
export const owned = (object, [kind, name]) =>
  ({ ...object, metadata: { ...object.metadata,
    ownerReferences: [{ apiVersion: /Job/.test(kind) ? 'batch/v1' : 'apps/v1', kind, name, uid: `uid-of-${name}`, controller: true }] } });

export const namespace = (name, labels) => ({ metadata: meta('', name, labels) });
