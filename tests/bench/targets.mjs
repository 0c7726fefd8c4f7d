// All targets of the bench. `note` is the name of a note and `section` the section that gives it; `section: null` means that
// none measures it yet. The note's median is compared with `atLeast` or `atMost`; with unit 'x' it is the median of its ratio.
// With errorAtMost the note has to give its standard error, and a larger one tells nothing.
// The name has the sizes that the target is for, so a run of other sizes neither reaches nor misses it.
export const PROGRAM_MB = 18; // tests/e2e holds it too
const TEN_TIMES = { unit: 'x', atLeast: 10 }; // google/pprof
const TWICE = { unit: 'x', atMost: 2 };
const ON_TIME = { unit: '%', atLeast: 99.9 };
const ROLLUPS = { unit: '% of raw', atMost: 40 };
const A_QUARTER = { unit: 'x', atLeast: 4 };
const AS_FAST = { unit: 'x', atLeast: 0.83 }; // at most 1.2 times as long
const ONE_SECOND = { unit: 'seconds', atMost: 1 };
const ONE_CORE = { unit: 's of CPU a round', atMost: 60 }; // a round a minute

const cluster = (window) => [
  { section: 'bucket', note: `${window}: bytes read cold`, unit: '% of the blocks', atMost: 5 },
  { section: 'bucket', note: `${window}: GETs cold`, unit: 'requests', atMost: 30 },
  { section: 'bucket', note: `${window}: GETs cold, opening too`, unit: 'requests', atMost: 30 },
  { section: 'bucket', note: `${window}: CPU, local (other: node)`, unit: 'x', atMost: 1.5 },
  { section: 'bucket', note: `${window}: time, local (other: node)`, unit: 'x', atMost: 1.5 },
];

const scraping = (fleet) => [
  { section: 'scrape', note: `${fleet}: begun within 0.6 s of their turn`, ...ON_TIME },
  { section: 'scrape', note: `${fleet}: asked within 1 s of the interval`, ...ON_TIME },
  { section: 'scrape', note: `${fleet}: last scrape went well`, ...ON_TIME },
  { section: 'scrape', note: `${fleet}: CPU profiles refused`, unit: 'requests', atMost: 0 },
];

const ahead = (store, ...notes) => notes.map((what) => (
  { section: 'columns', note: `${store}, 12,000 profiles: ${what}`, unit: 'x', atLeast: 1 }));
const COLUMNS = ['stored (other: decoded by Go)', 'bytes a sample', 'all bytes (other: without lines)', 'merge of 600, named JSON (other: ids)',
  'sum over time by pod of 600', 'flat top 10, 24 h to any second', 'cum top 10, 24 h to any second', 'values of a label',
  'stacks with one function, 24 h to any second'];

export const targets = [
  { section: 'ingest', note: 'inflate and decode, recorded CPU, below 4 KB', unit: 'x', atLeast: 8 },
  { section: 'ingest', note: 'inflate and decode, recorded heap', ...TEN_TIMES },
  { section: 'ingest', note: 'inflate and decode, fleet-cpu', ...TEN_TIMES },
  { section: 'ingest', note: 'inflate and decode, heap of 2,500 entries', ...TEN_TIMES },
  { section: 'ingest', note: 'targets on one core: 10 s, CPU + heap, not fetched', unit: 'targets', atLeast: 10000 },

  { section: 'merge', note: 'merge of 1,000 profiles as JSON, recorded CPU', unit: 'x', atLeast: 600 },
  { section: 'merge', note: 'merge of 1,000 profiles as JSON, recorded heap', unit: 'x', atLeast: 600 },
  { section: 'merge', note: 'merge of 1,000 profiles as JSON, fleet-cpu', unit: 'x', atLeast: 1000 },

  { section: 'bytes', note: 'raw rows, fleet-cpu', unit: 'bytes/sample', atMost: 0.75 },
  { section: 'bytes', note: 'raw rows, heavy-tailed-cpu', unit: 'bytes/sample', atMost: 1 },
  { section: 'bytes', note: 'raw rows, heap', unit: 'bytes/sample', atMost: 0.15 },
  { section: 'bytes', note: 'rollups of 2 h, fleet-cpu', ...ROLLUPS },
  { section: 'bytes', note: 'rollups of 2 h, heavy-tailed-cpu', ...ROLLUPS },
  { section: 'bytes', note: 'rollups of 2 h, labelled-cpu', ...ROLLUPS },
  { section: 'bytes', note: 'rollups of 2 h, heap', ...ROLLUPS },
  { section: 'bytes', note: 'CPU of cutting 1,000 profiles, fleet-cpu (other: of storing them)', ...A_QUARTER },
  { section: 'bytes', note: 'CPU of cutting 1,000 profiles, heavy-tailed-cpu (other: of storing them)', ...A_QUARTER },
  { section: 'bytes', note: 'CPU of cutting 1,000 profiles, heap (other: of storing them)', ...A_QUARTER },

  { section: 'long', note: 'raw rows in a block of 3 d, fleet-cpu', unit: 'bytes/sample', atMost: 0.75 },
  { section: 'long', note: 'rollups, 1h and 1d, of it', ...ROLLUPS },
  { section: 'long', note: 'sum over 30 d (other: raw rows)', unit: 'x', atLeast: 200 },
  { section: 'long', note: 'sum over 1 h (other: over 30 d)', unit: 'x', atMost: 3 },

  { section: 'query', note: 'merge of 1 h, p99 idle (other: ingesting)', ...TWICE },
  { section: 'query', note: 'top 10 over 24 h, p99 idle (other: ingesting)', ...TWICE },
  { section: 'query', note: 'one function by the hour over 30 d, p99 idle (other: ingesting)', ...TWICE },
  { section: 'query', note: 'diff of two days, p99 idle (other: ingesting)', ...TWICE },

  { section: 'top', note: 'top 10 of a day, scaled to 100 services, first', ...ONE_SECOND },
  { section: 'top', note: 'top 10 of a day, scaled to 100 services, again', ...ONE_SECOND },
  { section: 'top', note: 'top 10 of an unaligned 24 h, scaled to 100 services, first', ...ONE_SECOND },
  { section: 'top', note: 'top 10 of an unaligned 24 h, scaled to 100 services, again', ...ONE_SECOND },
  { section: 'top', note: 'top 10 of a day, names shown differently (other: as stored)', ...AS_FAST },
  { section: 'top', note: 'top 10 of an unaligned 24 h, names shown differently (other: as stored)', ...AS_FAST },

  { section: 'restart', note: 'from exec to ready, 30 d, nothing cached', ...ONE_SECOND },

  { section: 'memory', note: 'resident, 1,000 targets x 5 profiles', unit: 'MiB', atMost: 160 },
  { section: 'memory', note: 'growth a scrape, 1,000 targets x 5 profiles', unit: 'MiB', atMost: 0.02, errorAtMost: 0.02 },

  { section: 'push', note: 'OTLP request of 2 types of 632 stacks, stored (other: decoded and kept by Go)', unit: 'x', atLeast: 2 },
  { section: 'push', note: 'OTLP request of 10 small profiles, stored (other: decoded and kept by Go)', unit: 'x', atLeast: 2 },
  { section: 'push', note: 'CPU of a profile by push.v1 (other: scraped)', unit: 'x', atLeast: 0.9 },
  { section: 'push', note: 'OTLP over gRPC, 200 profiles/s: growth between 10 and 60 s', unit: 'MiB', atMost: 2 },
  { section: 'push', note: 'OTLP over gRPC, 200 profiles/s: stored', unit: 'profiles/s', atLeast: 199 },

  { section: 'rules', note: '200 services x 3 pods: examples, a group for each rule', ...ONE_CORE },
  { section: 'rules', note: '200 services x 3 pods: examples, a group for each service', ...ONE_CORE },
  { section: 'rules', note: '200 services x 3 pods: one selector, a group for each service', ...ONE_CORE },
  { section: 'rules', note: '200 services x 3 pods: one rule a service', ...ONE_CORE },

  ...scraping('10,000 targets'), ...scraping('10,000 targets, 10 % hostile'),
  { section: 'scrape', note: '10,000 targets: so many at 10 s on one core, fetched', unit: 'targets', atLeast: 7000 },
  { section: 'scrape', note: '1,000 targets dropped of 10,000, until taken over', ...ONE_SECOND },
  { section: 'scrape', note: '1,000 targets added to 9,000, until taken over', ...ONE_SECOND },
  { section: 'scrape', note: 'reload of 10,000 unchanged targets', ...ONE_SECOND },

  { section: 'pair', note: 'two servers every 10 s: time of the one with less', unit: '%', atLeast: 45 },
  { section: 'pair', note: 'two servers every 10 s: fewest profiles in a minute', unit: 'profiles', atLeast: 1 },
  { section: 'pair', note: 'beside a collector of whole intervals: time of the server', unit: '%', atLeast: 25 },
  { section: 'pair', note: 'beside a collector of whole intervals: fewest profiles in a minute', unit: 'profiles', atLeast: 1 },

  { section: 'kubernetes', note: 'Kubernetes, 10,000 pods: from start to first scrape', unit: 'seconds', atMost: 5 },
  { section: 'kubernetes', note: 'Kubernetes, 10,000 pods, 5 changes/s: event to target, p99', ...ONE_SECOND },
  { section: 'kubernetes', note: 'Kubernetes, 10,000 pods, 5 changes/s: CPU', unit: 'cores', atMost: 0.02 },
  { section: 'kubernetes', note: 'Kubernetes, 10,000 pods, 50 changes/s: event to target, p99', ...ONE_SECOND },
  { section: 'kubernetes', note: 'Kubernetes, 10,000 pods, 50 changes/s: CPU', unit: 'cores', atMost: 0.2 },

  { section: 'symbols', note: 'index of a C++ program, by GB of its file', unit: 'seconds', atMost: 20 },
  { section: 'symbols', note: 'memory of making it, by GB of its file', unit: 'MiB', atMost: 512 },
  { section: 'symbols', note: 'index of a C++ program, of its debug data', unit: '%', atMost: 25 },
  { section: 'symbols', note: 'look-ups, warm, random order (other: llvm-symbolizer --inlines)', unit: 'addresses/s', atLeast: 1e6 },
  { section: 'symbols', note: 'top 10 of a service of 50,000 new addresses, the first time', unit: 'seconds', atMost: 1 },

  ...cluster('top 10 of 100 x 2, 24 h to the hour'), ...cluster('top 10 of 100 x 2, 24 h to any second'),
  { section: 'bucket', note: 'CPU of it, 100 x 2, 4 clients, 1 node (other: 4)', unit: 'x', atMost: 1.1 },
  { section: 'bucket', note: 'ingest, CPU a profile (other: and published)', unit: 'x', atMost: 1.1 },

  { section: 'growth', note: 'exact selector, 1,000,000 series', unit: 'ms', atMost: 1 },
  { section: 'growth', note: 'label counts, 1,000,000 series', unit: 'ms', atMost: 20 },
  { section: 'growth', note: 'resident memory a series, 1,000,000 series', unit: 'bytes', atMost: 600 },
  { section: 'growth', note: 'start after kill -9, 1,000,000 series', unit: 'seconds', atMost: 3 },

  { section: 'crowd', note: 'request beside 5000 silent connections, p99', unit: 'ms', atMost: 200 },
  { section: 'crowd', note: 'request beside 5000 half heads, p99', unit: 'ms', atMost: 200 },
  { section: 'crowd', note: 'request beside 2000 half TLS hellos, p99', unit: 'ms', atMost: 200 },

  ...ahead('ClickHouse', ...COLUMNS), ...ahead('DuckDB', ...COLUMNS, 'bytes a sample (other: Parquet)'),

  { section: 'binary', note: 'the server program', unit: 'MB', atMost: PROGRAM_MB },
];
