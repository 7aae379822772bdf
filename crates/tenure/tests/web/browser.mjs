// One scene in a real browser. usage: node browser.mjs SCENE TENURE PROJECT PACKAGES CHROMIUM SCREENS
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import fs from 'node:fs';
import http from 'node:http';
import { createRequire } from 'node:module';
import path from 'node:path';

const [scene, tenure, root, packages, executablePath, screens] = process.argv.slice(2);
const require = createRequire(path.join(packages, 'x.js'));
const { chromium } = require('playwright-core');
const axe = require('axe-core').source;
const LIMIT = 30_000;

const run = (...words) => JSON.parse(execFileSync(tenure, ['--json', ...words], { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })).data;
const show = key => run('tasks', 'show', key).task;

async function until(what, condition) {
  const end = Date.now() + LIMIT;
  while (!(await condition())) {
    if (Date.now() > end) throw new Error(`waited in vain until ${what}`);
    await new Promise(done => setTimeout(done, 30));
  }
}

class Server {
  static async start(...more) {
    const server = new Server();
    server.child = spawn(tenure, ['web', ...more], { cwd: root, stdio: ['ignore', 'ignore', 'pipe'] });
    server.said = '';
    server.child.stderr.on('data', data => { server.said += data; });
    const link = () => /within a minute: (http:\S+)/.exec(server.said)?.[1];
    await until('the link is printed', link);
    server.link = link();
    server.url = new URL(server.link).origin;
    return server;
  }

  async kill(signal = 'SIGKILL') {
    const ended = new Promise(done => this.child.once('exit', done));
    this.child.kill(signal);
    await ended;
  }
}

const browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-dev-shm-usage',
  // A name of another site that leads to this machine.
  '--host-resolver-rules=MAP rebound.example 127.0.0.1'] });
const problems = [];

async function context(options = {}) {
  const made = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
  made.setDefaultTimeout(LIMIT);
  made.on('page', page => {
    page.on('dialog', dialog => { problems.push(`a dialog: ${dialog.message()}`); dialog.dismiss(); });
    page.on('pageerror', error => problems.push(`an error of the script: ${error}`));
    page.on('console', message => {
      if (/Content Security Policy|violates/.test(message.text())) problems.push(message.text());
    });
  });
  return made;
}

async function signIn(made, server) {
  const page = await made.newPage();
  await page.goto(server.link);
  await page.waitForSelector('#columns');
  await live(page);
  return page;
}

const live = page => page.waitForFunction(() => document.querySelector('#live').dataset.state === 'live');
const open = (page, key) => page.goto(page.url().replace(/(\/p\/\w+\/).*/, `$1t/${key}`)).then(() => live(page));
const said = page => page.textContent('#said');

const scenes = {
  // A page of another port of the same name, and a name that was made to lead here, reach nothing with the person's browser.
  async strangers() {
    run('tasks', 'add', 'The secret plan');
    const server = await Server.start();
    const made = await context(), page = await signIn(made, server);
    const board = page.url(), { hostname, port } = new URL(board);
    await open(page, 'T1');
    const fields = await page.evaluate(() => Object.fromEntries(new FormData(document.querySelector('#do-skip').form)));
    const body = new URLSearchParams(fields).toString();
    const neighbour = http.createServer((request, answer) => {
      answer.setHeader('content-type', 'text/html');
      answer.end('<!doctype html><form method="post"></form>');
    });
    await new Promise(done => neighbour.listen(0, '127.0.0.1', done));
    const stranger = await made.newPage();
    await stranger.goto(`http://${hostname}:${neighbour.address().port}/`);
    const tried = await stranger.evaluate(async ([board, body]) => {
      const results = [];
      const send = async (address, options) => {
        try { results.push(await (await fetch(address, { credentials: 'include', ...options })).text()); } catch { results.push(''); }
      };
      const headers = { 'content-type': 'application/x-www-form-urlencoded' };
      await send(board);
      await send(board, { mode: 'no-cors' });
      await send(board + 'do/skip', { method: 'POST', mode: 'no-cors', headers, body });
      await send(board + 'do/skip', { method: 'POST', headers: { ...headers, 'x-tenure-csrf': '0' }, body });
      results.push(await new Promise(done => {
        const source = new EventSource(board + 'changes', { withCredentials: true });
        source.onerror = () => { source.close(); done(''); };
        source.onopen = () => { source.close(); done('a stream'); };
      }));
      return results;
    }, [board, body]);
    assert.deepEqual(tried, ['', '', '', '', '']);
    // With every field of the real form, a form of the other port is refused as well.
    const answered = stranger.waitForResponse(response => response.url().endsWith('/do/skip'));
    await stranger.evaluate(([board, fields]) => {
      const form = document.forms[0];
      form.action = board + 'do/skip';
      for (const [name, value] of Object.entries(fields)) {
        const field = Object.assign(document.createElement('input'), { name, value });
        form.append(field);
      }
      form.submit();
    }, [board, fields]);
    assert.ok([401, 403].includes((await answered).status()));
    assert.equal(show('T1').status, 'pending');
    const rebound = await made.newPage();
    for (const address of ['/', '/login', new URL(board).pathname]) {
      const answer = await rebound.goto(`http://rebound.example:${port}${address}`);
      assert.equal(answer.status(), 403);
      assert.ok(!(await rebound.content()).includes('secret plan'));
    }
    neighbour.close();
    await server.kill('SIGTERM');
  },

  // What other processes change appears, and nothing that the person does is disturbed.
  async live() {
    run('tasks', 'add', 'The first');
    const server = await Server.start();
    const made = await context(), page = await signIn(made, server);
    assert.match(page.url(), /^http:\/\/tenure-[0-9a-f]{8}\.localhost:\d+\/p\//);
    run('tasks', 'add', 'From another process');
    await page.waitForSelector('text=From another process');
    for (let at = 0; at < 30; at++) run('tasks', 'add', `Filler ${at}`);
    await page.waitForSelector('text=Filler 29');
    await page.fill('#q', 'half typ');
    await page.focus('#q');
    await page.evaluate(() => scrollTo(0, 300));
    const before = await page.evaluate(() => scrollY);
    run('tasks', 'add', 'While typing');
    await page.waitForSelector('text=While typing');
    const after = await page.evaluate(() => [document.activeElement.id, document.activeElement.value, scrollY]);
    assert.deepEqual(after, ['q', 'half typ', before]);
    // A focused link stays focused when tasks come and go before it.
    await page.focus('#task-T20 a');
    run('tasks', 'skip', 'T2');
    await page.waitForSelector('#task-T2', { state: 'detached' });
    assert.equal(await page.evaluate(() => document.activeElement.textContent), 'Filler 17');
    // A hidden page has no stream.
    await page.evaluate(() => {
      Object.defineProperty(document, 'hidden', { configurable: true, get: () => true });
      document.dispatchEvent(new Event('visibilitychange'));
    });
    assert.equal(await page.textContent('#live'), 'paused');
    run('tasks', 'add', 'While hidden');
    await page.evaluate(() => {
      Object.defineProperty(document, 'hidden', { configurable: true, get: () => false });
      document.dispatchEvent(new Event('visibilitychange'));
    });
    await page.waitForSelector('text=While hidden');
    // Without the script, pages can be read and forms are sent.
    const plain = await browser.newContext({ javaScriptEnabled: false, storageState: await made.storageState() });
    const read = await plain.newPage();
    await read.goto(page.url());
    await read.click('#task-T1 a');
    await read.click('#do-skip');
    await read.waitForURL(/\/t\/T1$/);
    assert.equal(show('T1').status, 'skipped');
    // The live log of an agent.
    run('tasks', 'add', 'Logged', '--id', 'L1', '-d', 'do: print the first line\ndo: wait go\ndo: print the second line\ndo: wait end', '--priority', '1');
    run('runners', 'start', '--task', 'L1');
    await open(page, 'L1');
    await page.waitForSelector('#log >> text=the first line');
    execFileSync('sh', ['-c', 'touch "$(dirname "$(ls -t "$1"/pid-* | head -1)")/go"', 'sh', await shared()]);
    await page.waitForSelector('#log >> text=the second line');
    run('runners', 'stop');
    await server.kill('SIGTERM');
  },

  async verbs() {
    for (const way of ['M', 'K']) {
      for (const key of ['ED', 'CL', 'EV', 'SK', 'AP', 'RE', 'CO']) run('tasks', 'add', `Task ${way}${key}`, '--id', way + key, '--priority', '500');
      for (const key of ['AP', 'RE']) run('tasks', 'update', way + key, '--status', 'review');
      run('tasks', 'claim', way + 'EV', '--agent', 'ann');
      run('tasks', 'add', `Task ${way}LA`, '--id', way + 'LA');
      run('tasks', 'claim', way + 'LA', '--agent', 'ann', '--ttl', '1s');
    }
    const server = await Server.start();
    const made = await context(), page = await signIn(made, server);
    const board = page.url();
    const mouse = (verb, before) => async key => { await open(page, key); if (before) await before(); await page.click(`#do-${verb}`); };
    const press = (key, before) => async task => { await open(page, task); if (before) await before(); await page.keyboard.press(key); };
    const reaches = (key, test) => until(`${key} has changed`, () => test(show(key)));

    // Add.
    await page.click('#new summary');
    await page.fill('#new input[name=title]', 'Added by mouse');
    await page.click('#new button');
    await page.waitForSelector('#columns >> text=Added by mouse');
    await page.keyboard.press('n');
    await page.keyboard.type('Added by keyboard');
    await page.keyboard.press('Enter');
    await page.waitForSelector('#columns >> text=Added by keyboard');
    // Edit.
    await open(page, 'MED');
    await page.click('#edit summary');
    await page.fill('#edit input[name=title]', 'Edited by mouse');
    await page.click('#do-edit');
    await reaches('MED', task => task.title === 'Edited by mouse');
    await open(page, 'KED');
    await page.keyboard.press('e');
    await page.keyboard.press('Control+A');
    await page.keyboard.type('Edited by keyboard');
    await page.keyboard.press('Enter');
    await reaches('KED', task => task.title === 'Edited by keyboard');
    // Claim and release.
    for (const [way, claim, release] of [['M', mouse('claim'), mouse('release')], ['K', press('c'), press('r')]]) {
      await claim(way + 'CL');
      await reaches(way + 'CL', task => task.lease?.holder.id.endsWith(':web'));
      await release(way + 'CL');
      await reaches(way + 'CL', task => task.status === 'pending' && !task.lease);
    }
    // Take over a lease that has lapsed.
    for (const [way, claim] of [['M', mouse('claim')], ['K', press('c')]]) {
      await open(page, way + 'LA');
      await page.waitForSelector('.pill:has-text("Lapsed")');
      await claim(way + 'LA');
      await reaches(way + 'LA', task => task.lease?.holder.id.endsWith(':web'));
    }
    // Evict.
    await open(page, 'MEV');
    await page.click('#evict summary');
    await page.click('#do-evict');
    await reaches('MEV', task => !task.lease);
    await press('v')('KEV');
    await page.keyboard.press('Enter');
    await reaches('KEV', task => !task.lease);
    // Skip and retry.
    for (const [way, skip, retry] of [['M', mouse('skip'), mouse('retry')], ['K', press('s'), press('t')]]) {
      await skip(way + 'SK');
      await reaches(way + 'SK', task => task.status === 'skipped');
      await retry(way + 'SK');
      await reaches(way + 'SK', task => task.status === 'pending');
    }
    // Approve, and reject with a remark.
    await mouse('approve')('MAP');
    await reaches('MAP', task => task.status === 'completed');
    await press('a')('KAP');
    await reaches('KAP', task => task.status === 'completed');
    await mouse('reject', () => page.fill('#remark', 'The tests are missing'))('MRE');
    await reaches('MRE', task => task.status === 'pending');
    // The remark is where the task stands, and in its history.
    await page.waitForSelector('#why ~ .remark:has-text("The tests are missing")');
    await page.waitForSelector('td .remark:has-text("The tests are missing")');
    await press('x')('KRE');
    await until('a remark is asked for', async () => /remark/.test(await said(page)));
    assert.equal(show('KRE').status, 'review');
    await page.keyboard.type('The tests are missing');
    await page.keyboard.press('Escape');
    await page.keyboard.press('x');
    await reaches('KRE', task => task.status === 'pending');
    // What has changed since it was shown is refused, and what was typed stays.
    await open(page, 'MCO');
    await page.click('#edit summary');
    await page.fill('#edit input[name=title]', 'Mine');
    run('tasks', 'update', 'MCO', '--title', 'Theirs');
    await page.waitForSelector('h1:has-text("Theirs")');
    await page.click('#do-edit');
    await until('it is refused', async () => /has changed/.test(await said(page)));
    assert.equal(show('MCO').title, 'Theirs');
    assert.equal(await page.inputValue('#edit input[name=title]'), 'Mine');
    await page.waitForFunction(() => !document.querySelector('[data-sending]'));
    await page.click('#do-edit');
    await reaches('MCO', task => task.title === 'Mine');
    // Runners.
    for (const [key, stop] of [['M', 'click'], ['K', 'press']]) {
      run('tasks', 'add', 'Long work', '--id', `${key}RUN`, '-d', 'do: wait end', '--priority', stop === 'click' ? '1' : '2');
      await page.goto(board.replace(/\/$/, '/runners'));
      await live(page);
      if (stop === 'click') {
        await page.click('#start summary');
        await page.click('#start button');
      } else {
        await page.keyboard.press('n');
        await page.keyboard.press('Enter');
      }
      await page.waitForSelector('[id^=stop-]');
      await reaches(`${key}RUN`, task => task.status === 'in_progress');
      if (stop === 'click') await page.click('[id^=stop-]');
      else { await page.focus('[id^=stop-]'); await page.keyboard.press('Enter'); }
      await until('it has stopped', () => run('status').runners.length === 0);
      run('tasks', 'skip', `${key}RUN`);
    }
    // The shortcuts are listed, and every page can be reached by its number.
    await page.keyboard.press('?');
    assert.match(await page.textContent('#shortcuts'), /Next task/);
    await page.keyboard.press('Escape');
    await page.keyboard.press('1');
    await page.waitForURL(board);
    await page.keyboard.press('j');
    assert.equal(await page.evaluate(() => document.activeElement.matches('a.task')), true);
    await server.kill('SIGTERM');
  },

  async tabs() {
    for (let at = 0; at < 5; at++) run('tasks', 'add', `Task ${at}`);
    let server = await Server.start();
    const made = await context(), first = await signIn(made, server);
    const pages = [first];
    while (pages.length < 8) {
      const page = await made.newPage();
      await page.goto(first.url());
      await live(page);
      pages.push(page);
    }
    const agree = async text => {
      for (const page of pages) await page.waitForSelector(`#columns >> text=${text}`);
      await first.reload();
      await live(first);
      const shown = await Promise.all(pages.map(page => page.evaluate(() =>
        [...document.querySelectorAll('#columns .card')].map(card => card.id + card.textContent.replace(/\d+[smhd].*/, '')).join())));
      for (const one of shown) assert.equal(one, shown[0]);
    };
    run('tasks', 'add', 'For all tabs');
    await agree('For all tabs');
    await server.kill();
    server = await Server.start();
    assert.equal(new URL(first.url()).origin, server.url);
    run('tasks', 'add', 'After the restart');
    await agree('After the restart');
    await server.kill('SIGTERM');
  },

  async looks() {
    const hostile = '</title><script>alert(1)</script><img src=x onerror=alert(1)>" onfocus="alert(1)" \u202Eevil\u202C ' + 'W'.repeat(120);
    run('sections', 'add', 'Backend');
    run('sections', 'add', '<b>Front-end</b> ' + 'x'.repeat(60));
    run('tasks', 'add', 'Store passwords with argon2', '--section', 'Backend', '--label', 'security');
    run('tasks', 'add', 'Rate-limit the login page', '--section', 'Backend', '--depends-on', 'T1');
    run('tasks', 'add', hostile, '--id', 'EVIL', '--section', 'Backend', '-d', `${hostile}\n</textarea></form>${hostile}\n` + 'do: show log\ndo: exit 3', '--label', '<i>label</i>', '--priority', '1');
    run('tasks', 'add', 'Translate the settings page', '--label', 'ui');
    run('tasks', 'add', 'Remove the old importer');
    run('tasks', 'add', 'Describe the release in the changelog');
    run('msg', 'send', '-m', hostile, '--task', 'EVIL', '--agent', 'ann');
    execFileSync('sh', ['-c', 'mkdir -p "$1"; printf "%s\\n" "$2" "$(printf "y%.0s" $(seq 400))" > "$1/log"', 'sh', await shared(), hostile]);
    try { execFileSync(tenure, ['runners', 'start', '--foreground', '--task', 'EVIL'], { cwd: root, stdio: 'ignore' }); } catch { /* it fails */ }
    run('tasks', 'claim', 'T1', '--agent', 'claude-reviewer-of-the-backend-7f3a');
    run('tasks', 'claim', 'T3', '--agent', 'codex-1');
    run('tasks', 'update', 'T4', '--status', 'review');
    const server = await Server.start();
    const made = await context(), home = await signIn(made, server);
    const board = home.url(), state = await made.storageState();
    const pages = { board, sections: board + '?by=section&done=1', task: board + 't/EVIL', held: board + 't/T1', runners: board + 'runners', queue: board + 'queue', accounts: board + 'accounts', jobs: board + 'jobs', events: board + 'events', projects: server.url + '/projects', login: server.url + '/login' };
    const looks = {};
    for (const colorScheme of ['light', 'dark']) {
      for (const width of [360, 1280]) {
        const looked = await context({ colorScheme, storageState: state, viewport: { width, height: width === 360 ? 740 : 800 }, reducedMotion: 'reduce' });
        const page = await looked.newPage();
        for (const [name, url] of Object.entries(pages)) {
          await page.goto(url);
          await page.waitForLoadState('load');
          const [wide, shown] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
          assert.ok(wide <= shown, `${name} is ${wide} px wide on ${shown}`);
          await page.evaluate(axe);
          const found = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ['violations'] }));
          const told = found.violations.map(one => `${one.id}: ${one.nodes.map(node => node.html + ' ' + node.failureSummary).slice(0, 3).join(' | ')}`);
          assert.deepEqual(told, [], `${name}, ${colorScheme}, ${width} px`);
          const layout = await page.evaluate(measureLayout);
          assert.deepEqual(layout.defects, [], `${name}, ${colorScheme}, ${width} px`);
          const text = masked(await page.locator('body').ariaSnapshot());
          const kept = looks[name] ??= { text };
          if (kept.text !== text) assert.deepEqual(text.split('\n'), kept.text.split('\n'), `the text of ${name} depends on the width or the colours`);
          (kept.places ??= {})[width] = layout.places;
          (kept.colours ??= {})[colorScheme] = layout.colours;
          await page.screenshot({ path: path.join(screens, `${name}-${width}-${colorScheme}.png`), fullPage: true });
        }
        await looked.close();
      }
    }
    assert.deepEqual(Object.entries(looks).flatMap(([name, look]) => differences(name, look)), [], 'TENURE_UPDATE_LOOKS=1 stores what is right');
    const wide = await context({ storageState: state, viewport: { width: 3840, height: 2160 } });
    const page = await wide.newPage();
    await page.goto(board);
    const { defects } = await page.evaluate(measureLayout);
    assert.deepEqual(defects, [], 'the board at 3840 px');
    await page.screenshot({ path: path.join(screens, 'board-3840-light.png') });
    await server.kill('SIGTERM');
  },
};

// What a page looks like, without what differs between machines: fonts and heights. Runs in the page.
function measureLayout() {
  const visible = element => element.checkVisibility({ visibilityProperty: true, opacityProperty: true }) && !element.closest('.unseen, .skip, dialog');
  const scrolls = (element, to) => {
    for (let at = element; at && at !== to; at = at.parentElement) if (/auto|scroll|hidden|clip/.test(getComputedStyle(at).overflowX)) return true;
    return false;
  };
  const clamp = element => element.closest('.task, .title, .clamp, .log, .scroll, .project, nav');
  const defects = [], texts = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode, element = node.parentElement;
    if (!node.data.trim() || !visible(element)) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    const what = node.data.trim().slice(0, 40);
    for (const box of range.getClientRects()) {
      if (box.width < 1) continue;
      if ((box.left < -1 || box.right > innerWidth + 1) && !scrolls(element)) defects.push(`outside of the page: ${what}`);
      // What is clamped is cut off by its box, and may be larger than what is seen of it.
      if (!clamp(element)) texts.push({ what, node, box });
    }
  }
  for (let a = 0; a < texts.length; a++) {
    for (let b = a + 1; b < texts.length; b++) {
      const [one, other] = [texts[a], texts[b]];
      if (one.node === other.node) continue;
      const wide = Math.min(one.box.right, other.box.right) - Math.max(one.box.left, other.box.left);
      const high = Math.min(one.box.bottom, other.box.bottom) - Math.max(one.box.top, other.box.top);
      // Lines of text are allowed to touch.
      if (wide > 2 && high > 4) defects.push(`overlap: ${one.what} / ${other.what}`);
    }
  }
  for (const control of document.querySelectorAll('button, input:not([type=checkbox]), select, textarea, summary, nav a')) {
    const box = control.getBoundingClientRect();
    if (visible(control) && box.width && (box.height < 24 || box.width < 24)) defects.push(`too small to press: ${control.outerHTML.slice(0, 80)}`);
  }
  const places = {}, colours = {};
  for (const selector of ['.bar', '.bar nav', 'main', '.stuck', '.attention', '.held', '.columns', '.column', '.card', '.two', '.log', '.scroll', '.problem']) {
    const shown = [...document.querySelectorAll(selector)].filter(visible);
    if (!shown.length) continue;
    // To eighths of the page, so that neither a scroll bar nor a font changes them.
    const eighths = [...new Set(shown.map(one => one.getBoundingClientRect()).map(box => [box.left, box.right].map(at => Math.round(at * 8 / innerWidth)).join('-')))];
    places[selector] = eighths.sort().join(' ');
  }
  for (const selector of ['body', '.bar', '.bar nav a[aria-current]', 'a.task', '.card', '.column', '.kind', '.pill', '.stuck', '.dim', '.log', 'button', 'button.danger', 'input', 'th', '.problem']) {
    const found = [...document.querySelectorAll(selector)].find(visible);
    if (!found) continue;
    const style = getComputedStyle(found);
    colours[selector] = `${style.color} on ${style.backgroundColor}`;
  }
  return { defects: [...new Set(defects)], places, colours };
}

// Text without times, names of the machine and random parts.
function masked(text) {
  return text
    .replaceAll(root, 'ROOT')
    .replace(/\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/g, 'UUID')
    .replace(/\bA?[0-9a-fA-F]{8,}\b/g, 'ID')
    .replace(/\b[\w.-]+@[\w.-]+(:web)?/g, 'USER@HOST')
    .replace(/\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(\.\d+)?Z?/g, 'TIME')
    .replace(/\b\d\d:\d\d(:\d\d)?\b/g, 'TIME')
    .replace(/\b(\d+(\.\d+)?(ms|s|m|h|d) ?)+(?=\W|$)/g, 'AGE')
    .replace(/- status: (live|connecting|paused)/, '- status: LIVE')
    .replace(/\/p\/[0-9a-f]{12}/g, '/p/ID')
    .replace(/localhost:\d+/g, 'localhost:PORT');
}

// The lines that differ from the stored look.
function differences(name, look) {
  const folder = path.join(import.meta.dirname, 'looks'), file = path.join(folder, `${name}.txt`);
  const listed = (title, map) => Object.entries(map).map(([of, values]) =>
    `## ${title} ${of}\n` + Object.entries(values).map(([selector, value]) => `${selector}: ${value}\n`).join('')).join('\n');
  const text = `# ${name}\n\n${look.text}\n\n${listed('places in eighths of the width at', look.places)}\n${listed('colours', look.colours)}`;
  fs.writeFileSync(path.join(screens, `${name}.txt`), text);
  if (process.env.TENURE_UPDATE_LOOKS) {
    fs.mkdirSync(folder, { recursive: true });
    fs.writeFileSync(file, text);
  }
  const stored = fs.existsSync(file) ? fs.readFileSync(file, 'utf8') : '';
  if (text === stored) return [];
  const [now, before] = [text.split('\n'), stored.split('\n')];
  return [...before.filter(line => !now.includes(line)).map(line => `${name} lacks ${line}`),
    ...now.filter(line => !before.includes(line)).map(line => `${name} has ${line}`), `${name} differs from looks/${name}.txt`];
}

/// The folder that the pretend agent shares with the test.
async function shared() {
  const presets = execFileSync('cat', [path.join(root, '.tenure/config.yaml')], { encoding: 'utf8' });
  return /PRETEND: '([^']+)'/.exec(presets)[1];
}

const hung = setTimeout(() => { console.error('the scene hangs'); process.exit(1); }, 240_000);
try {
  await scenes[scene]();
  assert.deepEqual(problems, []);
  console.log('the scene is over');
} finally {
  clearTimeout(hung);
  await browser.close();
}
