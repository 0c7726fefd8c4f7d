// Servers that speak the APIs of Consul, Nomad, Docker and EC2, as far as discovery asks them. Each has a `state` that a test
// may change; `changed()` ends the queries that wait for a change.
import http from 'node:http';
import { once } from 'node:events';
import { amzTime, canonicalRequest, sha256, signature } from '../s3_sign.mjs';

async function body(req) {
  const chunks = [];
  for await (const c of req) chunks.push(c);
  return Buffer.concat(chunks).toString();
}

/** answer(req, url, text) gives {status, headers, body}; a body that is no string is sent as JSON. `at`: a port or a path. */
async function serve(t, at, answer) {
  const fake = { seen: [], waiting: new Set(), index: 1 };
  const server = http.createServer(async (req, res) => {
    const text = await body(req);
    const url = new URL(req.url, 'http://fake');
    fake.seen.push(`${req.method} ${req.url}${text && ` ${text}`}`);
    const got = await answer(req, url, text);
    const json = typeof got.body !== 'string';
    res.writeHead(got.status ?? 200, { 'Content-Type': json ? 'application/json' : 'text/xml', ...got.headers });
    res.end(json ? JSON.stringify(got.body) : got.body);
  });
  server.listen(...(typeof at === 'string' ? [at] : [at, '127.0.0.1']));
  await once(server, 'listening');
  t.after(() => {
    fake.changed();
    server.closeAllConnections();
    server.close();
  });
  fake.changed = () => {
    fake.index++;
    for (const go of fake.waiting) go();
    fake.waiting.clear();
  };
  /** A blocking query: until something has changed since the index that the caller knows, or for `wait`. */
  fake.block = async (url) => {
    const known = Number(url.searchParams.get('index') ?? 0);
    if (known < fake.index) return;
    await new Promise((done) => {
      const ms = { ms: 1, s: 1000, m: 60000 };
      const [, n, unit] = /^(\d+)(ms|s|m)$/.exec(url.searchParams.get('wait') ?? '300s');
      setTimeout(done, n * ms[unit]).unref();
      fake.waiting.add(done);
    });
  };
  fake.address = typeof at === 'string' ? at : `127.0.0.1:${server.address().port}`;
  return fake;
}

/** state: {service: [instance]}; an instance has the form that /v1/health/service gives. */
export async function consul(t, state) {
  const tagged = (x, url) => url.searchParams.getAll('tag').every((tag) => (x.Service.Tags ?? []).includes(tag));
  const meta = (x, url) => url.searchParams.getAll('node-meta').every((pair) => {
    const [name, value] = pair.split(':');
    return x.Node.Meta?.[name] === value;
  });
  const fake = await serve(t, 0, async (req, url) => {
    if (url.pathname === '/v1/agent/self') return { body: { Config: { Datacenter: 'dc-self', NodeName: 'a' } } };
    await fake.block(url);
    const headers = { 'X-Consul-Index': String(fake.index) };
    if (url.pathname === '/v1/catalog/services') {
      const services = Object.entries(fake.state).map(([name, list]) => [name, list.filter((x) => meta(x, url))]).filter(([, list]) => list.length);
      return { headers, body: Object.fromEntries(services.map(([name, list]) => [name, [...new Set(list.flatMap((x) => x.Service.Tags ?? []))]])) };
    }
    const name = decodeURIComponent(url.pathname.replace('/v1/health/service/', ''));
    return { headers, body: (fake.state[name] ?? []).filter((x) => tagged(x, url) && meta(x, url)) };
  });
  fake.state = state;
  return fake;
}

/** state: [instance], as /v1/service/NAME gives them. */
export async function nomad(t, state) {
  const fake = await serve(t, 0, async (req, url) => {
    await fake.block(url);
    const headers = { 'X-Nomad-Index': String(fake.index) };
    const of = fake.state.filter((x) => x.Namespace === url.searchParams.get('namespace'));
    const names = [...new Set(of.map((x) => x.ServiceName))];
    if (url.pathname === '/v1/services') {
      const Services = names.map((ServiceName) => ({ ServiceName, Tags: of.filter((x) => x.ServiceName === ServiceName).flatMap((x) => x.Tags ?? []) }));
      return { headers, body: names.length ? [{ Namespace: url.searchParams.get('namespace'), Services }] : [] };
    }
    return { headers, body: of.filter((x) => x.ServiceName === decodeURIComponent(url.pathname.replace('/v1/service/', ''))) };
  });
  fake.state = state;
  return fake;
}

/** state: {containers, networks}. Filters by label are followed. `at`: 0 for a port, or a socket's path. */
export async function docker(t, at, state) {
  const fake = await serve(t, at, (req, url) => {
    const headers = { 'Api-Version': '1.44', 'Ostype': 'linux', 'Server': 'Docker/25.0.0 (linux)' };
    const path = url.pathname.replace(/^\/v1\.\d+/, '');
    if (path === '/_ping') return { headers, body: 'OK' };
    if (path === '/networks') return { headers, body: fake.state.networks };
    const filters = JSON.parse(url.searchParams.get('filters') ?? '{}');
    const labels = Object.keys(filters.label ?? {}).map((x) => x.split('='));
    return { headers, body: fake.state.containers.filter((c) => labels.every(([k, v]) => c.Labels?.[k] === v)) };
  });
  fake.state = state;
  return fake;
}

const xml = (value) => (Array.isArray(value) ? value.map((x) => `<item>${xml(x)}</item>`).join('') :
  typeof value === 'object' ? Object.entries(value).map(([k, v]) => `<${k}>${xml(v)}</${k}>`).join('') :
    String(value).replace(/[<>&]/g, (c) => `&#${c.charCodeAt(0)};`));
const answerOf = (action, value) => `<?xml version="1.0" encoding="UTF-8"?>
<${action}Response xmlns="http://ec2.amazonaws.com/doc/2016-11-15/"><requestId>r</requestId>${xml(value)}</${action}Response>`;

/** The metadata of an instance in a region, whose role has these keys; undefined: another path. Only with a token. */
function metadata(req, url, region, role) {
  if (!url.pathname.startsWith('/latest/')) return undefined;
  if (url.pathname === '/latest/api/token')
    return req.method === 'PUT' ? { headers: { 'X-Aws-Ec2-Metadata-Token-Ttl-Seconds': '21600' }, body: 'metadata-token' } : { status: 405, body: '' };
  if (req.headers['x-aws-ec2-metadata-token'] !== 'metadata-token') return { status: 401, body: '' };
  const Expiration = new Date(Date.now() + 3600000).toISOString();
  const known = {
    '/latest/meta-data/placement/region': region, '/latest/dynamic/instance-identity/document': { region },
    '/latest/meta-data/iam/security-credentials/': 'role-1',
    '/latest/meta-data/iam/security-credentials/role-1': { Code: 'Success', Type: 'AWS-HMAC', ...role, Expiration },
  };
  return url.pathname in known ? { body: known[url.pathname] } : { status: 404, body: '' };
}

/**
 * state: {zones, reservations}; keys: {accessKey: secretKey}. Signatures are verified; pages have two reservations. It is the
 * metadata of an instance too, whose role has the key INSTANCE, and the token service, which gives the key ROLE.
 */
export async function ec2(t, state, keys) {
  const refuse = (status, code, message) => ({ status, body: `<Response><Errors><Error><Code>${code}</Code><Message>${message}</Message></Error></Errors></Response>` });
  const tokens = { INSTANCE: 'instance-token', ROLE: 'role-token' };
  const fake = await serve(t, 0, (req, url, text) => {
    const local = metadata(req, url, 'eu-central-1', { AccessKeyId: 'INSTANCE', SecretAccessKey: keys.INSTANCE, Token: tokens.INSTANCE });
    if (local) return local;
    const m = /^AWS4-HMAC-SHA256 Credential=([^/]+)\/([^,]+), ?SignedHeaders=([^,]+), ?Signature=([0-9a-f]{64})$/.exec(req.headers.authorization ?? '');
    if (!m) return refuse(401, 'AuthFailure', 'The request is not signed');
    const [, accessKey, scope, names, given] = m;
    const time = req.headers['x-amz-date'];
    const canonical = canonicalRequest({ method: req.method, path: url.pathname, query: [], headers: req.headers, signed: names.split(';'), payloadHash: sha256(text) });
    const wanted = signature({ secretKey: keys[accessKey], time, scope, canonical });
    if (given !== wanted) return refuse(403, 'SignatureDoesNotMatch', 'The signature does not match');
    if (Math.abs(Date.now() - Date.parse(time.replace(/(....)(..)(..)T(..)(..)(..)Z/, '$1-$2-$3T$4:$5:$6Z'))) > 300000)
      return refuse(400, 'RequestExpired', `It is ${amzTime(Date.now())}`);
    if (req.headers['x-amz-security-token'] !== tokens[accessKey]) return refuse(403, 'InvalidClientTokenId', 'The token is not valid');
    fake.scopes.add(scope.split('/').slice(1).join('/'));
    const form = new URLSearchParams(text);
    if (form.get('Action') === 'AssumeRole') {
      fake.assumed = `${form.get('RoleArn')} ${form.get('ExternalId')} ${accessKey}`;
      return { body: `<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult>${xml({ Credentials: {
        AccessKeyId: 'ROLE', SecretAccessKey: keys.ROLE, SessionToken: tokens.ROLE, Expiration: new Date(Date.now() + 3600000).toISOString() } })}` +
        '</AssumeRoleResult></AssumeRoleResponse>' };
    }
    if (form.get('Action') === 'DescribeAvailabilityZones')
      return fake.state.zones ? { body: answerOf('DescribeAvailabilityZones', { availabilityZoneInfo: fake.state.zones }) } :
        refuse(403, 'UnauthorizedOperation', 'You are not authorized');
    const values = [...form].filter(([k]) => /^Filter\.1\.Value\./.test(k)).map(([, v]) => v);
    const all = fake.state.reservations.filter((r) => !values.length || r.instancesSet.some((i) => values.includes(i.instanceState?.name)));
    const from = Number(form.get('NextToken') ?? 0);
    const more = from + 2 < all.length ? { nextToken: String(from + 2) } : {};
    return { body: answerOf('DescribeInstances', { reservationSet: all.slice(from, from + 2), ...more }) };
  });
  fake.state = state;
  fake.scopes = new Set();
  return fake;
}
