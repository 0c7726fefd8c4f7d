// A client whose types openapi-typescript makes of the server's description: ten calls, each checked by the compiler too.
// client.js URL END [TOKEN]; prints what it got.
import createClient from 'openapi-fetch';
import type { paths } from './api.js';

declare const process: { argv: string[] };
const [baseUrl, end] = [process.argv[2]!, Number(process.argv[3])];
const client = createClient<paths, 'application/json'>({ baseUrl });

/** The data of an answer; an error of the API is thrown. */
async function data<T>(call: Promise<{ data?: { status: 'success'; data: T }; error?: unknown }>): Promise<T> {
  const { data: answer, error } = await call;
  if (!answer) throw new Error(JSON.stringify(error));
  return answer.data;
}

const out: Record<string, unknown> = {};
const top = await data(client.GET('/api/v1/query', { params: { query: { query: 'top(2, cpu{job="demo"})', time: end } } }));
if (top.resultType === 'top') out.top = top.result.map((t) => t.rows.map((r) => r.function));
const flame = await data(client.GET('/api/v1/query', { params: { query: { query: 'merge(cpu{job="demo"})', time: end, max_nodes: 4 } } }));
if (flame.resultType === 'profiles') out.flame = flame.result[0]?.flamebearer.names;
const range = await data(client.GET('/api/v1/query_range',
  { params: { query: { query: 'sum(total(cpu{job="demo"}))', start: end - 10, end, step: '5s' } } }));
if (range.resultType === 'matrix') out.points = range.result[0]?.values.length;
out.series = (await data(client.GET('/api/v1/series', { params: { query: { 'match[]': ['cpu', 'memory'] } } }))).map((s) => s.__name__);
out.jobs = await data(client.GET('/api/v1/label/{name}/values', { params: { path: { name: 'job' } } }));
out.targets = (await data(client.GET('/api/v1/targets', { params: { query: { state: 'active' } } }))).activeTargets.map((t) => t.health);
out.groups = (await data(client.GET('/api/v1/rules', { params: { query: { 'rule_name[]': ['CpuIsUsed'] } } }))).groups
  .flatMap((g) => g.rules.map((r) => r.type));
out.version = (await data(client.GET('/api/v1/status/buildinfo'))).version;
const refused = await client.GET('/api/v1/query', { params: { query: { query: 'top(' } } });
const error = refused.error;
out.refused = [refused.response.status, typeof error === 'object' && 'errorType' in error ? error.errorType : error];
out.accepted = (await data(client.POST('/api/v1/admin/tsdb/accept_losses', {}))).accepted;
console.log(JSON.stringify(out));
