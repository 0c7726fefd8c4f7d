// The questions about a directory of make.mjs, in words that every version knows. Answers are cut down to what does not depend
// on how a version writes them: stacks with their costs, points of a range, numbers, label sets, links.

const folded = (text) => text.split('\n').filter(Boolean).sort();
const points = (json) => json.data.result.map((r) => ({ metric: r.metric, values: r.values })).sort((a, b) =>
  (JSON.stringify(a.metric) < JSON.stringify(b.metric) ? -1 : 1));

function questions({ first, end, scraped, last, links }) {
  const range = (query, from, to, step) => [`query_range?query=${encodeURIComponent(query)}&start=${from}&end=${to}&step=${step}`, points];
  const stacks = (query, time) => [`query?query=${encodeURIComponent(query)}&time=${time}&format=folded`, folded];
  const all = {
    'the whole of a job': stacks('merge(cpu:samples{job="shop"}[3h])', end),
    'an hour of the other': stacks('merge(cpu{job="bank"}[1h])', first + 3600),
    'a part of an hour': stacks('merge(cpu{job="shop",pod="a"}[25m])', first + 5000),
    'by a label of samples': stacks('merge(cpu{job="shop",handler="/b"}[3h])', end),
    'a level': stacks('merge(memory:inuse_space{job="shop"}[2h])', end - 3600),
    'what was scraped': stacks('merge(memory:inuse_space{job="scraped"}[1m])', last),
    'costs over time': range('total(merge by (job, pod) (cpu[10m]))', first + 600, end, 600),
    'costs of a function by the hour': range('cum(merge by (job) (cpu[1h]), {function="shop.f3"})', first + 3600, end, 3600),
    'numbers': range('up{job="scraped"}', scraped, last, 1),
    'label sets': [`series?match[]=${encodeURIComponent('{job=~".+"}')}&start=${first}&end=${last}`,
      (json) => json.data.map((s) => JSON.stringify(Object.entries(s).sort())).sort()],
  };
  if (links) all['links'] = [`links?start=${first}&end=${last}&limit=10000`, (json) => (json.data.links ?? json.data).map((l) =>
    `${l.time} ${l.trace_id} ${l.span_id} ${l.function} ${Object.values(l.values)[0]}`).sort()];
  return all;
}

/** What a server answers, by question; an error or a warning is the answer. */
export async function answersOf(url, times) {
  const answers = {};
  for (const [name, [path, cut]] of Object.entries(questions(times))) {
    const res = await fetch(`${url}/api/v1/${path}`);
    const body = await res.text();
    const json = body.startsWith('{') ? JSON.parse(body) : null;
    const warnings = json?.warnings?.length ? json.warnings : res.headers.get('warning');
    if (warnings) answers[name] = { warnings };
    else answers[name] = res.ok ? cut(json ?? body) : body;
  }
  return answers;
}
