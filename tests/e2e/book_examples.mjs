// Runs the examples of the book, as their info strings say (.github/CONTRIBUTING.md), with the parser that builds the book.
import { chmodSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { freePort } from '../ports.mjs';
import { wrongFlags } from './book_flags.mjs';
import { build, epitool, execFileSync, finish, join, query, request, root, settled, startDemo, startServer, until, writeFileSync } from './lib.mjs';

const { readBook, readPage } = await import(join(root, 'build/ui-src/book/read.mjs'));
const REGRESSION = 'scoreItems';
const TEXT_MAX = 4000;

/** The chapters below `tree`; what breaks the format fails the build of the book. */
export const readChapters = (tree = root, parts = join(build, 'gen/book')) => readBook({ tree, parts }).chapters;

export const readReadme = () => readPage(root, 'README.md');

/** A server that scrapes itself and two versions of the demo, once each of them has profiles. */
export async function startExamples(t, dir) {
  const port = await freePort();
  const v1 = await startDemo(t, 'v1', 'none');
  const v2 = await startDemo(t, 'v2', REGRESSION);
  const config = `
global: {scrape_interval: 2s, evaluation_interval: 2s}
scrape_configs:
  - job_name: epimetheus
    static_configs: [{targets: ["127.0.0.1:${port}"]}]
  - job_name: demo
    static_configs:
      - {targets: ["${v1.address}"], labels: {version: v1}}
      - {targets: ["${v2.address}"], labels: {version: v2}}
`;
  const server = await startServer(t, { dir, config, port,
    args: ['--web.enable-lifecycle', '--web.enable-admin-api', '--web.enable-ingest', '--web.enable-files'] });
  await settled(server);
  await until(`cpu profiles of all, main.${REGRESSION} in those of v2`, 60, async () => {
    const of = async (q) => (await query(server, q)).result.length;
    return await of(`total(focus(merge(cpu{job="demo",version="v2"}[5m]), "main.${REGRESSION}")) > 0`) &&
      await of('count_over_time(cpu{job="demo",version="v1"}[5m]) >= 2') && await of('count_over_time(cpu{job="epimetheus"}[5m]) >= 2');
  });
  writePrograms(join(dir, 'bin'), server.url);
  return { t, dir, port, server, env: { ...process.env, PATH: `${join(dir, 'bin')}:${build}:${process.env.PATH}`, HOME: dir } };
}

/** Commands that ask a server ask this one, where they name none. */
function writePrograms(bin, url) {
  mkdirSync(bin);
  writeFileSync(join(bin, 'epitool'), `#!/bin/bash
case " $* " in
*" --server"* | *" --data"*) exec '${epitool}' "$@" ;;
esac
for command in "\${1:-} \${2:-}" "\${1:-}"; do
	if '${epitool}' $command --help 2>/dev/null | grep -q '^ *--server='; then
		exec '${epitool}' "$@" --server='${url}'
	fi
done
exec '${epitool}' "$@"
`);
  chmodSync(join(bin, 'epitool'), 0o755);
}

/** Text of the book with the port of this server. */
const here = (context, text) => text.replace(/\b(127\.0\.0\.1|localhost):7272\b/g, `127.0.0.1:${context.port}`);

const short = (text) => (text.length > TEXT_MAX ? `${text.slice(0, TEXT_MAX)} ...` : text).trim();

async function tool(context, dir, ...args) {
  const run = await finish(context.t, epitool, args, 60, { cwd: dir });
  return run.code === 0 ? undefined : short(run.out + run.err);
}

/** Writes `text` as a file of its own and has epitool check it. */
function checked(context, dir, text, ...args) {
  const file = `example-${context.files = (context.files ?? 0) + 1}.yml`;
  writeFileSync(join(dir, file), text);
  return tool(context, dir, ...args, file);
}

const indented = (text) => text.replace(/^(?=.)/gm, '  ');

/** Certificates and secrets that a web configuration names, at places where they are. */
function withFiles(context, text) {
  const dir = join(context.dir, 'named');
  mkdirSync(dir, { recursive: true });
  execFileSync('openssl', ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2', '-subj', '/CN=localhost',
    '-keyout', join(dir, 'key'), '-out', join(dir, 'cert')], { stdio: 'pipe' });
  const kinds = { cert_file: 'cert', client_ca_file: 'cert', key_file: 'key' };
  const place = (key, name) => {
    if (kinds[key]) return join(dir, kinds[key]);
    const path = join(dir, name.replaceAll('/', '-')); // two users do not share a token
    writeFileSync(path, `the-secret-in-${name}\n`, { mode: 0o600 });
    return path;
  };
  return text.replace(/\b(\w+_file):\s*([^\s,}]+)/g, (_, key, name) => `${key}: ${place(key, name)}`);
}

/** YAML of other programs: the configuration's section for others takes anything that is YAML. */
async function yamlParsed(context, dir, text) {
  for (const document of text.split(/^---\s*$/m).filter((d) => /^\s*[^\s#]/m.test(d))) {
    const wrong = await checked(context, dir, `remote_write:\n${indented(document)}`, 'check', 'config', '--syntax-only', '--config.ignore-foreign');
    if (wrong) return wrong;
  }
  return undefined;
}

async function asked(context, path, params) {
  const res = await request(`${context.server.url}/api/v1/${path}`, { method: 'POST', body: `${new URLSearchParams(params)}`,
    headers: { 'Content-Type': 'application/x-www-form-urlencoded' } });
  return res.status === 200 ? undefined : `${res.status}: ${short(res.body.toString())}`;
}

/** Whether `out` is `want`, in which "..." is any text. */
export function printsAs(out, want) {
  const parts = want.trim().split('...').map((p) => p.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  return new RegExp(`^${parts.join('[^]*?')}$`).test(out.replace(/[ \t]+$/gm, '').trim());
}

async function ran(context, dir, fence) {
  const run = await finish(context.t, 'bash', ['-euc', `exec 2>&1\n${here(context, fence.text)}`], 120, { cwd: dir, env: context.env });
  if (run.code !== 0) return `exit code ${run.code ?? run.signal}: ${short(run.out)}`;
  if (!fence.prints) return undefined;
  const want = here(context, fence.prints.text);
  return printsAs(run.out, want) ? undefined : `prints\n${short(run.out)}\nwhere the book has\n${short(want)}`;
}

async function parsedBash(context, dir, text) {
  const run = await finish(context.t, 'bash', ['-nc', text], 60, { cwd: dir });
  return run.code === 0 ? wrongFlags(text).join('; ') || undefined : short(run.err);
}

/** How each kind of fence is run; what they give is what is wrong. Others are shown only. */
const RUN = {
  'yaml config': (c, dir, f) => checked(c, dir, f.text, 'check', 'config', '--syntax-only'),
  'yaml job': (c, dir, f) => checked(c, dir, `scrape_configs:\n${indented(f.text)}`, 'check', 'config', '--syntax-only'),
  'yaml rules': (c, dir, f) => checked(c, dir, f.text, 'check', 'rules'),
  'yaml web': (c, dir, f) => checked(c, dir, withFiles(c, f.text), 'check', 'web-config'),
  'yaml other': (c, dir, f) => yamlParsed(c, dir, f.text),
  promql: (c, dir, f) => asked(c, 'query', { query: f.text }),
  'promql range': (c, dir, f) => {
    const end = Math.floor(Date.now() / 1000);
    return asked(c, 'query_range', { query: f.text, start: end - 300, end, step: 15 });
  },
  'promql parse': (c, dir, f) => asked(c, 'parse_query', { query: f.text }),
  sh: ran,
  'sh elsewhere': (c, dir, f) => parsedBash(c, dir, f.text),
};

/** Runs the fences of a chapter in order, in a directory of its own; gives "FILE:LINE: what is wrong" of each. */
export async function runChapter(context, chapter) {
  const dir = mkdtempSync(join(context.dir, `${chapter.id.replace('/', '-')}-`));
  const findings = [];
  for (const fence of chapter.fences) {
    if (fence.file) {
      mkdirSync(dirname(join(dir, fence.file)), { recursive: true });
      writeFileSync(join(dir, fence.file), here(context, fence.text));
    }
    const wrong = await RUN[`${fence.language} ${fence.kind}`.trim()]?.(context, dir, fence);
    if (wrong) findings.push(`${fence.at}: ${wrong}`);
  }
  rmSync(dir, { recursive: true, force: true });
  return findings;
}
