// Keeps a page up to date, sends its forms, and adds keyboard shortcuts. Reading works without it.
'use strict';
(() => {
  const find = (selector, root = document) => root.querySelector(selector);
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const { project, task, page } = document.body.dataset;

  if (page === 'login') {
    // The code of a link is behind the #, so it is sent to no server and stays in no log.
    const code = location.hash.slice(1);
    if (code) {
      history.replaceState(null, '', location.pathname);
      find('#code').value = code;
      find('form').submit();
    }
    return;
  }

  const live = find('#live'), said = find('#said');
  const state = (name, text) => { live.dataset.state = name; live.textContent = text; };
  const say = (text, bad) => { said.textContent = text; said.classList.toggle('bad', !!bad); };

  // Changes the nodes of `from` into those of `to`. What a person has typed, opened, scrolled or focused stays as it is.
  const isDirty = form => all('input,textarea,select', form).some(field =>
    field.type === 'checkbox' ? field.checked !== field.defaultChecked
      : field.tagName === 'SELECT' ? [...field.options].some(o => o.selected !== o.defaultSelected)
      : field.value !== field.defaultValue);
  const keeps = (node, name) => name === 'open' && (node.tagName === 'DETAILS' || node.tagName === 'DIALOG');
  const isSame = (a, b) => a.nodeType === b.nodeType && a.nodeName === b.nodeName && a.id === b.id;
  function patch(from, to, force) {
    if (from.nodeType !== 1) {
      if (from.nodeValue !== to.nodeValue) from.nodeValue = to.nodeValue;
      return;
    }
    // A form that is being filled in keeps what it was shown for; the server refuses it if that has changed.
    if (from.tagName === 'FORM' && !force && isDirty(from)) return;
    for (const { name } of [...from.attributes]) {
      if (!to.hasAttribute(name) && !keeps(from, name)) from.removeAttribute(name);
    }
    for (const { name, value } of [...to.attributes]) {
      if (from.getAttribute(name) !== value && !keeps(from, name)) from.setAttribute(name, value);
    }
    children(from, to, force);
  }
  function children(from, to, force) {
    const wanted = [...to.childNodes], ids = new Set(wanted.map(node => node.id).filter(Boolean));
    const byId = new Map([...from.childNodes].filter(node => node.id).map(node => [node.id, node]));
    let at = from.firstChild;
    for (const node of wanted) {
      // Nodes that are gone must not be turned into others.
      while (at && at.id && !ids.has(at.id)) { const gone = at; at = at.nextSibling; gone.remove(); }
      const match = node.id ? byId.get(node.id) : at && !at.id && isSame(at, node) ? at : null;
      if (match && isSame(match, node)) {
        if (match === at) at = at.nextSibling; else from.insertBefore(match, at);
        patch(match, node, force);
      } else {
        from.insertBefore(document.importNode(node, true), at);
      }
    }
    while (at) { const gone = at; at = at.nextSibling; gone.remove(); }
  }

  // One read at a time. Ends after a read that began after the call.
  let reading, wanted, forced, last;
  function refresh(force) {
    wanted = true;
    forced ||= force;
    return reading ||= readWanted();
  }
  async function readWanted() {
    while (wanted) {
      const force = forced;
      wanted = forced = false;
      // The stream reads again later.
      await read(force).catch(() => {});
    }
    reading = null;
  }
  async function read(force) {
    const answer = await fetch(location.href, { headers: { 'x-tenure-script': '1' } });
    if (answer.status === 401) {
      disconnect();
      state('lost', 'signed out');
      say('The session has ended. Open a new link from the terminal.', true);
      return;
    }
    // An error must not replace what was typed.
    if (!answer.ok && answer.status !== 404) return state('lost', 'out of date');
    if (source) state('live', 'live');
    const text = await answer.text();
    if (text !== last || force) {
      last = text;
      show(new DOMParser().parseFromString(text, 'text/html'), force);
    }
  }
  function show(next, force) {
    const active = document.activeElement, id = active?.id, log = find('#log');
    const follows = log && log.scrollHeight - log.scrollTop - log.clientHeight < 40;
    for (const part of ['#main', 'header.bar nav']) {
      const from = find(part), to = find(part, next);
      if (from && to) patch(from, to, force);
    }
    document.title = next.title;
    if (id && document.activeElement !== active) find('#' + CSS.escape(id))?.focus({ preventScroll: true });
    if (follows) { const now = find('#log'); if (now) now.scrollTop = now.scrollHeight; }
    times();
  }

  // One stream per page, while the page is seen.
  let source, slow, retry;
  function disconnect() {
    clearInterval(slow);
    clearTimeout(retry);
    slow = retry = null;
    source?.close();
    source = null;
  }
  function connect() {
    if (!project || document.hidden) return;
    disconnect();
    source = new EventSource(`/p/${project}/changes` + (task ? '?task=' + encodeURIComponent(task) : ''));
    source.onopen = () => state('live', 'live');
    source.addEventListener('changed', () => refresh());
    // More windows than streams: this one reads at intervals until it is looked at.
    source.addEventListener('crowded', () => {
      disconnect();
      state('live', 'every 3 s');
      slow = setInterval(() => refresh(), 3000);
    });
    source.onerror = () => {
      disconnect();
      state('lost', 'reconnecting');
      retry = setTimeout(connect, 1000);
      refresh();
    };
  }
  document.addEventListener('visibilitychange', () => {
    if (document.hidden) { disconnect(); state('', 'paused'); } else connect();
  });
  addEventListener('focus', () => { if (slow) connect(); });
  addEventListener('pagehide', disconnect);
  addEventListener('pageshow', event => { if (event.persisted) connect(); });

  // Ages, and times in the reader's zone.
  function times() {
    const now = Date.now();
    for (const node of all('time[data-ago]')) {
      const seconds = Math.round((now - Date.parse(node.dateTime)) / 1000), far = Math.abs(seconds);
      const text = far < 60 ? far + 's' : far < 3600 ? Math.floor(far / 60) + 'm'
        : far < 86400 ? Math.floor(far / 3600) + 'h ' + Math.floor(far % 3600 / 60) + 'm' : Math.floor(far / 86400) + 'd';
      const shown = seconds < 0 ? 'in ' + text : text + ' ago';
      if (node.textContent !== shown) node.textContent = shown;
      node.title = new Date(node.dateTime).toLocaleString();
    }
    for (const node of all('time[data-at]')) {
      node.textContent = new Date(node.dateTime).toLocaleTimeString([], { hour12: false });
    }
  }
  setInterval(() => { if (!document.hidden) times(); }, 5000);

  // Forms are sent by the script, and the page stays.
  document.addEventListener('submit', async event => {
    const form = event.target, button = event.submitter;
    if (form.method !== 'post' || form.id === 'out') return;
    event.preventDefault();
    if (form.dataset.sending) return;
    if (button?.id === 'do-reject' && !form.remark.value.trim()) {
      say('Say in the remark what is missing.', true);
      form.remark.focus();
      return;
    }
    form.dataset.sending = '1';
    say('Working…');
    try {
      const answer = await fetch(button?.hasAttribute('formaction') ? button.formAction : form.action, {
        method: 'POST',
        headers: { 'x-tenure-script': '1', 'x-tenure-csrf': document.body.dataset.csrf },
        body: new URLSearchParams(new FormData(form)),
      });
      const text = await answer.text();
      let message = text.trim(), context = [];
      try { ({ message, context = [] } = JSON.parse(text)); } catch { /* a plain sentence */ }
      say([message, ...context].join(' '), !answer.ok);
      if (answer.ok) {
        const open = form.closest('details');
        form.reset();
        if (open) { open.open = false; find('summary', open).focus(); }
      }
      if (answer.ok || answer.status === 409) await refresh(true);
    } catch {
      say('The server does not answer.', true);
    } finally {
      delete form.dataset.sending;
    }
  });

  // Shortcuts: every control names its own.
  const keyed = () => all('[aria-keyshortcuts]').filter(node => node.offsetParent || node.getClientRects().length);
  const help = find('#help'), keys = find('#keys');
  function explain() {
    const rows = [['?', 'Show this'], ['j', 'Next task'], ['k', 'Previous task'], ['Esc', 'Leave a field'],
      ...keyed().map(node => [node.getAttribute('aria-keyshortcuts'), node.dataset.does])];
    find('#shortcuts').replaceChildren(...rows.flatMap(([key, does]) => {
      const term = document.createElement('dt'), what = document.createElement('dd'), cap = document.createElement('kbd');
      cap.textContent = key;
      term.append(cap);
      what.textContent = does;
      return [term, what];
    }));
    help.showModal();
  }
  keys.hidden = false;
  keys.addEventListener('click', explain);
  addEventListener('keydown', event => {
    const { target, key } = event;
    if (event.ctrlKey || event.metaKey || event.altKey || help.open) return;
    if (target.matches('input,textarea,select')) {
      if (key === 'Escape') target.blur();
      return;
    }
    if (key === '?') { event.preventDefault(); explain(); return; }
    if (key === 'j' || key === 'k') {
      const links = all('main a.task'), at = links.indexOf(document.activeElement);
      const next = links[at < 0 ? (key === 'j' ? 0 : links.length - 1) : at + (key === 'j' ? 1 : -1)];
      if (next) { event.preventDefault(); next.focus(); }
      return;
    }
    const node = keyed().find(one => one.getAttribute('aria-keyshortcuts') === key);
    if (!node) return;
    event.preventDefault();
    if (node.matches('input,select')) { node.focus(); return; }
    node.click();
    if (node.matches('summary')) find('input:not([type=hidden]),textarea,button', node.parentElement)?.focus();
  });

  times();
  const log = find('#log');
  if (log) log.scrollTop = log.scrollHeight;
  connect();
})();
