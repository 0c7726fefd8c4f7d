// The libraries that are linked into the programs: which versions, and which of them are behind.
import test from 'node:test';
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chmodSync, cpSync, existsSync, mkdirSync, readFileSync, statSync, utimesSync } from 'node:fs';
import { api, epimetheus, epitool, finish, join, request, root, scratch, startServer, writeFileSync } from './lib.mjs';

const packages = join(root, 'base/self/packages.sh'), commit = join(root, 'base/self/commit.sh');

/** A directory of programs that take the place of the machine's: name to text of a shell script. */
function fakes(t, scripts) {
  const dir = scratch(t);
  for (const [name, text] of Object.entries(scripts)) {
    writeFileSync(join(dir, name), `#!/bin/sh\n${text}\n`);
    chmodSync(join(dir, name), 0o755);
  }
  const env = { ...process.env, PATH: `${dir}:${process.env.PATH}` };
  for (const name of ['MAKEFLAGS', 'MAKELEVEL', 'MFLAGS', 'REVISION', 'REVISION_TIME', 'MODE', 'BUILD']) delete env[name];
  return { dir, env };
}

const policy = (name, installed, candidate) => `${name}:\n  Installed: ${installed}\n  Candidate: ${candidate}\n  Version table:\n` +
  ` *** ${installed} 100\n        100 /var/lib/dpkg/status\n`;
// One is behind, one is not, one is newer here, one is not installed, and one has no candidate.
const APT_CACHE = `cat <<'END'\n${policy('libssl-dev', '3.0.19-1~deb12u2', '3.0.22-1~deb12u2')}${policy('zlib1g-dev', '1:1.2.13', '1:1.2.13')}` +
  `${policy('libzstd-dev', '2.0', '1.5')}${policy('libre2-dev', '(none)', '1.0')}${policy('libyaml-dev', '1.0', '(none)')}END`;
const DPKG_QUERY = 'printf "%s\\n" "libssl-dev 3.0.19" "libssl-dev 3.0.19" "libstdc++-12-dev 12.2.0-14"';

test('both programs, the API and the metrics name the same libraries', async (t) => {
  const server = await startServer(t, { dir: scratch(t), config: 'scrape_configs: []\n' });
  const [first, ...lines] = (await finish(t, epimetheus, ['--version'])).out.trimEnd().split('\n');
  const found = first.match(/^epimetheus, version (\d+\.\d+\.\d+(?:-[\w.]+)?)(?: \(revision ([0-9a-f]+(?:-dirty)?), (\S+)\))?$/);
  assert.ok(found, first);
  const [, version, revision = '', date = ''] = found;
  if (revision) assert.match(date, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
  assert.equal((await finish(t, epitool, ['--version'])).out, [first.replace('epimetheus', 'epitool'), ...lines, ''].join('\n'));
  assert.equal((await finish(t, epitool, ['query', '--version'])).out.split('\n')[1], lines[0]);
  const libraries = Object.fromEntries(lines.map((line) => line.match(/^ {2}(\S.*\S) +(\S+)$/).slice(1)).map(([k, v]) => [k.trim(), v]));
  for (const name of ['GnuTLS', 'OpenSSL', 'LevelDB', 'liblzma', 'libstdc++, libgcc'])
    assert.match(libraries[name], /^[0-9].*-[0-9]/, name);

  const info = await api(server, 'status/buildinfo');
  assert.equal(info.version, version);
  assert.equal(info.revision, revision);
  assert.equal(info.buildDate, date);
  assert.deepEqual(Object.fromEntries(info.libraries.map((l) => [l.name, l.version])), libraries);
  const metrics = (await request(`${server.url}/metrics`)).body.toString();
  assert.ok(metrics.includes(`\nepimetheus_build_info{version="${version}",revision="${revision}"} 1\n`));
  assert.equal(metrics.match(/^epimetheus_library_info\{/gm).length, info.libraries.length);
  for (const l of info.libraries)
    assert.ok(metrics.includes(`\nepimetheus_library_info{library="${l.name}",package="${l.package}",version="${l.version}"} 1\n`), l.name);
});

test('versions are written where they differ, and only then', async (t) => {
  const fake = fakes(t, { 'dpkg-query': DPKG_QUERY });
  const file = join(fake.dir, 'gen/packages.c');
  const record = async (revision, env = fake.env) => {
    const run = await finish(t, packages, ['record', file, revision, '1764512591', 'libssl-dev', 'libstdc++-12-dev', 'libzstd-dev'], 60, { env });
    assert.equal(run.code, 0, run.err);
    assert.ok(!existsSync(`${file}.new`));
    return readFileSync(file, 'utf8');
  };
  assert.equal(await record('abc'), `#include "base/self/libraries.h"
const char build_revision[] = "abc";
const char build_date[] = "2025-11-30T14:23:11Z";
const struct library_package library_packages[] = {
\t{ "libssl-dev", "3.0.19" },
\t{ "libstdc++-dev", "12.2.0-14" },
\t{ "libzstd-dev", "unknown" },
};
const size_t library_packages_n = 3;
`);
  utimesSync(file, 1, 1);
  await record('abc');
  assert.equal(statSync(file).mtimeMs, 1000, 'an equal file is left alone');
  const newer = fakes(t, { 'dpkg-query': 'echo libssl-dev 3.0.22' });
  assert.match(await record('abc', newer.env), /"libssl-dev", "3\.0\.22"/);
  assert.match(await record('def', newer.env), /build_revision\[\] = "def"/);
});

test('the commit is known in a repository and in an archive of it, and says if files differ', async (t) => {
  const dir = scratch(t), repository = join(dir, 'repository'), archive = join(dir, 'archive');
  const env = { ...process.env, GIT_CONFIG_GLOBAL: '/dev/null', GIT_CONFIG_SYSTEM: '/dev/null',
    GIT_COMMITTER_DATE: '1764512591 +0100', TZ: 'Asia/Kolkata' };
  const git = (...args) => execFileSync('git', ['-C', repository, '-c', 'user.name=a', '-c', 'user.email=a@b', ...args],
    { env, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] }).trim();
  const ask = async (tree) => {
    const run = await finish(t, commit, [tree], 60, { env });
    assert.equal(run.code, 0, run.err);
    return run.out;
  };
  mkdirSync(join(repository, 'base/self'), { recursive: true });
  for (const name of ['commit', '.gitattributes']) cpSync(join(root, 'base/self', name), join(repository, 'base/self', name));
  assert.equal(await ask(repository), '', 'a copy of the files alone');
  git('init', '-q');
  assert.equal(await ask(repository), '', 'nothing is committed');
  git('add', '.');
  git('commit', '-q', '-m', 'all');
  const known = `${git('rev-parse', 'HEAD').slice(0, 12)} 1764512591\n`;
  assert.equal(await ask(repository), known);
  mkdirSync(archive);
  execFileSync('/bin/sh', ['-c', 'git -C "$0" archive HEAD | tar -x -C "$1"', repository, archive], { env });
  assert.equal(await ask(archive), known);
  writeFileSync(join(repository, 'new.c'), '');
  assert.equal(await ask(repository), known.replace(' ', '-dirty '), 'a new file');
});

test('packages that are behind are named, from the lists that are here', async (t) => {
  const names = ['libssl-dev', 'zlib1g-dev', 'libzstd-dev', 'libre2-dev', 'libyaml-dev'];
  const run = await finish(t, packages, ['behind', ...names], 60, { env: fakes(t, { 'apt-cache': APT_CACHE }).env });
  assert.equal(run.out, 'libssl-dev 3.0.19-1~deb12u2 3.0.22-1~deb12u2\n');
  assert.equal(run.code, 0, run.err);
  for (const broken of ['exit 100', 'echo "W: no lists"'])
    assert.deepEqual(await finish(t, packages, ['behind', ...names], 60, { env: fakes(t, { 'apt-cache': broken }).env })
      .then(({ code, out, err }) => ({ code, out, err })), { code: 0, out: '', err: '' });
  const none = await finish(t, '/bin/bash', [packages, 'behind', ...names], 60, { env: { PATH: fakes(t, {}).dir } });
  assert.deepEqual({ code: none.code, out: none.out, err: none.err }, { code: 0, out: '', err: '' });
});

test('make says which libraries are behind when it looks at packages, and deps-upgrade upgrades these', async (t) => {
  const log = join(scratch(t), 'log');
  const fake = fakes(t, {
    'dpkg-query': DPKG_QUERY,
    'apt-cache': APT_CACHE,
    'apt-get': `echo "$@" >>${log}`,
    sudo: 'exec "$@"',
  });
  const status = join(fake.dir, 'status'), built = join(fake.dir, 'build'), source = join(built, 'gen/base/self/packages.c');
  mkdirSync(built);
  writeFileSync(status, '');
  writeFileSync(join(built, '.deps'), ''); // what the build needs is installed
  const make = async (...args) => {
    const run = await finish(t, 'make', ['--no-print-directory', '-C', root, `BUILD=${built}`, 'REVISION=abc', `PACKAGES_CHANGE=${status}`, ...args], 60, { env: fake.env });
    assert.equal(run.code, 0, run.err);
    return run.out;
  };
  assert.equal(await make(source), '  OLD   libssl-dev 3.0.19-1~deb12u2 is linked, 3.0.22-1~deb12u2 is there: make deps-upgrade\n');
  assert.match(readFileSync(source, 'utf8'), /"abc"[^]*"libssl-dev", "3\.0\.19"/);
  assert.match(await make(source), /is up to date/, 'it looks once');
  await make('-q', source);
  utimesSync(status, Date.now() / 1000 + 60, Date.now() / 1000 + 60);
  const before = statSync(source).mtimeMs;
  assert.match(await make(source), /^  OLD   libssl-dev /, 'packages changed');
  assert.equal(statSync(source).mtimeMs, before, 'these did not');
  await make('deps-upgrade');
  assert.equal(readFileSync(log, 'utf8'), 'update -qq\ninstall -y -qq --no-install-recommends --only-upgrade libssl-dev\n');

  writeFileSync(join(fake.dir, 'apt-cache'), `#!/bin/sh\ncat <<'END'\n${policy('zlib1g-dev', '1', '1')}END\n`);
  assert.match(await make('deps-upgrade'), /no linked library is behind/);
  assert.equal(readFileSync(log, 'utf8').split('\n').length, 4, 'nothing is installed');
});
