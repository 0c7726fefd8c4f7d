// Debug data in several files: epitool sends the .dwo and .dwp files and the common file of dwz that a program has, and says which
// are missing. The oracle is llvm-symbolizer on the same program with its debug data in one piece.
import test from 'node:test';
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync } from 'node:fs';
import { api, epitool, finish, join, root, scratch, startServer, until, writeFileSync } from './lib.mjs';
import { compile, counted, framesOfWhole, link, push, run, stacksOf } from './split_programs.mjs';

const start = (t, dir, args = []) => startServer(t, { dir, config: 'scrape_configs: []\n', args: ['--web.enable-ingest', ...args] });
const upload = (t, server, ...args) => finish(t, epitool, ['debuginfo', 'upload', `--server=${server.url}`, ...args]);

async function binary(server, id) {
  return (await api(server, 'symbols')).binaries.find((b) => b.id === id);
}

/** Inlined calls of both functions, three deep, are in it. */
function checkOracle(frames) {
  const stacks = Object.keys(counted(frames));
  for (const stack of ['main;shop_rank;shop_weigh', 'shop_serve;shop_rank;shop_weigh']) assert.ok(stacks.includes(stack), stacks.join());
}

for (const [name, compiler, dwp] of [
  ['gcc, version 4', 'gcc -gdwarf-4', 'dwp -e'],
  ['gcc, version 5', 'gcc -gdwarf-5', undefined], // neither dwp nor llvm-dwp 14 reads it
  ['clang, version 4', 'clang -gdwarf-4', 'llvm-dwp-14 -o with_dwp.dwp -e'],
  ['clang, version 5', 'clang -gdwarf-5', 'llvm-dwp-14 -o with_dwp.dwp -e'],
]) {
  test(`${name}: a split program with its .dwo files, with its .dwp file, and without`, async (t) => {
    const dir = scratch(t), obj = join(dir, 'obj'), bin = join(dir, 'bin');
    const server = await start(t, dir);
    compile(obj, `${compiler} -gsplit-dwarf`);
    const file = link(obj, 'with_dwo', 'aabb000000000001');
    const frames = framesOfWhole(join(dir, 'whole'), compiler, file);
    checkOracle(frames);

    let sent = await upload(t, server, file);
    assert.equal(sent.code, 0, sent.err);
    assert.equal(sent.err, '');
    assert.match(sent.out, /: named by dwarf, [\d.]+ KiB, with 2 debug files\n$/);
    const sizes = run(obj, 'stat -c %s with_dwo main.dwo serve.dwo').trim().split('\n').map(Number);
    assert.ok((await binary(server, 'aabb000000000001')).sourceBytes >= sizes.reduce((a, b) => a + b));
    await push(server, 'with_dwo', file, 'aabb000000000001', frames);
    assert.deepEqual(await stacksOf(server, 'with_dwo'), counted(frames));

    if (dwp) {
      link(obj, 'with_dwp', 'aabb000000000002');
      run(obj, `${dwp} with_dwp`);
      mkdirSync(bin);
      run(dir, 'mv obj/with_dwp obj/with_dwp.dwp bin; mv obj/main.dwo .');
      sent = await upload(t, server, join(bin, 'with_dwp'));
      assert.equal(sent.code, 0, sent.err);
      assert.match(sent.out, /: named by dwarf, [\d.]+ KiB, with 1 debug file\n$/, sent.err);
      await push(server, 'with_dwp', join(bin, 'with_dwp'), 'aabb000000000002', frames);
      assert.deepEqual(await stacksOf(server, 'with_dwp'), counted(frames));
      run(dir, 'mv main.dwo obj');
    }

    // A file of debug data alone has the skeletons, too. Then one of two is away: the other's names are whole.
    link(obj, 'rest', 'aabb000000000003');
    run(dir, 'objcopy --only-keep-debug obj/rest rest.debug; mkdir away; mv obj/main.dwo obj/serve.dwo away; mv obj/rest .');
    const rest = join(dir, 'rest'), info = await finish(t, epitool, ['debuginfo', 'info', `${rest}.debug`]);
    assert.match(info.out, new RegExp(`split debug +${obj}/main.dwo: not found\n +split debug +${obj}/serve.dwo: not found\n`));
    run(dir, 'mv away/serve.dwo .');
    sent = await upload(t, server, rest);
    assert.equal(sent.code, 0, sent.err);
    assert.equal(sent.err, `epitool: warning: ${rest}: ${obj}/main.dwo: not found: inlined calls of this unit will be missing\n`);
    assert.match(sent.out, /: named by dwarf, [\d.]+ KiB, with 1 debug file\n$/);
    const served = frames.filter((f) => f.stack[0] === 'shop_serve');
    await push(server, 'rest', rest, 'aabb000000000003', served);
    assert.deepEqual(await stacksOf(server, 'rest'), counted(served));
    await until('the log', 10, () => /a part of the file has no symbols" id=aabb000000000003 .*"1 of 2 units of split DWARF/.test(server.err));
    // Once it is there, all names are.
    sent = await upload(t, server, '--force', '--dwo-dir', join(dir, 'away'), '--dwo-dir', dir, rest);
    assert.match(sent.out, /: named by dwarf, [\d.]+ KiB, with 2 debug files\n$/, sent.err);
    await push(server, 'rest_whole', rest, 'aabb000000000003', frames);
    assert.deepEqual(await stacksOf(server, 'rest_whole'), counted(frames));

    // --dwo-dir; parts alone are no programs.
    const found = link(obj, 'found', 'aabb000000000004');
    sent = await upload(t, server, '--dwo-dir', join(dir, 'nowhere'), '--dwo-dir', join(dir, 'away'), '--dwo-dir', dir, found);
    assert.equal(sent.err, '');
    assert.match(sent.out, /, with 2 debug files\n$/);
    sent = await upload(t, server, join(dir, 'serve.dwo'));
    assert.equal(sent.code, 1);
    assert.equal(sent.err, `epitool: error: ${dir}/serve.dwo: holds a part of a program's debug data: upload the program, which it goes with\n`);
    sent = await upload(t, server, '--recursive', join(dir, 'away'));
    assert.equal(sent.code, 0, sent.err);
    assert.equal(sent.out, ''); // one file, which was passed over
  });
}

test('two programs that dwz has made smaller: one with their common file, one without', async (t) => {
  const dir = scratch(t), obj = join(dir, 'obj');
  const server = await start(t, dir);
  compile(obj, 'gcc -gdwarf-4');
  const first = link(obj, 'first', 'aabb000000000005'), second = link(obj, 'second', 'aabb000000000006');
  const frames = framesOfWhole(join(dir, 'whole'), 'gcc -gdwarf-4', first);
  checkOracle(frames);
  run(obj, 'printf x >>second; dwz -m common.debug first second');
  assert.match(run(obj, 'readelf -S first'), /gnu_debugaltlink/);

  let sent = await upload(t, server, first);
  assert.equal(sent.code, 0, sent.err);
  assert.equal(sent.err, '');
  assert.match(sent.out, /: named by dwarf, [\d.]+ KiB, with 1 debug file\n$/);
  await push(server, 'first', first, 'aabb000000000005', frames);
  assert.deepEqual(await stacksOf(server, 'first'), counted(frames));

  run(dir, 'mv obj/common.debug .');
  sent = await upload(t, server, second);
  assert.equal(sent.code, 0, sent.err);
  assert.equal(sent.err, `epitool: warning: ${second}: ${obj}/common.debug: not found: some names will be missing\n`);
  assert.match(sent.out, /: named by \w+, [\d.]+ KiB\n$/);
  await push(server, 'second', second, 'aabb000000000006', frames);
  assert.notDeepEqual(await stacksOf(server, 'second'), counted(frames));
});

test('a bundle as the book says how to write one', async (t) => {
  const dir = scratch(t), obj = join(dir, 'obj');
  const server = await start(t, dir);
  compile(obj, 'clang -gdwarf-5 -gsplit-dwarf');
  const file = link(obj, 'shop', 'aabb000000000008');
  const frames = framesOfWhole(join(dir, 'whole'), 'clang -gdwarf-5', file);
  run(obj, 'llvm-dwp-14 -o shop.dwp -e shop');
  writeFileSync(join(obj, 'bundle.py'), readFileSync(join(root, 'web/book/api/symbols.md'), 'utf8').match(/```python\n(.*?)```/s)[1]);
  run(obj, `python3 bundle.py; curl -sSf -T shop.bundle -X POST ${server.url}/api/v1/symbols/upload`);
  await until('its names', 30, async () => (await binary(server, 'aabb000000000008'))?.state === 'named');
  await push(server, 'shop', file, 'aabb000000000008', frames);
  assert.deepEqual(await stacksOf(server, 'shop'), counted(frames));
});

test('what is too large together is sent without its debug files', async (t) => {
  const dir = scratch(t), obj = join(dir, 'obj');
  const server = await start(t, dir, ['--storage.symbols.max-file-size=100KB']);
  compile(obj, 'gcc -gdwarf-4 -gsplit-dwarf');
  const file = link(obj, 'large', 'aabb000000000007');
  run(obj, 'truncate -s 1100M main.dwo');
  const sent = await upload(t, server, file);
  assert.equal(sent.code, 0, sent.err);
  assert.match(sent.err, /^epitool: warning: \S*large: 1\.07GiB with its debug files: a server takes 1GiB, or what its --storage\.symbols\.max-file-size says\n/);
  assert.match(sent.err, /\nepitool: warning: \S*large: sent without its debug files: the file has \d+ bytes, limit 102400\n$/);
  assert.match(sent.out, /: named by \w+, [\d.]+ KiB\n$/);
});
