// Rule files to compare with promtool: [text], or [text, true] if this server decides differently on purpose.

const group = (rules, more = '') => `groups:\n- name: g\n${more}  rules:\n${rules.map((r) => `  - ${r}\n`).join('')}`;
const alert = (more) => group([`{alert: A, expr: up == 0${more ? `, ${more}` : ''}}`]);
const record = (more) => group([`{record: "a:b", expr: up${more ? `, ${more}` : ''}}`]);

export const ruleFiles = [
  [''],
  ['groups: []\n'],
  ['groups:\n'],
  ['groups: {}\n'],
  ['group: []\n'],
  ['groups: [{name: a}]\n'],
  ['groups: [{rules: []}]\n'],
  ['groups: [{name: a}, {name: a}]\n'],
  ['groups: [{name: a}, {name: b}]\n'],
  ['groups: [{name: a, nonesuch: 1}]\n'],
  ['groups: [{name: a, interval: 5s, limit: 3}]\n'],
  ['groups: [{name: a, interval: 5}]\n'],
  ['groups: [{name: a, limit: x}]\n'],
  ['groups: [{name: a, query_offset: 1m}]\n', true], // later than Debian's
  ['groups: [{name: a, labels: {b: c}}]\n', true],
  [alert('')],
  [record('')],
  [group(['{alert: A}'])],
  [group(['{expr: up}'])],
  [group(['{alert: A, record: b, expr: up}'])],
  [group(['{record: "a b", expr: up}']), true], // names in UTF-8 are later than Debian's
  [group(['{record: "1a", expr: up}']), true], // names in UTF-8 are later than Debian's
  [group(['{alert: "a b", expr: up}'])],
  [group(['{alert: A, expr: ""}'])],
  [group(['{alert: A, expr: "up +"}'])],
  [group(['{alert: A, expr: "sum by (job) (up) > 5"}'])],
  [group(['{alert: A, expr: up}', '{alert: A, expr: up}'])],
  [group(['{record: a, expr: up}', '{record: a, expr: up, labels: {b: c}}'])],
  [alert('for: 5m')],
  [alert('for: 5')],
  [alert('keep_firing_for: 5m')],
  [alert('nonesuch: 5m')],
  [alert('labels: {severity: page}')],
  [alert('labels: {a-b: page}'), true], // names in UTF-8 are later than Debian's
  [alert('labels: {__name__: x}')],
  [alert('labels: {a: "{{ $labels.job }}"}')],
  [alert('labels: {a: "{{ $labels.job "}')],
  [alert('annotations: {a: "{{ $value | humanize }}"}')],
  [alert('annotations: {a: "{{ $value | nonesuch }}"}')],
  [alert('annotations: {a: "{{ if }}"}')],
  [alert('annotations: {a: "{{ if true }}x"}')],
  [alert('annotations: {a: "{{ range query \\"up\\" }}{{ .Value }}{{ end }}"}')],
  [alert('annotations: {a-b: x}'), true], // names in UTF-8 are later than Debian's
  [record('for: 5m')],
  [record('keep_firing_for: 5m')],
  [record('labels: {b: c}')],
  [record('labels: {a-b: c}'), true], // names in UTF-8 are later than Debian's
  [record('annotations: {b: c}')],
];
