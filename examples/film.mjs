#!/usr/bin/env node
// Takes the README's moving picture: a regression found in two clicks, on the page of a running `make run`.
//
//   node examples/film.mjs [URL] [FILE]    http://127.0.0.1:7272/ and examples/regression.webp unless given
//
// Run it when the page's words or looks change. Wants Chromium, img2webp (Debian's package webp) and playwright-core, which
// `make build/node-tests/.installed` fetches. The server has to have profiles of a quarter of an hour, and no other page open.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const [url = 'http://127.0.0.1:7272/', file = fileURLToPath(new URL('regression.webp', import.meta.url))] = process.argv.slice(2);
const SIZE_MAX = 1e6;
const { chromium } = createRequire(join(process.cwd(), 'build/node-tests/'))('playwright-core');

const dir = mkdtempSync(join(tmpdir(), 'film-'));
const frames = []; // arguments of img2webp: how long in ms, then the picture
let page;

async function frame(ms) {
  const path = join(dir, `${String(frames.length).padStart(4, '0')}.png`);
  await page.screenshot({ path });
  frames.push('-d', String(ms), path);
}

/** The pointer, which screenshots lack. */
let at = { x: 620, y: 420 };
async function point(to, pressed) {
  await page.evaluate(({ x, y, down }) => {
    let dot = document.getElementById('film-pointer');
    if (!dot) {
      dot = document.createElement('div');
      dot.id = 'film-pointer';
      document.body.append(dot);
    }
    const size = down ? 30 : 18;
    dot.style.cssText = `position:fixed;z-index:99999;pointer-events:none;border-radius:50%;border:2px solid #fff;` +
      `background:rgba(190,60,20,${down ? 0.45 : 0.8});box-shadow:0 0 3px #000;width:${size}px;height:${size}px;` +
      `left:${x - size / 2}px;top:${y - size / 2}px`;
  }, { ...to, down: pressed });
}

async function click(locator) {
  const box = await locator.boundingBox();
  const to = { x: box.x + box.width / 2, y: box.y + box.height / 2 };
  for (let i = 1; i <= 6; i++) {
    await point({ x: at.x + ((to.x - at.x) * i) / 6, y: at.y + ((to.y - at.y) * i) / 6 }, false);
    await frame(60);
  }
  at = to;
  await point(to, true);
  await frame(350);
  await locator.click();
  await point(to, false);
}

const browser = await chromium.launch({ executablePath: process.env.EPI_CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox'] });
try {
  page = await (await browser.newContext({ viewport: { width: 1200, height: 740 } })).newPage();
  await page.goto(url, { waitUntil: 'networkidle' });
  await page.getByText('Hottest function').waitFor();
  await point(at, false);
  await frame(1800);
  await click(page.getByRole('link', { name: 'Compare', exact: true }));
  await page.getByRole('button', { name: 'version v2 against v1' }).waitFor();
  await page.waitForLoadState('networkidle');
  await frame(1000);
  await click(page.getByRole('button', { name: 'version v2 against v1' }));
  await page.getByText('called only by').waitFor();
  await page.waitForLoadState('networkidle');
  await page.mouse.move(at.x, at.y); // no tooltip of what lies under the menu
  await frame(4500);
  execFileSync('img2webp', ['-loop', '0', '-lossy', '-q', '75', '-m', '6', ...frames, '-o', file]);
} finally {
  await browser.close();
  rmSync(dir, { recursive: true });
}
const { size } = statSync(file);
console.log(`${file}: ${size} bytes, ${frames.length / 3} frames`);
if (size > SIZE_MAX) throw new Error(`more than ${SIZE_MAX} bytes`);
