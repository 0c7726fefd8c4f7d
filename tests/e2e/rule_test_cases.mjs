// Files of `test rules` for both promtool and epitool: [name, rules, test, difference]. Without a difference, exit code and
// output are the same. With one ('words'), only the exit code is the same.
const down = `
groups:
- name: g
  interval: 1m
  rules:
  - record: job:up:sum
    expr: sum by (job) (up)
  - alert: Down
    expr: up == 0
    for: 5m
    labels: {severity: page}
    annotations: {summary: "{{ $labels.instance }} of {{ $labels.job }} is down: {{ $value }}"}
`;

const series = `
  input_series:
  - {series: 'up{job="p", instance="a"}', values: '0x20'}
  - {series: 'up{job="q", instance="b"}', values: '1x5 0x15'}
`;

const firing = (job, instance) =>
  `{exp_labels: {severity: page, instance: ${instance}, job: ${job}}, exp_annotations: {summary: "${instance} of ${job} is down: 0"}}`;

/** Alerts at a time: '10m', name, items. */
const alerts = (time, name, ...items) => `
  alert_rule_test:
  - {eval_time: ${time}, alertname: ${name}, exp_alerts: [${items.join(', ')}]}
`;

const exprs = (...items) => `
  promql_expr_test:
${items.map(([expr, time, ...samples]) => `  - expr: '${expr}'
    eval_time: ${time}
    exp_samples: [${samples.map(([labels, value]) => `{labels: '${labels}', value: ${value}}`).join(', ')}]
`).join('')}`;

const file = (...tests) => `rule_files: [rules.yml]
tests:
${tests.map((x) => `- interval: 1m\n${x}`).join('')}`;

/** Values of a series, one per minute: [values, expected at minute 0, 1, ...]; undefined if there is none. */
const values = (text, ...expected) => file(`
  input_series: [{series: 'x{a="b"}', values: '${text}'}]
${exprs(...expected.map((v, i) => ['x', `${i}m`, ...(v === undefined ? [] : [['x{a="b"}', v]])]))}`);

const expansions = [
  ['1', 1, 1],
  ['1 2 3', 1, 2, 3],
  ['1x2 7', 1, 1, 1, 7],
  ['1+2x3 0', 1, 3, 5, 7, 0],
  ['10-2x2', 10, 8, 6],
  ['-1-1x2', -1, -2, -3],
  ['+1+1x1', 1, 2],
  ['_x2 5', undefined, undefined, 5],
  ['_ 5', undefined, 5],
  ['1 stale 2', 1, undefined, 2],
  ['1 _ _ _ _ _', 1, 1, 1, 1, 1],
  ['_ 1 _ _ _ _ _ _', undefined, 1, 1, 1, 1, 1],
  ['0+0.1x3', 0, 0.1, 0.2, 0.30000000000000004],
  ['1e3 1e-3 .5 2.', 1000, 0.001, 0.5, 2],
  ['Inf -Inf +Inf', '.inf', '-.inf', '.inf'],
  ['0x3', 0, 0, 0, 0],
  ['_x0 4', 4],
  ['1x0 2', 1, 2],
];

const wrongValues = ['1y', '1+2', '1x', 'x3', '--1', '1x-1', 'stalex2', '1 2,3', '1+x3'];

// Numbers for the expressions below, each 10 s; these are asked between two of them, because windows of Debian's Prometheus
// (2.42) have both ends, and ours, as in 3, leave out the beginning. For that no window and no subquery begins at a sample
// or a step either; and `atan2` does not keep the name, as it did before 3.
const numbers = `
  input_series:
  - {series: 'hits_total{job="a"}', values: '0+3x40'}
  - {series: 'hits_total{job="b"}', values: '0+3x10 5+7x29'}
  - {series: 'hits_total{job="c"}', values: '_x5 8 _ _ 20 _ 23x20 stale'}
  - {series: 'level{job="a"}', values: '1 4 2 8 5 7 1 4 2 8 5 7 1 4 2 8 5 7 1 4 2 8 5 7 1 4 2 8 5 7 1 4 2 8 5 7 1 4 2 8'}
  - {series: 'level{job="b"}', values: '64-1.5x40'}
  - {series: 'when{job="a"}', values: '1709210096x40'}
`;

const expressions = [
  ...['rate', 'increase', 'delta', 'irate', 'idelta', 'deriv', 'resets', 'changes'].flatMap((f) =>
    ['hits_total[2m]', 'hits_total[5m]', 'hits_total[27s]', 'level[97s] offset 1m', 'hits_total[2m] @ 125', 'hits_total[4m:20s]',
      'level[184s:15s] offset -30s'].map((w) => `${f}(${w})`)),
  ...['sum', 'avg', 'min', 'max', 'count', 'last', 'stddev', 'stdvar', 'present', 'absent'].flatMap((f) =>
    ['hits_total[1m]', 'level[2m]', 'level[2m:30s]', 'nothing[1m:10s]'].map((w) => `${f}_over_time(${w})`)),
  'quantile_over_time(0.25, level[2m])', 'predict_linear(level{job="b"}[2m], 600)', 'predict_linear(level{job="b"}[2m:20s], -60)',
  'holt_winters(level[2m], 0.5, 0.25)', 'max_over_time(rate(hits_total[55s])[3m:30s])', 'rate(hits_total[170s:])',
  'min_over_time(sum(level)[2m:20s]) + max_over_time(sum_over_time(level[55s:20s])[2m:40s])', 'sum(rate(hits_total[1m])) by (job)',
  'avg_over_time((level > 3)[2m:10s])', 'count_over_time((hits_total > bool 20)[2m:11s])', 'sum_over_time(vector(2)[1m:7s])',
  'timestamp(level)', 'timestamp(level offset 42s)', 'time() - timestamp(level)', 'pi()', 'floor(deg(vector(pi())))', 'sgn(-level)',
  ...['minute', 'hour', 'day_of_week', 'day_of_month', 'day_of_year', 'days_in_month', 'month', 'year'].flatMap((f) =>
    [`${f}(when)`, `${f}()`, `${f}(vector(-86400))`]),
  '(level + 0) atan2 0', 'floor(level atan2 on (job) hits_total * 1000)', 'round(sin(level), 0.001)', 'round(cosh(level{job="a"}), 0.01)',
  'level / on (job) hits_total', 'topk(1, rate(hits_total[1m]))', 'absent(rate(nothing[1m]))', 'stdvar(level)', 'sqrt(level) > bool 2',
];

export const cases = [
  // Nothing is expected, so both say what they got.
  ...Array.from({ length: Math.ceil(expressions.length / 12) }, (_, i) => [`expressions ${i}`, down, `evaluation_interval: 45s
${file(`${numbers}
  promql_expr_test:
${expressions.slice(i * 12, i * 12 + 12).map((expr) => `  - {expr: '${expr}', eval_time: 3m45s, exp_samples: []}`).join('\n')}
`).replace('interval: 1m', 'interval: 10s')}`]),
  ...expansions.map(([text, ...expected]) => [`values ${text}`, down, values(text, ...expected)]),
  ...expansions.slice(0, 8).map(([text]) => [`values ${text} are not 99`, down, values(text, 99)]),
  ...wrongValues.map((text) => [`values ${text}`, down, values(text, 1), 'words']),

  ['nothing', down, ''],
  ['no tests', down, 'rule_files: [rules.yml]\n'],
  ['no rules', down, 'tests:\n- interval: 1m\n'],
  ['pending yet', down, file(series + alerts('4m', 'Down'))],
  ['fires after for', down, file(series + alerts('5m', 'Down', firing('p', 'a')))],
  ['between evaluations the one before counts', down, file(series + alerts('5m30s', 'Down', firing('p', 'a')))],
  ['two fire, in any order', down, file(series + alerts('15m', 'Down', firing('q', 'b'), firing('p', 'a')))],
  ['one is missing', down, file(series + alerts('15m', 'Down', firing('q', 'b')))],
  ['none is expected', down, file(series + alerts('15m', 'Down'))],
  ['one too many', down, file(series + alerts('5m', 'Down', firing('p', 'a'), firing('q', 'b')))],
  ['another label', down, file(series + alerts('5m', 'Down', firing('p', 'c')))],
  ['alertname may be written', down, file(series + alerts('5m', 'Down',
    '{exp_labels: {alertname: Down, severity: page, instance: a, job: p}, exp_annotations: {summary: "a of p is down: 0"}}'))],
  ['annotations count', down, file(series + alerts('5m', 'Down', '{exp_labels: {severity: page, instance: a, job: p}}'))],
  ['an alert that no rule has', down, file(series + alerts('5m', 'Nonesuch'))],
  ['an alert that no rule has, expected', down, file(series + alerts('5m', 'Nonesuch', firing('p', 'a')))],
  ['no alertname', down, file(series + '  alert_rule_test: [{eval_time: 5m}]\n'), 'words'],
  ['named tests', down, file(`  name: the first\n${series}${alerts('15m', 'Down')}`)],
  ['recorded values', down, file(series + exprs(['job:up:sum', '8m', ['job:up:sum{job="p"}', 0], ['job:up:sum{job="q"}', 0]]))],
  ['recorded values, wrong', down, file(series + exprs(['job:up:sum', '4m', ['job:up:sum{job="p"}', 0], ['job:up:sum{job="q"}', 2]]))],
  ['nothing recorded is nil', down, file(series + exprs(['job:up:nonesuch', '4m', ['job:up:sum{job="p"}', 0]]))],
  ['nothing expected is nil', down, file(series + exprs(['job:up:sum', '4m']))],
  ['labels in any order, trailing commas', down, file(series + exprs(['up', '4m', ['up{instance="a",job="p",}', 0], ['up{job="q",instance="b"}', 1]]))],
  ['ALERTS', down, file(series + exprs(['ALERTS', '8m',
    ['ALERTS{alertname="Down",alertstate="firing",instance="a",job="p",severity="page"}', 1],
    ['ALERTS{alertname="Down",alertstate="pending",instance="b",job="q",severity="page"}', 1]]))],
  ['ALERTS_FOR_STATE', down, file(series + exprs(['ALERTS_FOR_STATE', '8m',
    ['ALERTS_FOR_STATE{alertname="Down",instance="a",job="p",severity="page"}', 0],
    ['ALERTS_FOR_STATE{alertname="Down",instance="b",job="q",severity="page"}', 360]]))],
  ['pending becomes firing: the old series ends', down, file(series + exprs(['ALERTS{alertstate="pending"}', '5m']))],
  ['a scalar is one sample', down, file(series + exprs(['1 + 1', '1m', ['{}', 2]]))],
  ['time', down, file(series + exprs(['time()', '2m', ['{}', 120]]))],
  ['a string is none', down, file(series + exprs(['"x"', '1m', ['{}', 2]])), 'words'],
  ['a comparison', down, file(series + exprs(['up < 1', '7m', ['up{job="p", instance="a"}', 0], ['up{job="q", instance="b"}', 0]]))],
  ['labels that do not parse', down, file(series + exprs(['up', '1m', ['up{job=', 2]])), 'words'],
  ['an expression that does not parse', down, file(series + exprs(['up{', '1m', ['up', 2]])), 'words'],
  // Debian's windows have both ends, as before 3.
  ['values over a window, without its beginning', down, file(series + exprs(['count_over_time(up[299s])', '5m',
    ['{job="p", instance="a"}', 5], ['{job="q", instance="b"}', 5]]))],
  ['offset', down, file(series + exprs(['up offset 3m', '8m', ['up{job="p", instance="a"}', 0], ['up{job="q", instance="b"}', 1]]))],
  ['two tests, one fails', down, file(series + alerts('5m', 'Down', firing('p', 'a')), series + alerts('15m', 'Down'))],
  ['two tests share nothing', down, file(series, exprs(['up', '1m'], ['job:up:sum', '1m']))],
  ['an evaluation interval of 30s', down, `evaluation_interval: 30s\n${file(series + alerts('5m', 'Down', firing('p', 'a')))}`],
  ['an evaluation interval of 2m: for passes at 6m', down, `evaluation_interval: 2m\n${file(series + alerts('5m', 'Down'))}`],
  ['values each 30s', down, file(series + exprs(['up', '4m', ['up{job="p", instance="a"}', 0], ['up{job="q", instance="b"}', 0]])).replace('interval: 1m', 'interval: 30s')],

  ['unknown field', down, `nonesuch: 1\n${file(series)}`, 'words'],
  ['unknown field of a test', down, file(`  nonesuch: 1\n${series}`), 'words'],
  ['unknown field of a sample', down, file('  promql_expr_test: [{expr: up, exp_samples: [{label: x}]}]\n'), 'words'],
  ['a duration without a unit', down, file(series + '  alert_rule_test: [{eval_time: 5, alertname: Down}]\n'), 'words'],
  ['a value that is no number', down, file(series + exprs(['up', '1m', ['up', 'x']])), 'words'],
  ['no list', down, 'tests: 1\n', 'words'],
  ['no YAML', down, 'tests: [\n', 'words'],
  ['rule file that does not parse', 'groups: [{name: g, rules: [{alert: A, expr: "up{"}]}]', file(series), 'words'],
  ['rule file that is not there', down, file(series).replace('rules.yml', 'nonesuch.yml')],
  ['rule file by pattern', down, file(series + alerts('5m', 'Down', firing('p', 'a'))).replace('rules.yml', 'rul*.yml')],
  ['a group twice in the order', down, `group_eval_order: [g, g]\n${file(series)}`, 'words'],

  ['groups in their order', `
groups:
- {name: second, rules: [{record: two, expr: one * 2}]}
- {name: first, rules: [{record: one, expr: x + 1}]}
`, `group_eval_order: [first, second]\n${file(`
  input_series: [{series: x, values: 0+1x10}]
${exprs(['two', '3m', ['two', 8]], ['two', '0m', ['two', 2]])}`)}`],
  ['rules see what those before them wrote', `
groups:
- name: g
  rules:
  - {record: one, expr: x + 1}
  - {record: two, expr: one * 2, labels: {from: one}}
  - {alert: Two, expr: two > 5, labels: {level: "{{ $value }}"}}
`, file(`
  input_series: [{series: x, values: 0+1x10}]
${exprs(['two', '1m', ['two{from="one"}', 4]])}${alerts('3m', 'Two', '{exp_labels: {from: one, level: 8}}')}`)],
  ['recorded series end with what they are made of', `
groups: [{name: g, rules: [{record: low, expr: x < 3}]}]
`, file(`
  input_series: [{series: x, values: 0+1x10}]
${exprs(['low', '2m', ['low', 2]], ['low', '3m'])}`)],
  ['keeps the alert while it goes on', `
groups: [{name: g, rules: [{alert: A, expr: x > 3, annotations: {v: "{{ $value }}"}}]}]
`, file(`
  input_series: [{series: x, values: 0+1x5 0x5 9}]
${alerts('5m', 'A', '{exp_annotations: {v: 5}}')}  - {eval_time: 7m, alertname: A}
  - {eval_time: 11m, alertname: A, exp_alerts: [{exp_annotations: {v: 9}}]}\n`)],
  ['external labels', `
groups:
- name: g
  rules:
  - alert: A
    expr: x
    annotations: {region: "{{ $externalLabels.region }}"}
`, file(`
  external_labels: {region: eu}
  external_url: http://here:9090
  input_series: [{series: x, values: 1x5}]
${alerts('1m', 'A', '{exp_annotations: {region: eu}}')}`)],
  ['templates', `
groups:
- name: g
  rules:
  - alert: A
    expr: x
    annotations:
      a: '{{ humanize $value }} {{ humanizeDuration $value }} {{ printf "%.2f" $value }} {{ title "abc" }}'
      b: '{{ with query "sum(x)" }}{{ . | first | value }}{{ end }}'
      c: '{{ range query "x" }}{{ .Labels.a }}={{ .Value }};{{ end }}'
`, file(`
  input_series: [{series: 'x{a="1"}', values: 1234x5}]
${alerts('1m', 'A', '{exp_labels: {a: 1}, exp_annotations: {a: 1.234k 20m 34s 1234.00 Abc, b: 1234, c: 1=1234;}}')}`)],
  ['one alert of two groups', `
groups:
- {name: g, rules: [{alert: A, expr: x > 0, labels: {of: g}}]}
- {name: h, rules: [{alert: A, expr: x > 1, labels: {of: h}}]}
`, file(`
  input_series: [{series: x, values: 0 1 2}]
${alerts('1m', 'A', '{exp_labels: {of: g}}')}  - {eval_time: 2m, alertname: A, exp_alerts: [{exp_labels: {of: g}}, {exp_labels: {of: h}}]}\n`)],
  ['a rule that fails ends the test', `
groups: [{name: g, rules: [{record: r, expr: 'x * on (a) y'}]}]
`, file(`
  input_series: [{series: 'x{a="1", b="1"}', values: 1x5}, {series: 'x{a="1", b="2"}', values: 1x5}, {series: 'y{a="1"}', values: 1x5}]
${exprs(['r', '1m'])}`), 'words'],
  ['two elements of one label set', `
groups: [{name: g, rules: [{record: r, expr: x, labels: {b: c}}]}]
`, file(`
  input_series: [{series: 'x{b="1"}', values: 1x5}, {series: 'x{b="2"}', values: 1x5}]
${exprs(['r', '1m'])}`), 'words'],
  ['limit', `
groups: [{name: g, limit: 1, rules: [{alert: A, expr: x}]}]
`, file(`
  input_series: [{series: 'x{b="1"}', values: 1x5}, {series: 'x{b="2"}', values: 1x5}]
${alerts('1m', 'A')}`), 'words'],
];
