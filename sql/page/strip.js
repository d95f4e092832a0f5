// The text as a row of tokens, one row for each run: what is chosen, found, and,
// as the colour of each token, how much the active token attends to it.
(function (page) {
  'use strict';

  let rows = []; // { source, chips }

  function chip(source, unit, index, current) {
    const token = page.tokenOf(source, index, false);
    return page.el(
      'button',
      {
        type: 'button',
        tabindex: index === current ? '0' : '-1',
        'data-token': unit.first,
        'data-run': source.run.index,
        class: ['chip', unit.special && 'is-special', source.run.pair && (unit.part === 0 ? 'in-a' : 'in-b')]
          .filter(Boolean)
          .join(' '),
        title: `${unit.label}: ${unit.last - unit.first > 1 ? `tokens ${unit.first} to ${unit.last - 1}` : `token ${unit.first}`}`,
        onclick: () => choose(token),
        onpointerenter: event => {
          if (event.pointerType !== 'touch') page.setHover(token);
        },
        onpointerleave: () => page.setHover(null)
      },
      page.el('bdi', {}, unit.label)
    );
  }

  function choose(token) {
    const now = page.get().token,
      same = now && now.run === token.run && now.index === token.index;
    page.set({ token: same ? null : token });
  }

  // Rows follow the units; in a difference they are those of both runs.
  page.drawStrip = function () {
    const view = page.view();
    const sources = view.tokensOnly ? page.sources().tokens : page.sources().shown.flatMap(s => s.parts || s);
    const find =
      page.byId('find') ||
      page.el('input', {
        id: 'find',
        type: 'search',
        placeholder: 'Find  /',
        'aria-label': 'Find a token',
        autocomplete: 'off',
        oninput: page.markFound,
        onkeydown: findKey
      });
    const had =
      document.activeElement === find || page.byId('strip').contains(document.activeElement)
        ? document.activeElement
        : null;
    const where = had && had.dataset.token !== undefined ? [had.dataset.run, had.dataset.token] : null;
    rows = sources.map(source => {
      const current = Math.max(0, page.unitFor(source, page.get().token));
      return { source, chips: source.units.map((u, i) => chip(source, u, i, current)) };
    });
    page.byId('strip').replaceChildren(
      ...rows.map(({ source, chips }, i) =>
        page.el(
          'div',
          { class: 'strip-row' },
          source.name
            ? page.el('span', { class: 'strip-name', title: `${source.run.model}` }, source.name)
            : null,
          page.el(
            'div',
            {
              class: 'chips',
              role: 'group',
              'aria-label': `Tokens${source.name ? ` of ${source.name}` : ''}`
            },
            ...chips
          ),
          i === 0 ? page.el('div', { class: 'find' }, find) : null
        )
      )
    );
    if (had === find) find.focus();
    else if (where)
      page.byId('strip').querySelector(`[data-run="${where[0]}"][data-token="${where[1]}"]`)?.focus();
    page.markFound();
  };

  // Colours of the chips; called on each hover, so it only touches what changed.
  page.drawActive = function () {
    const view = page.view(),
      chosen = page.get().token,
      token = page.activeToken();
    for (const { source, chips } of rows) {
      const active = page.activeIn(source),
        matrix = active && !source.signed ? view.matrix(source) : null,
        n = source.units.length;
      const at = page.unitFor(source, chosen);
      chips.forEach((node, j) => {
        const weight = !matrix ? 0 : active.key ? matrix[j * n + active.unit] : matrix[active.unit * n + j];
        const tint = weight >= 0.005 ? page.weightColor(weight, false) : '';
        if (node.tint !== tint) {
          node.tint = tint;
          if (tint) node.style.setProperty('--tint', tint);
          else node.style.removeProperty('--tint');
          const rgb = tint ? page.weightRgb(weight, false) : null;
          node.classList.toggle('tinted', Boolean(rgb));
          node.classList.toggle('strong', Boolean(rgb) && page.inkOn(rgb) === '#ffffff');
        }
        node.classList.toggle('is-active', Boolean(active) && active.unit === j);
        node.setAttribute('aria-pressed', String(at === j && token !== null));
        node.tabIndex = j === Math.max(0, at) ? 0 : -1;
      });
    }
  };

  // ---- Finding and stepping ---------------------------------------------------

  const matches = () => {
    const text = page.byId('find').value.trim().toLocaleLowerCase();
    if (text === '') return [];
    return rows.flatMap(({ source }) =>
      source.units.flatMap((u, i) => (u.label.toLocaleLowerCase().includes(text) ? [{ source, unit: i }] : []))
    );
  };

  page.markFound = function () {
    const found = matches();
    rows.forEach(({ source, chips }) =>
      chips.forEach((node, i) =>
        node.classList.toggle(
          'is-found',
          found.some(f => f.source === source && f.unit === i)
        )
      )
    );
    page.found = found.length;
  };

  function findKey(event) {
    if (event.key === 'Escape') {
      page.byId('find').value = '';
      page.markFound();
      page.byId('find').blur();
    } else if (event.key === 'Enter') page.nextFound(event.shiftKey ? -1 : 1);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  // Chooses the next token that matches what is looked for.
  page.nextFound = function (step) {
    const found = matches(),
      now = page.get().token;
    if (found.length === 0) {
      page.announce('No such token');
      return;
    }
    const at = now
      ? found.findIndex(f => f.source.run.index === now.run && page.unitFor(f.source, now) === f.unit)
      : -1;
    const next = found[at < 0 ? (step > 0 ? 0 : found.length - 1) : (at + step + found.length) % found.length];
    page.set({ token: page.tokenOf(next.source, next.unit, false) });
    page.announce(`${next.source.units[next.unit].label}, ${found.indexOf(next) + 1} of ${found.length}`);
  };

  // Chooses the token `step` places on.
  page.stepToken = function (step) {
    const now = page.get().token,
      row = rows.find(r => now && r.source.run.index === now.run) || rows[0];
    const n = row.source.units.length,
      at = now ? page.unitFor(row.source, now) : -1;
    if (n === 0) return;
    const unit = at < 0 ? (step > 0 ? 0 : n - 1) : page.clamp(at + step, 0, n - 1);
    page.set({ token: page.tokenOf(row.source, unit, Boolean(now && now.key)) });
    row.chips[unit].scrollIntoView({ block: 'nearest' });
    if (document.activeElement && document.activeElement.classList.contains('chip')) row.chips[unit].focus();
  };
})(window.bertsql);
