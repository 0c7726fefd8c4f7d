// Keys that stand in a configuration, in every place they may stand: none is ever shown, whoever is asked.
import test from 'node:test';
import assert from 'node:assert/strict';
import http from 'node:http';
import { api, epitool, finish, join, request, scratch, startServer, targets, until, writeFileSync } from './lib.mjs';

const SECRET = 'S3CRET';

/** A server that takes what carries the key: targets by http_sd, and an empty answer for the rest. */
async function openPeer(t) {
  const seen = [];
  const server = http.createServer((req, res) => {
    seen.push(req.url);
    if (req.url.startsWith('/sd')) {
      res.setHeader('Content-Type', 'application/json');
      res.end(JSON.stringify([{ targets: [`127.0.0.1:${server.address().port}`], labels: { found: 'here' } }]));
    } else if (req.url.startsWith('/broken')) {
      res.setHeader('Content-Type', 'application/json');
      res.end('{"not": "a list"}');
    } else {
      res.statusCode = req.url.startsWith('/api/v2') ? 400 : 503;
      res.end('no');
    }
  });
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  t.after(() => server.close());
  return { seen, address: `127.0.0.1:${server.address().port}` };
}

const config = (peer) => `
global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: [rules.yml]
alerting:
  alertmanagers:
  - basic_auth: {username: u, password: ${SECRET}}
    static_configs: [{targets: ['${peer}']}]
  - static_configs: [{targets: ['u:${SECRET}@${peer}']}]
scrape_configs:
- job_name: found
  params: {token: [${SECRET}], seconds: ['1'], debug: ['1']}
  http_sd_configs:
  - {url: 'http://${peer}/sd?key=${SECRET}', refresh_interval: 1s}
  - {url: 'http://${peer}/broken?key=${SECRET}&seconds=1', refresh_interval: 1s}
- job_name: apis
  consul_sd_configs: [{server: '${peer}', scheme: http, token: ${SECRET}, username: u, password: ${SECRET}}]
  ec2_sd_configs: [{region: r, endpoint: 'http://${peer}', access_key: a, secret_key: ${SECRET}}]
  nomad_sd_configs: [{server: 'http://${peer}', http_headers: {X-Nomad-Token: {secrets: [${SECRET}]}}}]
- job_name: static
  basic_auth: {username: u, password: ${SECRET}}
  static_configs:
  - {targets: ['${peer}'], labels: {__param_token: ${SECRET}}}
  - {targets: ['${peer}'], labels: {__param_token: ${SECRET}2}}
  - {targets: ['${peer}'], labels: {pod: dropped, __param_token: ${SECRET}}}
  relabel_configs:
  - {source_labels: [pod], regex: dropped, action: drop}
  - {target_label: __param_auth, replacement: ${SECRET}}
  profiling_config:
    pprof_config: {memory: {params: {key: [${SECRET}]}}}
- job_name: way
  proxy_url: 'http://u:${SECRET}@${peer}'
  no_proxy: nothing.example
  proxy_connect_header: {X-Key: [${SECRET}]}
  oauth2:
    client_id: me
    client_secret: ${SECRET}
    token_url: 'http://${peer}/token?key=${SECRET}'
    endpoint_params: {key: ${SECRET}}
    proxy_url: 'http://u:${SECRET}@${peer}'
  static_configs: [{targets: ['${peer}']}]
- job_name: user
  static_configs: [{targets: ['u:${SECRET}@${peer}']}]
`;

function clean(what, text) {
  const at = text.indexOf(SECRET);
  assert.ok(at < 0, `${what}: ...${text.slice(Math.max(0, at - 200), at + 40)}...`);
}

test('no key of a configuration is shown', async (t) => {
  const dir = scratch(t), peer = await openPeer(t);
  writeFileSync(join(dir, 'rules.yml'), 'groups: [{name: a, rules: [{alert: Always, expr: vector(1)}]}]\n');
  const server = await startServer(t, { dir, config: config(peer.address),
    args: ['--log.level=debug', '--web.enable-admin-api', '--web.enable-lifecycle'] });
  await until('targets were asked, with their keys', 30, async () => {
    const asked = (re) => peer.seen.some((url) => re.test(url));
    return asked(/profile\?.*token=S3CRET&?/) && asked(/auth=S3CRET/) && asked(/^\/sd\?key=S3CRET/) && asked(/^\/broken\?key=S3CRET/) &&
      asked(/key=S3CRET/) && (await targets(server)).some((x) => x.health === 'down' && x.scrapePool === 'found');
  });
  await until('APIs were asked', 20, async () => ['/v1/agent/self', '/v1/services?', '/'].every((path) => peer.seen.some((url) => url.startsWith(path))));
  await until('alerts were sent', 20, async () => peer.seen.some((url) => url.startsWith('/api/v2/alerts')));

  const shown = await api(server, 'targets');
  const found = shown.activeTargets.find((x) => x.scrapePool === 'found' && x.profile === 'process_cpu');
  assert.equal(found.scrapeUrl, `http://${peer.address}/debug/pprof/profile?debug=1&seconds=1&token=xxxxx`);
  assert.equal(found.discoveredLabels.__param_token, '<secret>');
  assert.equal(found.discoveredLabels.__param_seconds, '1');
  assert.equal(found.discoveredLabels.__meta_url, `http://${peer.address}/sd?key=xxxxx`);
  assert.ok(shown.droppedTargets.length > 0);
  const way = shown.activeTargets.find((x) => x.scrapePool === 'way');
  const problem = /^oauth2: cannot fetch token from http:\/\/127.*\/token\?key=xxxxx: server returned HTTP status 503/;
  await until('its error', 20, async () => (await targets(server)).some((x) => x.scrapeUrl === way.scrapeUrl && problem.test(x.lastError)));
  const yaml = (await api(server, 'status/config')).yaml;
  assert.match(yaml, /params:\n +token: \[<secret>\]\n +seconds:\n +- "1"/);
  assert.match(yaml, new RegExp(`url: "?http://${peer.address}/sd\\?key=xxxxx`));
  assert.match(yaml, /xxxxx@127\.0\.0\.1/);

  for (const path of ['/api/v1/targets', '/api/v1/targets?state=dropped', '/api/v1/status/config', '/api/v1/status/flags', '/api/v1/status/runtimeinfo',
    '/api/v1/alertmanagers', '/api/v1/alerts', '/api/v1/rules', '/api/v1/scrape_pools', '/api/v1/labels', '/api/v1/series?match[]={job!=""}',
    '/metrics', '/federate?match[]=up', '/targets', '/config'])
    clean(path, (await request(server.url + path)).body.toString());
  for (const x of [...shown.activeTargets, ...shown.droppedTargets]) {
    const steps = await request(`${server.url}/api/v1/targets/relabel_steps?${new URLSearchParams({ scrapePool: x.scrapePool,
      labels: JSON.stringify({ ...x.discoveredLabels, __param_token: SECRET }) })}`);
    clean('relabel_steps', steps.body.toString());
  }
  // A target is named by the URL that is shown, too.
  const order = await request(`${server.url}/api/v1/targets/profile?${new URLSearchParams({ scrapeUrl: found.scrapeUrl, scrapePool: 'found' })}`,
    { method: 'POST' });
  assert.match(order.body.toString(), /503|server returned/);
  clean('profile now', order.body.toString());

  writeFileSync(join(dir, 'epimetheus.yml'), config(peer.address).replace("found\n", `found\n  params: {a: {b: ${SECRET}}}\n`));
  const reload = await request(`${server.url}/-/reload`, { method: 'POST' });
  assert.equal(reload.status, 500);
  clean('reload', reload.body.toString());
  writeFileSync(join(dir, 'wrong.yml'), `scrape_configs: [{job_name: a, http_sd_configs: [{url: 'http://u:${SECRET}@h/?a=${SECRET}'}]}]\n`);
  for (const file of ['epimetheus.yml', 'wrong.yml']) {
    const check = await finish(t, epitool, ['check', 'config', join(dir, file)]);
    assert.notEqual(check.code, 0);
    clean('check config', check.out + check.err);
  }
  clean('log', server.out + server.err);
  await server.stop();
  clean('log at the end', server.out + server.err);
});
