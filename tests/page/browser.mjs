// Opens pages of build/page-tests in Chromium and counts checks, in TAP.
//
// A check gets a page of its own. It fails by throwing, and also when the page
// wrote an error or warning to its console, threw, or asked for anything but
// itself.
import { createRequire } from 'node:module';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

const { chromium } = createRequire(resolve('build/node/package.json'))('playwright-core');
const folder = pathToFileURL(resolve('build/page-tests')).href;
const checks = [];

// check('what is true', 'flies#view=model' or ['flies', { colorScheme: 'dark' }], async page => …)
export const check = (name, where, run) => checks.push({ name, where, run, alone: false });
export const checkAlone = (name, where, run) => checks.push({ name, where, run, alone: true });

export const state = page => page.evaluate(() => window.bertsql.state());
// What was drawn last: one entry for each figure.
export const drawn = async page => {
  await page.evaluate(() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done))));
  return page.evaluate(() => window.bertsql.drawn());
};
// Pixels of the upper canvas of a figure, as the pointer finds them.
// Opens the table of numbers; it is filled after the click, when the browser says that it is open.
export const openTable = async page => {
  await page.click('#table summary');
  await page.waitForSelector('#table-body tbody tr');
};

export const canvasBox = (page, figure = 0) => page.locator('#figures .upper').nth(figure).boundingBox();

async function runOne(browser, { where, run }) {
  const [address, options] = Array.isArray(where) ? where : [where, {}];
  const [name, hash] = address.split('#'), url = `${folder}/${name}.html`, troubles = [];
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, colorScheme: 'light', acceptDownloads: true, ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(45000);
  page.on('console', message => { if (['error', 'warning'].includes(message.type())) troubles.push(`console: ${message.text()}`); });
  page.on('pageerror', error => troubles.push(`thrown: ${error.stack}`));
  page.on('request', request => { if (request.url().split('#')[0] !== url && !request.url().startsWith('blob:')) troubles.push(`request: ${request.url()}`); });
  try {
    await page.goto(hash ? `${url}#${hash}` : url);
    await run(page, context);
    await page.waitForTimeout(20);
    if (troubles.length > 0) throw new Error(troubles.join('\n'));
  } finally {
    await context.close();
  }
}

export async function runAll() {
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM || '/usr/bin/chromium',
    args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking', '--disable-component-update', '--disable-sync', '--no-first-run']
  });
  const only = process.env.CHECK || '';
  const list = checks.filter(c => c.name.includes(only));
  let failed = 0, number = 0;
  console.log(`1..${list.length}`);
  const lane = async queue => {
    for (let one = queue.shift(); one; one = queue.shift()) {
      const problem = await runOne(browser, one).then(() => null, error => error);
      const line = `${problem ? 'not ok' : 'ok'} ${++number} - ${one.name}`;
      if (problem) failed++;
      console.log(problem ? `${line}\n${String(problem.stack || problem).replace(/^/gm, '# ')}` : line);
    }
  };
  const together = list.filter(c => !c.alone);
  await Promise.all([lane(together), lane(together)]);
  await lane(list.filter(c => c.alone));
  await browser.close();
  process.exit(failed > 0 ? 1 : 0);
}
