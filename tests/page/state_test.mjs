// Keyboard, address, theme, export, comparison, narrow screens and fingers.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { check, state, drawn, canvasBox } from './browser.mjs';

// ---- Keyboard ------------------------------------------------------------------

const keys = [
  ['ArrowDown', 'flies', s => s.layer, 1], ['ArrowUp', 'flies#layer=3', s => s.layer, 2], ['ArrowUp', 'flies', s => s.layer, 0],
  ['ArrowRight', 'flies#view=matrix', s => s.head, 1], ['ArrowLeft', 'flies#view=matrix&head=4', s => s.head, 3],
  ['ArrowRight', 'flies#heads=4&head=4', s => s.heads.join(), '5'], ['ArrowRight', 'flies', s => s.heads.join(), '0'],
  ['a', 'flies#heads=2', s => s.heads.length, 12], ['w', 'flies', s => s.words, true], ['s', 'flies', s => s.special, false],
  ['r', 'flies#special=0', s => s.renormalize, true], ['r', 'flies', s => s.renormalize, false], ['d', 'flies', s => s.theme, 'dark'],
  ['e', 'flies#view=neuron', s => s.expanded, true], ['e', 'flies#view=model', s => s.zoom, true], ['e', 'flies', s => s.view + s.expanded, 'neurontrue'],
  ['j', 'flies#token=a3', s => s.token.index, 4], ['k', 'flies#token=a3', s => s.token.index, 2], ['Escape', 'flies#token=a3', s => s.token, null],
  ['Escape', 'flies#view=model&zoom=1', s => s.zoom, false], ['4', 'flies', s => s.view, 'matrix'], ['6', 'flies', s => s.view, 'rollout']
];
for (const [key, where, read, expected] of keys)
  check(`key ${key} on ${where}`, where, async page => {
    await page.keyboard.press(key);
    assert.equal(read(await state(page)), expected);
    assert.equal((await drawn(page)).length, 1);
  });
check('/ finds a token, Enter and n go on, Escape leaves', 'flies', async page => {
  await page.keyboard.press('/');
  assert.equal(await page.evaluate(() => document.activeElement.id), 'find');
  await page.keyboard.type('fli');
  assert.equal(await page.locator('.chip.is-found').count(), 2);
  await page.keyboard.press('Enter');
  assert.equal((await state(page)).token.index, 2);
  await page.keyboard.press('Enter');
  assert.equal((await state(page)).token.index, 8);
  await page.keyboard.press('Enter');
  assert.equal((await state(page)).token.index, 2);
  await page.locator('#title').click();
  await page.keyboard.press('n');
  assert.equal((await state(page)).token.index, 8);
  await page.keyboard.press('N');
  assert.equal((await state(page)).token.index, 2);
  await page.keyboard.press('/');
  await page.keyboard.press('Escape');
  assert.equal(await page.locator('.chip.is-found').count(), 0);
  assert.notEqual(await page.evaluate(() => document.activeElement.id), 'find');
});
check('letters typed into the search are no commands', 'flies', async page => {
  await page.keyboard.press('/');
  await page.keyboard.type('wsde');
  const s = await state(page);
  assert.deepEqual([s.words, s.special, s.theme, s.view], [false, true, 'auto', 'head']);
});
check('? lists the keys, Escape closes the list', 'flies', async page => {
  await page.keyboard.press('?');
  assert.equal(await page.locator('#help').isVisible(), true);
  assert.equal(await page.locator('#help dt').count(), 13);
  await page.keyboard.press('w');
  assert.equal((await state(page)).words, false);
  await page.keyboard.press('Escape');
  assert.equal(await page.locator('#help').isVisible(), false);
  await page.click('#help-open');
  await page.click('#help-close');
  assert.equal(await page.locator('#help').isVisible(), false);
});
check('a choice that has the focus keeps its arrow keys', 'flies', async page => {
  await page.focus('#layer');
  await page.keyboard.press('ArrowDown');
  assert.equal((await state(page)).layer, 1);
});
check('every control is reached with Tab and shows that it has the focus', 'pair#special=0', async page => {
  const seen = new Set();
  for (let i = 0; i < 60; i++) {
    await page.keyboard.press('Tab');
    const found = await page.evaluate(() => {
      const node = document.activeElement, style = getComputedStyle(node);
      return { name: node.id || node.dataset.view || node.dataset.head || node.className, outline: style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 1 };
    });
    if (found.name) assert.ok(found.outline, `no outline: ${found.name}`);
    seen.add(found.name);
  }
  for (const name of ['skip', 'theme', 'save-svg', 'save-png', 'help-open', 'head', 'model', 'neuron', 'matrix', 'rollout', 'statistics', 'layer', 'filter', 'words', 'special', 'renormalize', 'min', 'top', 'find', '11', 'all-heads'])
    assert.ok(seen.has(name), `not reached: ${name}`);
});
check('the link to the picture keeps the state', 'flies#layer=2', async page => {
  await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  assert.equal(await page.evaluate(() => document.activeElement.id), 'stage');
  assert.equal((await state(page)).layer, 2);
});

// ---- Address --------------------------------------------------------------------

check('the address holds the state, and a reload brings it back', 'pair', async page => {
  await page.click('[data-view=matrix]');
  await page.selectOption('#layer', '3');
  await page.selectOption('#head', '5');
  await page.selectOption('#filter', 'ab');
  await page.check('#words');
  await page.locator('#min').fill('7');
  await page.selectOption('#top', '5');
  await page.selectOption('#theme', 'dark');
  await page.locator('.chip').nth(4).click();
  await page.waitForTimeout(250);
  const before = await state(page), hash = await page.evaluate(() => location.hash);
  assert.equal(hash, '#view=matrix&layer=3&head=5&token=a4&filter=ab&words=1&min=0.07&top=5&theme=dark');
  await page.reload();
  assert.deepEqual(await state(page), before);
});
check('a fragment that is changed by hand is followed', 'flies', async page => {
  await page.evaluate(() => { location.hash = '#view=model&layer=2'; });
  await page.waitForFunction(() => window.bertsql.state().view === 'model');
  assert.equal((await state(page)).layer, 2);
});
check('nonsense in the fragment is left out', 'flies#view=nope&layer=99&head=-1&heads=1,x&token=z9&token=a99&min=5&top=x&words=2&theme=pink&__proto__=1&sort=%3Cb%3E', async page => {
  const s = await state(page);
  assert.deepEqual([s.view, s.layer, s.head, s.heads.length, s.token, s.min, s.top, s.words, s.theme, s.sort], ['head', 0, 0, 12, null, 0.02, 0, false, 'auto', 'layer']);
});
check('options say how the page begins', 'initial', async page => {
  const s = await state(page);
  assert.deepEqual([s.view, s.layer, s.head, s.theme, s.words, s.special, s.renormalize], ['matrix', 4, 7, 'dark', true, false, true]);
  assert.equal(await page.title(), 'Flies & arrows');
  assert.equal(await page.textContent('h1'), 'Flies & arrows');
  assert.match(await page.textContent('#notices'), /temperature 2/);
  assert.equal(await page.evaluate(() => location.hash), '');
});

// ---- Theme ------------------------------------------------------------------------

// A change of theme reaches the page a moment after it was asked for.
const backgroundBecomes = (page, color) =>
  page.waitForFunction(c => getComputedStyle(document.documentElement).backgroundColor === c, color);
check('the system’s dark theme is followed', ['flies', { colorScheme: 'dark' }], async page => {
  await backgroundBecomes(page, 'rgb(20, 23, 27)');
  await page.emulateMedia({ colorScheme: 'light' });
  await backgroundBecomes(page, 'rgb(252, 252, 251)');
});
check('a chosen theme stays whatever the system says', ['flies', { colorScheme: 'dark' }], async page => {
  await page.selectOption('#theme', 'light');
  await backgroundBecomes(page, 'rgb(252, 252, 251)');
  await page.keyboard.press('Escape');
});
check('pictures are drawn in the colours of the theme', 'flies#view=matrix&head=2', async page => {
  const corner = () => page.evaluate(() => { // a cell of weight 0 in the last column
    const f = window.bertsql.figures()[0], scale = f.lower.width / f.layout.width;
    return [...f.lower.getContext('2d').getImageData((f.layout.width - 20) * scale, (f.layout.top + 20) * scale, 1, 1).data].slice(0, 3);
  });
  assert.deepEqual(await corner(), [247, 248, 249]);
  await page.selectOption('#theme', 'dark');
  assert.deepEqual(await corner(), [27, 32, 38]);
});

// Text against what lies behind it, as WCAG computes contrast.
const contrasts = page => page.evaluate(() => {
  const numbers = text => text.match(/[\d.]+/g).map(Number);
  const light = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map(v => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const behind = node => {
    for (; node; node = node.parentElement) {
      const color = numbers(getComputedStyle(node).backgroundColor);
      if (color.length === 3 || color[3] === 1) return color;
    }
    return [255, 255, 255];
  };
  const found = [];
  for (const node of document.querySelectorAll('body *')) {
    const own = [...node.childNodes].some(c => c.nodeType === 3 && c.textContent.trim() !== '');
    if (!own || !node.checkVisibility() || node.closest('script, style, .off, noscript') || node.disabled) continue;
    const a = light(numbers(getComputedStyle(node).color)), b = light(behind(node));
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) found.push(`${node.tagName} ${node.className} "${node.textContent.slice(0, 20)}" ${ratio.toFixed(2)}`);
  }
  return found;
});
for (const colorScheme of ['light', 'dark'])
  for (const hash of ['token=a2&special=0', 'view=statistics', 'view=neuron&expanded=1', 'view=matrix&layer=3&head=1&token=a3'])
    check(`text has a contrast of 4.5 at least: ${colorScheme}, ${hash}`, [`flies#${hash}`, { colorScheme }], async page => {
      await drawn(page);
      assert.deepEqual(await contrasts(page), []);
    });
check('pictures and controls have names', 'pair#token=a2', async page => {
  const nameless = await page.evaluate(() => [...document.querySelectorAll('button, select, input, canvas:not([aria-hidden])')].filter(n => n.checkVisibility() &&
    !(n.getAttribute('aria-label') || n.textContent.trim() || n.labels?.[0]?.textContent.trim())).map(n => n.outerHTML.slice(0, 80)));
  assert.deepEqual(nameless, []);
  assert.match(await page.getAttribute('#figures .upper', 'aria-label'), /layer 0, all 12 heads.*queries by.*keys/);
});
check('the page says that attention is not an explanation', 'flies', async page =>
  assert.match(await page.textContent('footer'), /not an explanation of the model’s output by themselves/));

// ---- Export ------------------------------------------------------------------------

async function saved(page, button) {
  const [download] = await Promise.all([page.waitForEvent('download'), page.click(button)]);
  return [download.suggestedFilename(), readFileSync(await download.path())];
}
const viewHashes = ['token=a2', 'view=model', 'view=model&zoom=1', 'view=neuron&expanded=1', 'view=matrix&head=2', 'view=statistics', 'view=rollout&layer=3'];
for (const hash of viewHashes) {
  check(`SVG of ${hash}`, `flies#${hash}`, async page => {
    const [name, bytes] = await saved(page, '#save-svg'), text = bytes.toString();
    assert.match(name, /^attention-[a-z]+-layer\d(-head\d+)?\.svg$/);
    const parsed = await page.evaluate(t => {
      const d = new DOMParser().parseFromString(t, 'image/svg+xml');
      return { errors: d.querySelectorAll('parsererror').length, root: d.documentElement.localName, shapes: d.querySelectorAll('rect, path, image').length,
        texts: [...d.querySelectorAll('text')].map(x => x.textContent), title: d.querySelector('title').textContent };
    }, text);
    assert.equal(parsed.errors, 0);
    assert.equal(parsed.root, 'svg');
    assert.ok(parsed.shapes > 5 && parsed.title === 'Attention in all-MiniLM-L6-v2');
    if (!/statistics|view=model$/.test(hash)) assert.ok(parsed.texts.includes('flies') && parsed.texts.includes('##ened'));
  });
  check(`PNG of ${hash}`, `flies#${hash}`, async page => {
    const [name, bytes] = await saved(page, '#save-png');
    assert.match(name, /\.png$/);
    assert.equal(bytes.subarray(1, 4).toString(), 'PNG');
    const [d] = await drawn(page);
    assert.ok(Math.abs(bytes.readUInt32BE(16) - 2 * (d.width + 32)) <= 4);
    assert.ok(bytes.length > 5000);
  });
}

// ---- Comparison ----------------------------------------------------------------------

check('two texts stand side by side, and a token is followed in both', 'compare', async page => {
  assert.equal((await drawn(page)).length, 2);
  await page.locator('.chip[data-run="0"]').nth(2).hover(); // flies
  const [a, b] = await drawn(page);
  assert.deepEqual([a.active.unit, b.active.unit], [2, 2]);
  assert.equal(await page.locator('#numbers h2').count(), 2);
  await page.locator('.chip[data-run="0"]').nth(1).hover(); // time, which B has not
  assert.equal((await drawn(page))[1].active, null);
});
check('A alone, B alone, and A minus B', 'compare#view=matrix&layer=5&min=0', async page => {
  await page.click('#show-choice [data-value=a]');
  assert.deepEqual((await drawn(page)).map(d => d.units[1]), ['time']);
  await page.click('#show-choice [data-value=b]');
  assert.deepEqual((await drawn(page)).map(d => d.units[1]), ['fruit']);
  await page.click('#show-choice [data-value=difference]');
  const [d] = await drawn(page);
  assert.deepEqual(d.units, ['[CLS]', 'flies', 'like', '.', '[SEP]']);
  const expected = await page.evaluate(() => {
    const [a, b] = window.bertsql.runs.map(r => r.weights(5, 0)), at = [0, 2, 3, 6, 7];
    return at.flatMap(i => at.map(j => a[i * 8 + j] - b[i * 8 + j]));
  });
  assert.ok(d.weights.every((w, i) => Math.abs(w - expected[i]) < 1e-6));
  assert.match(await page.textContent('figcaption'), /5 places that both have; 3 only in A, 3 only in B/);
});
for (const view of ['head', 'model', 'neuron', 'matrix', 'statistics', 'rollout'])
  for (const show of ['both', 'difference'])
    check(`comparison: ${view}, ${show}`, `compare#view=${view}&show=${show}&token=a2&layer=2`, async page => {
      const figures = await drawn(page);
      assert.equal(figures.length, show === 'both' || view === 'neuron' ? 2 : 1);
      assert.ok((await saved(page, '#save-svg'))[1].length > 1000);
    });
check('two models stand side by side; what one of them lacks is said', 'models#layer=9&view=matrix', async page => {
  const [a, b] = await drawn(page);
  assert.match(a.describe, /layer 5/);
  assert.match(b.describe, /layer 9/);
  assert.match(await page.textContent('#notices'), /A has layers 0 to 5 and heads 0 to 11/);
});

// ---- Narrow screens, fingers -------------------------------------------------------------

for (const view of ['head', 'rollout'])
  check(`the row of views has nothing to scroll: ${view}`, `flies#view=${view}`, async page => {
    const size = await page.locator('#views').evaluate(n => [n.scrollHeight, n.clientHeight, n.scrollWidth, n.clientWidth]);
    assert.equal(size[0], size[1]);
    assert.equal(size[2], size[3]);
  });
const phone = { viewport: { width: 360, height: 740 }, deviceScaleFactor: 2, hasTouch: true, isMobile: true };
for (const where of ['flies', 'flies#view=model', 'flies#view=neuron&expanded=1', 'flies#view=matrix', 'flies#view=statistics', 'compare', 'pair#special=0', 'long', 'hostile'])
  check(`360 pixels wide: ${where}`, [where, phone], async page => {
    await drawn(page);
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth) <= 360, 'the page is wider than the screen');
    const small = await page.evaluate(() => [...document.querySelectorAll('button, select')].filter(b => b.checkVisibility() && b.getBoundingClientRect().height < 24).length);
    assert.equal(small, 0);
  });
check('on a narrow screen options open on demand', ['flies', phone], async page => {
  assert.equal(await page.locator('#words').isVisible(), false);
  await page.tap('#more');
  assert.equal(await page.getAttribute('#more', 'aria-expanded'), 'true');
  await page.tap('#words');
  assert.equal((await drawn(page))[0].units.length, 14);
  await page.tap('#more');
  assert.equal(await page.locator('#words').isVisible(), false);
});
check('on a narrow screen the view in use is in sight', ['flies#view=statistics', phone], async page => {
  const box = await page.locator('[data-view=statistics]').boundingBox();
  assert.ok(box.x >= 0 && box.x + box.width <= 360, JSON.stringify(box));
});
check('a finger chooses a token and lets it go', ['flies', phone], async page => {
  const [d] = await drawn(page);
  await page.locator('#figures .upper').tap({ position: { x: 60, y: 30 + 26 * 2.5 } });
  assert.equal((await drawn(page))[0].active.unit, 2);
  await page.locator('#figures .upper').tap({ position: { x: 60, y: 30 + 26 * 2.5 } });
  assert.equal((await drawn(page))[0].active, null);
  assert.ok(d.width <= 360);
});
check('a finger shows the number of a cell', ['flies#view=matrix&head=2', phone], async page => {
  const layout = await page.evaluate(() => { const { left, top, cell } = window.bertsql.figures()[0].layout; return { left, top, cell }; });
  await page.locator('#figures .upper').tap({ position: { x: layout.left + layout.cell * 1.5, y: layout.top + layout.cell * 2.5 } });
  assert.match(await page.textContent('#tooltip'), /^flies → time/);
});
check('the picture follows the width of the window', 'flies', async page => {
  const [wide] = await drawn(page);
  await page.setViewportSize({ width: 700, height: 800 });
  await page.waitForTimeout(100);
  assert.ok((await drawn(page))[0].width < wide.width);
});
