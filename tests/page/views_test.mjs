// Each view and each control: used as a person does, and what is drawn then.
import assert from 'node:assert/strict';
import { check, state, drawn, openTable, canvasBox } from './browser.mjs';

const hoverLeft = async (page, row) => { // the token `row` of the left column
  const box = await canvasBox(page);
  await page.mouse.move(box.x + 150, box.y + 30 + 26 * (row + 0.5));
};

// ---- Head view ---------------------------------------------------------------

check('head view draws a line for each weight from the threshold on', 'flies', async page => {
  const [d] = await drawn(page);
  assert.equal(d.view, 'head');
  assert.deepEqual(d.units, ['[CLS]', 'time', 'flies', 'like', 'an', 'arrow', ';', 'fruit', 'flies', 'like', 'un', '##rip', '##ened', 'bananas', '.', '[SEP]']);
  const expected = await page.evaluate(() => {
    let count = 0;
    for (let head = 0; head < 12; head++) count += window.bertsql.runs[0].weights(0, head).filter(w => w >= 0.02).length;
    return count;
  });
  assert.equal(d.lines, expected);
  assert.ok(expected > 500);
});
check('a click on a tile hides a head and shows it again', 'flies', async page => {
  const tile = page.locator('.tile').nth(3), [before] = await drawn(page);
  await tile.click();
  assert.equal((await state(page)).heads.includes(3), false);
  assert.equal(await tile.getAttribute('aria-pressed'), 'false');
  assert.ok((await drawn(page))[0].lines < before.lines);
  await page.waitForTimeout(600); // not a double click
  await tile.click();
  assert.deepEqual((await drawn(page))[0].lines, before.lines);
});
check('a double click on a tile shows that head alone, the next one all', 'flies', async page => {
  await page.locator('.tile').nth(2).dblclick();
  assert.deepEqual((await state(page)).heads, [2]);
  assert.match((await drawn(page))[0].describe, /layer 0, head 2/);
  await page.waitForTimeout(600);
  await page.locator('.tile').nth(2).dblclick();
  assert.equal((await state(page)).heads.length, 12);
});
check('Shift and click does the same as a double click', 'flies', async page => {
  await page.locator('.tile').nth(5).click({ modifiers: ['Shift'] });
  assert.deepEqual((await state(page)).heads, [5]);
});
check('the button beside the tiles hides and shows all heads', 'flies', async page => {
  await page.click('#all-heads');
  assert.equal((await drawn(page))[0].lines, 0);
  assert.equal(await page.textContent('#all-heads'), 'All');
  await page.click('#all-heads');
  assert.ok((await drawn(page))[0].lines > 0);
});
check('pointing at a token shows its lines and its numbers', 'flies#heads=2', async page => {
  await hoverLeft(page, 2);
  const [d] = await drawn(page);
  assert.deepEqual(d.active, { unit: 2, key: false });
  assert.equal(d.activeLines, 1); // head 2 of layer 0 looks at the token before
  assert.equal(await page.textContent('#numbers h2'), 'flies');
  const first = await page.locator('#numbers table').first().locator('tr').first().textContent();
  assert.match(first, /^time1\.000$/);
  assert.ok(await page.locator('#figures .lower').evaluate(c => c.classList.contains('is-dim')));
});
check('pointing at the right column shows who attends to a token', 'flies#heads=2', async page => {
  const box = await canvasBox(page);
  await page.mouse.move(box.x + box.width - 150, box.y + 30 + 26 * 1.5);
  const [d] = await drawn(page);
  assert.deepEqual(d.active, { unit: 1, key: true });
  assert.equal(d.activeLines, 1);
});
check('leaving the picture lets the token go, a click keeps it', 'flies', async page => {
  await hoverLeft(page, 2);
  await page.mouse.move(640, 5);
  assert.equal((await drawn(page))[0].active, null);
  const box = await canvasBox(page);
  await page.mouse.click(box.x + 150, box.y + 30 + 26 * 2.5);
  await page.mouse.move(640, 5);
  assert.deepEqual((await drawn(page))[0].active, { unit: 2, key: false });
  assert.deepEqual((await state(page)).token, { run: 0, index: 2, key: false });
  await page.mouse.click(box.x + 150, box.y + 30 + 26 * 2.5);
  assert.equal((await state(page)).token, null);
});
check('the tokens above the picture are coloured by their weight', 'flies#heads=2', async page => {
  await page.locator('.chip').nth(2).hover();
  await drawn(page);
  assert.equal(await page.locator('.chip').nth(1).evaluate(c => c.style.getPropertyValue('--tint')), '#08284f');
  assert.equal(await page.locator('.chip').nth(5).evaluate(c => c.style.getPropertyValue('--tint')), '');
});
check('the layer is chosen', 'flies', async page => {
  const [before] = await drawn(page);
  await page.selectOption('#layer', '4');
  const [after] = await drawn(page);
  assert.match(after.describe, /layer 4/);
  assert.notEqual(before.lines, after.lines);
});

// ---- Pairs -------------------------------------------------------------------

for (const [value, queries, keys] of [['aa', 0, 0], ['ab', 0, 1], ['ba', 1, 0], ['bb', 1, 1]])
  check(`pair filter ${value}`, 'pair', async page => {
    const parts = await page.evaluate(() => window.bertsql.runs[0].tokens.map(t => t.part));
    await page.selectOption('#filter', value);
    const [d] = await drawn(page), of = part => parts.flatMap((p, i) => p === part ? [i] : []);
    assert.deepEqual(d.queries, of(queries));
    assert.deepEqual(d.keys, of(keys));
    assert.match(await page.textContent('#notices'), /Rows no longer sum to 1/);
  });
check('special tokens belong to the text before them', 'pair', async page => {
  const tokens = await page.evaluate(() => window.bertsql.runs[0].tokens.map(t => t.label + t.part));
  assert.deepEqual(tokens.filter(t => t.startsWith('[')), ['[CLS]0', '[SEP]0', '[SEP]1']);
});
check('without a pair there is no pair filter', 'flies', async page => assert.equal(await page.locator('#filter').isVisible(), false));

// ---- Model view ----------------------------------------------------------------

check('model view: a thumbnail is enlarged by a click, and left again', 'flies#view=model', async page => {
  const box = await canvasBox(page), [d] = await drawn(page), step = (d.width - 34) / 12;
  assert.equal(d.zoom, false);
  await page.mouse.move(box.x + 34 + step * 2.5, box.y + 26 + step * 0.5);
  assert.match(await page.textContent('#tooltip'), /layer 0, head 2\s*previous-token/);
  await page.mouse.click(box.x + 34 + step * 2.5, box.y + 26 + step * 0.5);
  assert.equal((await drawn(page))[0].zoom, true);
  assert.equal((await drawn(page))[0].lines, 16);
  assert.equal((await state(page)).head, 2);
  await page.click('#zoom');
  assert.equal((await drawn(page))[0].zoom, false);
});
check('model view: a token is followed through all heads', 'flies#view=model', async page => {
  await page.locator('.chip').nth(2).hover();
  const [d] = await drawn(page);
  const expected = await page.evaluate(() => {
    let count = 0;
    for (let l = 0; l < 6; l++) for (let h = 0; h < 12; h++) count += window.bertsql.runs[0].weights(l, h).slice(32, 48).filter(w => w >= 0.02).length;
    return count;
  });
  assert.equal(d.activeLines, expected);
});
check('model view: pointing at a token of an enlarged head shows its lines', 'flies#view=model&zoom=1&head=2', async page => {
  await hoverLeft(page, 4);
  assert.equal((await drawn(page))[0].activeLines, 1);
});
check('model view: thumbnails as matrices', 'flies#view=model', async page => {
  await page.click('#thumbs-choice [data-value=matrix]');
  assert.equal((await drawn(page))[0].lines, 72 * 256);
  assert.equal((await state(page)).thumbs, 'matrix');
});

check('model view: two texts side by side show all heads', 'compare#view=model', async page => {
  const rooms = await page.locator('.scroller').evaluateAll(list => list.map(n => [n.scrollWidth, n.clientWidth]));
  assert.equal(rooms.length, 2);
  for (const [needed, there] of rooms) assert.equal(needed, there);
});

// ---- Neuron view -----------------------------------------------------------------

check('neuron view: collapsed it shows the lines of one head', 'flies#view=neuron', async page => {
  await page.selectOption('#head', '2');
  const [d] = await drawn(page);
  assert.equal(d.expanded, false);
  assert.equal(d.lines, 16);
});
check('neuron view: a click on a token expands it, the button collapses it', 'flies#view=neuron&head=3', async page => {
  const box = await canvasBox(page);
  await page.mouse.click(box.x + 150, box.y + 30 + 26 * 2.5);
  let [d] = await drawn(page);
  assert.equal(d.expanded, true);
  assert.equal(d.query, 2);
  assert.match(await page.textContent('#notices'), /q·k divided by √32, as the model scales them/);
  await page.click('#expand');
  [d] = await drawn(page);
  assert.equal(d.expanded, false);
});
check('neuron view: another token, layer and head', 'flies#view=neuron&expanded=1&token=a2', async page => {
  const [a] = await drawn(page);
  await page.locator('.chip').nth(5).click();
  const [b] = await drawn(page);
  assert.equal(b.query, 5);
  assert.notDeepEqual(a.scores, b.scores);
  await page.selectOption('#layer', '3');
  const [c] = await drawn(page);
  assert.notDeepEqual(b.scores, c.scores);
  const box = await canvasBox(page); // the name of a key makes it the query
  await page.mouse.click(box.x + 20, box.y + 70 + 22 * 7.5);
  assert.equal((await drawn(page))[0].query, 7);
});
check('neuron view: numbers of a dimension under the pointer', 'flies#view=neuron&expanded=1&token=a2', async page => {
  const box = await canvasBox(page);
  await page.mouse.move(box.x + 150, box.y + 70 + 22 * 3.5);
  assert.match(await page.textContent('#tooltip'), /^dimension \d+\nq [−\d.]+ × k [−\d.]+ = [−\d.]+$/);
});
check('neuron view: a page without vectors says so', 'none#view=neuron&expanded=1', async page => {
  assert.equal((await drawn(page))[0].expanded, false);
  assert.match(await page.textContent('#notices'), /carries no query and key vectors/);
});
check('neuron view: a page with the vectors of one head says which', 'one#view=neuron&expanded=1', async page => {
  assert.equal((await drawn(page))[0].expanded, true);
  await page.selectOption('#layer', '1');
  assert.equal((await drawn(page))[0].expanded, false);
  assert.match(await page.textContent('#notices'), /layer 2, head 3 only/);
});

// ---- Matrix, statistics, rollout ---------------------------------------------------

check('matrix view: a tooltip with the number', 'flies#view=matrix&head=2', async page => {
  const box = await canvasBox(page), [d] = await drawn(page);
  assert.equal(d.filled, 16);
  const cell = (d.height - 56) / 16; // about: names take the rest
  const left = d.width - 8 - 16 * 52, top = d.height - 56 - 16 * 52;
  assert.ok(cell > 40);
  await page.mouse.move(box.x + left + 52 * 1.5, box.y + top + 52 * 2.5);
  assert.match(await page.textContent('#tooltip'), /^flies → time\n1\.0000$|^flies → time\n0\.99\d\d$/);
});
check('statistics: sorted by a column, both ways', 'flies#view=statistics', async page => {
  await page.click('[data-sort=prev]');
  let [d] = await drawn(page);
  assert.deepEqual([d.rows[0].layer, d.rows[0].head, d.rows[0].label], [0, 2, 'previous-token']);
  assert.equal(await page.locator('th[aria-sort=descending]').textContent(), 'prev ↓');
  await page.click('[data-sort=prev]');
  [d] = await drawn(page);
  assert.equal(d.rows[71].head, 2);
  assert.ok(d.rows.every((row, i) => i === 0 || d.rows[i - 1].prev <= row.prev));
  assert.equal(await page.evaluate(() => document.activeElement.dataset.sort), 'prev');
});
check('statistics: a row leads to its head', 'flies#view=statistics', async page => {
  await page.click('tr[data-layer="3"][data-head="8"]');
  const s = await state(page);
  assert.deepEqual([s.view, s.layer, s.head, s.heads], ['head', 3, 8, [8]]);
});
check('statistics: a cell of the map leads to its head', 'flies#view=statistics', async page => {
  const box = await canvasBox(page);
  await page.mouse.click(box.x + 34 + 46 * 2.5, box.y + 52 + 34 * 1.5);
  const s = await state(page);
  assert.deepEqual([s.view, s.layer, s.head], ['head', 1, 2]);
});
check('statistics: the table needs no scrolling sideways', 'flies#view=statistics', async page => {
  await page.click('[data-sort=signed_distance]'); // the arrow takes room as well
  const room = await page.locator('.wide-table').evaluate(n => [n.scrollWidth, n.clientWidth]);
  assert.equal(room[0], room[1]);
});
check('rollout begins at the last layer', 'rollout', async page => {
  assert.match((await drawn(page))[0].describe, /layers 0 to 5/);
  assert.equal(await page.inputValue('#layer'), '5');
  await page.selectOption('#layer', '0');
  await page.waitForTimeout(200);
  await page.reload();
  assert.match((await drawn(page))[0].describe, /layers 0 to 0/);
});
check('rollout keeps a layer that was given', 'initial#view=rollout', async page => {
  assert.equal((await state(page)).layer, 4);
});
check('rollout keeps a layer that was chosen, and takes no other view to the last', 'flies', async page => {
  await page.click('[data-view=rollout]');
  assert.equal((await state(page)).layer, 5);
  await page.click('[data-view=head]');
  assert.equal((await state(page)).layer, 0);
  await page.selectOption('#layer', '2');
  await page.click('[data-view=rollout]');
  assert.equal((await state(page)).layer, 2);
  await page.waitForTimeout(200); // the page has written its address
  await page.evaluate(() => { location.hash = '#view=rollout'; });
  await page.waitForTimeout(100);
  assert.equal((await state(page)).layer, 5);
});
check('rollout grows with the layer', 'flies#view=rollout&layer=0', async page => {
  const [a] = await drawn(page);
  await page.selectOption('#layer', '5');
  const [b] = await drawn(page);
  assert.match(b.describe, /layers 0 to 5/);
  assert.notDeepEqual(a.weights, b.weights);
});

// ---- Units and limits -----------------------------------------------------------------

check('words are merged', 'flies', async page => {
  await page.check('#words');
  const [d] = await drawn(page);
  assert.equal(d.units[10], 'unripened');
  assert.equal(d.units.length, 14);
  assert.equal(await page.locator('.chip').count(), 14);
});
check('without special tokens rows do not sum to 1, and the page says so', 'flies#view=matrix&layer=3', async page => {
  await page.uncheck('#special');
  assert.equal((await drawn(page))[0].units.length, 14);
  assert.match(await page.textContent('#notices'), /Rows no longer sum to 1: hidden special tokens hold the rest. They sum to 0\.\d+ to 0\.\d+/);
  await page.click('#renormalize-now');
  assert.equal((await state(page)).renormalize, true);
  assert.match(await page.textContent('#notices'), /Rows are divided by their sum/);
  const sums = await page.evaluate(() => {
    const source = window.bertsql.sources().shown[0], n = source.units.length, w = source.matrix(3, 0);
    return source.units.map((u, i) => w.slice(i * n, i * n + n).reduce((a, b) => a + b, 0));
  });
  assert.ok(sums.every(s => Math.abs(s - 1) < 1e-5), String(sums));
  await page.uncheck('#renormalize');
  assert.match(await page.textContent('#notices'), /no longer sum to 1/);
});
check('renormalizing can only be chosen without special tokens', 'flies', async page => {
  assert.equal(await page.isDisabled('#renormalize'), true);
  await page.uncheck('#special');
  assert.equal(await page.isDisabled('#renormalize'), false);
});
check('a chosen token stays chosen when words are merged', 'flies#token=a12', async page => {
  await page.check('#words');
  assert.equal((await drawn(page))[0].active.unit, 10);
  await page.uncheck('#words');
  assert.equal((await drawn(page))[0].active.unit, 12);
});
check('the threshold hides small weights', 'flies', async page => {
  await page.locator('#min').fill('30');
  const [d] = await drawn(page);
  const expected = await page.evaluate(() => {
    let count = 0;
    for (let head = 0; head < 12; head++) count += window.bertsql.runs[0].weights(0, head).filter(w => w >= 0.3).length;
    return count;
  });
  assert.equal(d.lines, expected);
  assert.equal(await page.textContent('output'), '0.30');
});
check('top k leaves k weights to each token', 'flies#min=0&heads=0', async page => {
  await page.selectOption('#top', '3');
  assert.equal((await drawn(page))[0].lines, 48);
  await page.selectOption('#top', '1');
  assert.equal((await drawn(page))[0].lines, 16);
});
check('the table holds the numbers of the picture', 'flies#view=matrix&head=2', async page => {
  await openTable(page);
  const rows = page.locator('#table-body tbody tr');
  assert.equal(await rows.count(), 16);
  assert.deepEqual((await rows.nth(2).locator('th, td').allTextContents()).slice(0, 3), ['flies', '0.000', '1.000']);
  await page.selectOption('#head', '3');
  assert.match(await page.textContent('#table-body caption'), /head 3/);
});
check('the table of an expanded token holds scores and products', 'flies#view=neuron&expanded=1&token=a2', async page => {
  await openTable(page);
  assert.equal(await page.locator('#table-body thead th').count(), 35);
  assert.match(await page.textContent('#table-body caption'), /Query of flies/);
});
