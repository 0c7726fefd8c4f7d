// Target groups and relabelling rules to compare with Prometheus 2.42: written ones for subtle cases, and drawn ones. Two
// differences are left out: this server does as later versions do (a dot matches a newline), and its rules cannot make
// labels without a name, as Prometheus's can.

const pod = (name, ns, more) => ({
  __meta_kubernetes_namespace: ns,
  __meta_kubernetes_pod_name: name,
  __meta_kubernetes_pod_container_name: 'main',
  __meta_kubernetes_pod_container_port_name: 'http',
  __meta_kubernetes_pod_container_port_number: '8080',
  __meta_kubernetes_pod_phase: 'Running',
  __meta_kubernetes_pod_ready: 'true',
  ...more,
});

export const groups = [
  { targets: ['10.0.0.1:8080', '10.0.0.2:8080'], labels: pod('api-7d9', 'prod', {
    __meta_kubernetes_pod_label_app: 'api', __meta_kubernetes_pod_labelpresent_app: 'true',
    __meta_kubernetes_pod_annotation_profiles_grafana_com_cpu_scrape: 'true',
    __meta_kubernetes_pod_annotation_profiles_grafana_com_cpu_port: '6060' }) },
  { targets: ['10.0.0.3:9102'], labels: pod('cart-0', 'prod', {
    __meta_kubernetes_pod_label_app: 'cart', __meta_kubernetes_pod_label_app_kubernetes_io_name: 'Cart',
    __meta_kubernetes_pod_controller_kind: 'StatefulSet', __meta_kubernetes_pod_controller_name: 'cart',
    __meta_kubernetes_pod_annotation_pyroscope_io_scrape: 'TRUE' }) },
  { targets: ['10.0.1.4:8080'], labels: pod('job-x', 'dev', { __meta_kubernetes_pod_phase: 'Succeeded', team: 'blue' }) },
  { targets: ['[2001:db8::7]:6060'], labels: pod('v6', 'dev', { __meta_kubernetes_pod_label_app: 'straße', team: 'Grün' }) },
  { targets: ['node-a:10250', 'node-b:10250'], labels: {
    __meta_kubernetes_node_name: 'node-a', __meta_kubernetes_node_label_topology_kubernetes_io_zone: 'eu-1a',
    __meta_kubernetes_node_address_InternalIP: '192.0.2.9', zone: 'eu-1a' } },
  { targets: ['db.example.org:5432'], labels: { env: 'prod;eu', role: 'primary', a: 'x', b: 'y', c: '', job: 'own' } },
  { targets: ['many.example.org:1'], labels: { env: 'line break', role: 'f', a: 'foo', b: 'oo', c: 'a.b-c_d', __scheme__: 'https' } },
  // Only gc and debug, because the values of other parameters are not shown and could not be compared.
  { targets: ['param.example.org:7070'], labels: { __param_gc: '5', __param_debug: 'a b&c', env: 'dev', a: 'foobar' } },
  { targets: ['slow.example.org:7071'], labels: { __scrape_interval__: '45s', __scrape_timeout__: '7s', env: '', a: '12', b: '0012' } },
];

const one = (...rules) => rules;
const ns = '__meta_kubernetes_namespace';
const app = '__meta_kubernetes_pod_label_app';

/** name -> relabel_configs */
export const written = {
  none: [],
  replace_defaults: one({ source_labels: [app], target_label: 'app' }),
  join: one({ source_labels: [ns, app], target_label: 'x' }),
  join_missing: one({ source_labels: ['nope', ns, 'nope2'], target_label: 'x' }),
  separator: one({ source_labels: [ns, app], separator: '/', target_label: 'x' }),
  separator_empty: one({ source_labels: [ns, app], separator: '', target_label: 'x' }),
  anchored: one({ source_labels: ['a'], regex: 'f|oo', target_label: 'hit', replacement: 'yes' }),
  anchored_group: one({ source_labels: ['a'], regex: '(?:f|oo)+', target_label: 'hit', replacement: 'yes' }),
  empty_regex: one({ source_labels: ['env'], regex: '', target_label: 'hit', replacement: 'empty' }),
  case_flag: one({ source_labels: ['__meta_kubernetes_pod_annotation_pyroscope_io_scrape'], regex: '(?i)true', action: 'keep' }),
  group_digits: one({ source_labels: ['a'], regex: '(f)(o*)(.*)', target_label: 'x', replacement: '$2-$1_x-${3}z' }),
  group_named: one({ source_labels: ['__address__'], regex: '(?P<host>[^:]+):(?P<port>\\d+)', target_label: 'x', replacement: '${host}/$port/$1' }),
  group_zero: one({ source_labels: ['a'], target_label: 'x', replacement: '<$0>' }),
  group_beyond: one({ source_labels: ['a'], regex: '(.*)', target_label: 'x', replacement: 'a$2b${9}c' }),
  dollar: one({ source_labels: ['a'], target_label: 'x', replacement: '$$1 $$$1 $' }),
  dollar_broken: one({ source_labels: ['a'], target_label: 'x', replacement: '${1 $-' }),
  empty_deletes: one({ source_labels: ['a'], regex: 'foo', target_label: 'b', replacement: '' }),
  no_match_keeps: one({ source_labels: ['a'], regex: 'zzz', target_label: 'b', replacement: 'no' }),
  constant: one({ target_label: 'cluster', replacement: 'eu' }),
  target_expanded: one({ source_labels: ['role', 'a'], regex: '(\\w+);(\\w*)', target_label: 'r_$1', replacement: '$2' }),
  target_invalid: one({ source_labels: ['env'], regex: '(.*)', target_label: '${1}', replacement: 'v' }),
  keep: one({ source_labels: [ns], regex: 'prod', action: 'keep' }),
  keep_upper_action: one({ source_labels: [ns], regex: 'prod', action: 'KEEP' }),
  keep_missing: one({ source_labels: ['nope'], regex: '', action: 'keep' }),
  drop: one({ source_labels: ['__meta_kubernetes_pod_phase'], regex: 'Succeeded|Failed', action: 'drop' }),
  drop_none: one({ source_labels: ['nope'], regex: '.+', action: 'drop' }),
  keepequal: one({ source_labels: ['zone'], target_label: '__meta_kubernetes_node_label_topology_kubernetes_io_zone', action: 'keepequal' }),
  dropequal: one({ source_labels: ['__meta_kubernetes_pod_container_port_number'], target_label: '__meta_kubernetes_pod_annotation_profiles_grafana_com_cpu_port', action: 'dropequal' }),
  hashmod: one({ source_labels: ['__address__'], modulus: 8, target_label: 'shard', action: 'hashmod' }),
  hashmod_join: one({ source_labels: [ns, '__address__'], separator: '-', modulus: 1000003, target_label: 'shard', action: 'hashmod' }),
  shard: one({ source_labels: ['__address__'], modulus: 3, target_label: '__tmp_hash', action: 'hashmod' },
    { source_labels: ['__tmp_hash'], regex: '1', action: 'keep' }),
  labelmap: one({ action: 'labelmap', regex: '__meta_kubernetes_pod_label_(.+)' }),
  labelmap_named: one({ action: 'labelmap', regex: '__meta_kubernetes_(pod|node)_(name)', replacement: 'k8s_${1}_$2' }),
  labelmap_onto: one({ action: 'labelmap', regex: '(a|b)', replacement: 'c' }),
  labelmap_chain: one({ action: 'labelmap', regex: '(a)', replacement: '${1}a' }, { action: 'labelmap', regex: '(a+)', replacement: '${1}a' }),
  labeldrop: one({ action: 'labeldrop', regex: 'a|b|team' }),
  labeldrop_job: one({ action: 'labeldrop', regex: 'job' }),
  labelkeep: one({ action: 'labelkeep', regex: '__.*|job|env' }),
  lowercase: one({ source_labels: ['__meta_kubernetes_pod_label_app_kubernetes_io_name', 'team'], target_label: 'x', action: 'lowercase' }),
  uppercase: one({ source_labels: [app], target_label: 'x', action: 'uppercase' }, { source_labels: ['team'], target_label: 'y', action: 'uppercase' }),
  address: one({ source_labels: ['__address__', '__meta_kubernetes_pod_annotation_profiles_grafana_com_cpu_port'],
    regex: '([^:]+)(?::\\d+)?;(\\d+)', replacement: '$1:$2', target_label: '__address__' }),
  address_to_instance: one({ source_labels: ['__meta_kubernetes_pod_name'], regex: '(.+)', target_label: 'instance' }),
  address_gone: one({ source_labels: ['__address__'], regex: '10.*', target_label: '__address__', replacement: '' }),
  address_slash: one({ source_labels: ['__address__'], regex: '10.0.0.3.*', target_label: '__address__', replacement: 'a/b:1' }),
  scheme: one({ target_label: '__scheme__', replacement: 'https' }),
  param: one({ source_labels: ['a'], regex: '(.+)', target_label: '__param_debug' }, { target_label: '__param_gc', replacement: '3' }),
  interval: one({ source_labels: [ns], regex: 'prod', target_label: '__scrape_interval__', replacement: '30s' }),
  interval_broken: one({ source_labels: [ns], regex: 'prod', target_label: '__scrape_interval__', replacement: 'often' }),
  interval_zero: one({ source_labels: [ns], regex: 'prod', target_label: '__scrape_interval__', replacement: '0s' }),
  timeout_over: one({ source_labels: [ns], regex: 'prod', target_label: '__scrape_timeout__', replacement: '10m' }),
  tmp_never_leaks: one({ target_label: '__tmp_x', replacement: '1' }, { source_labels: ['__tmp_x'], target_label: 'seen' }),
  order: one({ target_label: 'x', replacement: '1' }, { source_labels: ['x'], target_label: 'x', replacement: '${1}2' },
    { source_labels: ['x'], regex: '12', target_label: 'y', replacement: 'yes' }),
  job_replaced: one({ source_labels: [ns, app], separator: '/', regex: '(.+/.+)', target_label: 'job' }),
  unicode_value: one({ target_label: 'x', replacement: 'žluťoučký 猫' }),
  posix_classes: one({ source_labels: ['__meta_kubernetes_pod_name'], regex: '([[:alpha:]]+)-(\\d.*|\\w)', target_label: 'x', replacement: '$1' }),
  bounded_repeat: one({ source_labels: ['b'], regex: '0{2}(1{1}2)', target_label: 'x' }),
  lazy: one({ source_labels: ['__address__'], regex: '(.*?)\\.(.*)', target_label: 'x', replacement: '$1' }),
};

/** Lists of one to five rules, drawn with the generator `random` (0 <= r < 1). */
export function drawn(random, n) {
  const pick = (v) => v[Math.floor(random() * v.length)];
  const labels = [ns, app, 'a', 'b', 'c', 'env', 'role', 'zone', 'team', 'x', 'y', '__address__', '__tmp_t',
    '__meta_kubernetes_pod_name', '__meta_kubernetes_pod_phase', '__meta_kubernetes_node_name', 'nope'];
  const some = () => Array.from({ length: 1 + Math.floor(random() * 3) }, () => pick(labels));
  const regexes = ['(.*)', '(.+)', '', '.*', 'prod|dev', '(\\w+);(\\w*)', '(?P<n>[a-z]+)(.*)', '(f)?(o+)?.*', 'a.*', '.*\\d',
    '([^:]*):(\\d+)', '(?i)RUNNING', '(?i:API|cart)(.*)', '[^;]*;?(.*)', '\\S+', '(a|b|foo)+', 'x?y?z?', '(.)(.*)', '.{3,8}', '\\pL+', 'Run(?:ning)'];
  const names = ['x', 'y', 'z', 'a', 'team', '__tmp_t', 'n_$1', '${1}', 'p_${n}', 'zone', 'x_$2', '__param_gc'];
  const values = ['$1', '${1}', '$1_x', '${1}_x', '$$', '$0', '$2$1', '${n}', 'literal', '', 'a-${1}-${2}', '$n.', '${1', 'ü'];
  const rule = () => {
    const r = random();
    if (r < 0.55) {
      const target_label = pick(names);
      // An empty result deletes the label; if the name is expanded, 2.42 deletes the unexpanded name.
      return { source_labels: some(), regex: pick(regexes), target_label, replacement: (target_label.includes('$') ? 'v' : '') + pick(values),
        separator: pick([';', '', '-', ';;']) };
    }
    if (r < 0.62) return { source_labels: some(), regex: pick(['.*', '.+|', 'prod.*|', '[^q]*', 'foo.*|.?.?.?.?']), action: 'keep' };
    if (r < 0.69) return { source_labels: some(), regex: pick(['prod', 'q+', 'dev;.*', 'foo']), action: 'drop' };
    if (r < 0.75) return { source_labels: some(), modulus: 1 + Math.floor(random() * 20), target_label: pick(['x', 'shard', '__tmp_t']), action: 'hashmod' };
    if (r < 0.82) return { action: 'labelmap', regex: pick(['__meta_kubernetes_(pod|node)_(.+)', '(a|b|c)', '__meta_(.*)_name', '(en)v']), replacement: pick(['m_$1', 'k_${1}', '${1}x']) };
    if (r < 0.87) return { action: 'labeldrop', regex: pick(['x', 'a|b', 'te.*', '__meta_kubernetes_pod_label.*', '__tmp.*']) };
    if (r < 0.91) return { source_labels: some(), target_label: pick(['x', 'y']), action: pick(['lowercase', 'uppercase']) };
    if (r < 0.95) return { source_labels: some(), target_label: pick(labels.slice(0, 10)), action: 'dropequal' };
    return { target_label: pick(['x', 'y', 'w']), replacement: pick(['1', '2', 'v']) };
  };
  return Array.from({ length: n }, () => Array.from({ length: 1 + Math.floor(random() * 5) }, rule));
}
