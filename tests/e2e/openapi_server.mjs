// A server with something for every operation of the API: two versions of the demo, itself, rules, an Alertmanager that
// is not there, a pushed profile, a kept file.
import { buildDemo, recordedCpu, request, scratch, settled, startDemo, startServer, targets, until, writeFileSync, join } from './lib.mjs';

const rules = {
  groups: [{
    name: 'shop', interval: '1s', rules: [
      { record: 'job:cpu:rate', expr: 'sum by (version) (total(cpu{job="demo"}))' },
      { alert: 'CpuIsUsed', expr: 'sum(total(cpu{job="demo"})) > 0', for: '1h', labels: { severity: 'page' },
        annotations: { summary: 'the demo uses {{ $value }}' } },
    ],
  }],
};

export async function startFullServer(t) {
  const dir = scratch(t);
  buildDemo();
  const demos = [await startDemo(t, 'v1', 'none'), await startDemo(t, 'v2', 'parsePrices')];
  writeFileSync(join(dir, 'rules.yml'), JSON.stringify(rules));
  const server = await startServer(t, {
    dir,
    args: ['--web.enable-ingest', '--web.enable-admin-api', '--web.enable-lifecycle', '--web.enable-files', '--web.enable-mcp'],
    config: JSON.stringify({
      global: { scrape_interval: '2s', scrape_timeout: '2s' },
      rule_files: ['rules.yml'],
      source_links: [{ path: '/src/(?P<file>.+)', labels: { version: '(?P<tag>.+)' },
        template: 'https://git.example.org/shop/blob/${tag}/${file}#L${line}' }],
      alerting: { alertmanagers: [{ static_configs: [{ targets: ['127.0.0.1:1'] }] }] },
      scrape_configs: [
        { job_name: 'demo', static_configs: demos.map((d, i) => ({ targets: [d.address], labels: { version: `v${i + 1}` } })) },
      ],
    }),
  });
  // At the end of a second scrape the first one is there.
  const isCpu = (x) => x.profile === 'process_cpu';
  await until('each process was scraped twice', 60, async () => {
    const cpu = (await targets(server)).filter(isCpu);
    return cpu.length === demos.length && cpu.every((x) => x.scrapes > 1);
  });
  const end = await settled(server, isCpu);
  const pushed = await request(`${server.url}/api/v1/ingest?name=cpu&job=batch&interval=10s&time=${Date.now() / 1000}`,
    { method: 'POST', body: recordedCpu() });
  if (pushed.status !== 200) throw new Error(pushed.body.toString());
  const kept = await request(`${server.url}/api/v1/files?name=cpu.pb.gz&keep=1h`, { method: 'POST', body: recordedCpu() });
  if (kept.status !== 200) throw new Error(kept.body.toString());
  return { ...server, end, dir, file: JSON.parse(kept.body).data.id, demos };
}
