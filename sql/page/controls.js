// Buttons, choices and notices around the picture. They are made once; `sync`
// makes them agree with the state.
(function (page) {
  'use strict';

  const syncs = [];
  const field = (label, control) => page.el('label', { class: 'field' }, page.el('span', {}, label), control);

  // A choice; options() gives [value, text].
  function select(id, label, key, options, patch = value => ({ [key]: value })) {
    const node = page.el('select', { id, onchange: () => page.set(patch(node.value)) });
    syncs.push(() => {
      const list = options();
      if (node.dataset.made !== String(list.length)) {
        node.replaceChildren(...list.map(([value, text]) => page.el('option', { value }, text)));
        node.dataset.made = list.length;
      }
      node.value = String(page.get()[key]);
    });
    return field(label, node);
  }

  function check(id, label, key, title) {
    const node = page.el('input', { type: 'checkbox', id, onchange: () => page.set({ [key]: node.checked }) });
    syncs.push(() => {
      node.checked = page.get()[key];
    });
    return page.el('label', { class: 'field', title }, node, page.el('span', {}, label));
  }

  // Buttons of which one is pressed.
  function choice(label, key, options) {
    const buttons = options.map(([value, text]) =>
      page.el(
        'button',
        { type: 'button', 'data-value': value, onclick: () => page.set({ [key]: value }) },
        text
      )
    );
    syncs.push(() =>
      buttons.forEach(b => b.setAttribute('aria-pressed', String(b.dataset.value === page.get()[key])))
    );
    return page.el(
      'span',
      { class: 'joined', role: 'group', 'aria-label': label, id: `${key}-choice` },
      ...buttons
    );
  }

  function threshold() {
    const slider = page.el('input', {
      type: 'range',
      id: 'min',
      min: '0',
      max: '50',
      step: '1',
      oninput: () => page.set({ min: Number(slider.value) / 100 })
    });
    const out = page.el('output', { for: 'min' });
    syncs.push(() => {
      slider.value = String(Math.round(page.get().min * 100));
      out.textContent = page.number(page.get().min, 2);
      slider.setAttribute('aria-valuetext', `weights from ${out.textContent}`);
    });
    return page.el(
      'span',
      { class: 'field' },
      page.el('label', { for: 'min', class: 'field' }, page.el('span', {}, 'Weights from')),
      slider,
      out
    );
  }

  // A group that is there only for the views that use it.
  function group(needs, ...children) {
    const node = page.el(
      'div',
      { class: 'group' },
      ...children.map(([use, child]) => {
        syncs.push(() => {
          child.hidden =
            !(use === 'always' || page.view().uses.includes(use)) ||
            (use === 'filter' && !page.runs.some(r => r.pair)) ||
            (use === 'limits' && page.view().name === 'neuron' && page.get().expanded);
        });
        return child;
      })
    );
    syncs.push(() => {
      node.hidden = [...node.children].every(c => c.hidden);
    });
    return node;
  }

  const numbers = count => () => page.range(0, count()).map(i => [String(i), String(i)]);

  function build() {
    const expand = page.el('button', {
      type: 'button',
      id: 'expand',
      onclick: () => page.set({ expanded: !page.get().expanded })
    });
    const back = page.el('button', {
      type: 'button',
      id: 'zoom',
      onclick: () => page.set({ zoom: !page.get().zoom })
    });
    syncs.push(() => {
      expand.textContent = page.get().expanded ? 'Collapse' : 'Expand token';
      expand.setAttribute('aria-pressed', String(page.get().expanded));
      back.textContent = page.get().zoom ? 'Back to all heads' : 'Enlarge';
      back.setAttribute('aria-pressed', String(page.get().zoom));
    });
    const compare =
      page.runs.length < 2
        ? []
        : [
            group(
              [],
              [
                'always',
                choice('Comparison', 'show', [
                  ['both', 'Side by side'],
                  ['a', 'A'],
                  ['b', 'B'],
                  ['difference', 'A − B']
                ])
              ]
            )
          ];
    page.byId('controls').append(
      ...compare,
      group(
        [],
        ['layer', select('layer', 'Layer', 'layer', numbers(page.mostLayers), v => ({ layer: Number(v) }))],
        ['head', select('head', 'Head', 'head', numbers(page.mostHeads), v => ({ head: Number(v) }))],
        ['expand', expand],
        ['zoom', back],
        [
          'thumbs',
          choice('Thumbnails', 'thumbs', [
            ['lines', 'Lines'],
            ['matrix', 'Matrices']
          ])
        ],
        [
          'filter',
          select('filter', 'Pairs', 'filter', () => [
            ['all', 'All'],
            ['aa', 'A → A'],
            ['ab', 'A → B'],
            ['ba', 'B → A'],
            ['bb', 'B → B']
          ])
        ]
      ),
      group(
        [],
        [
          'units',
          check(
            'words',
            'Merge words',
            'words',
            'Merge word pieces: weights summed over keys, averaged over queries (w)'
          )
        ],
        ['units', check('special', 'Special tokens', 'special', 'Show special tokens (s)')],
        [
          'units',
          check(
            'renormalize',
            'Renormalize',
            'renormalize',
            'Without special tokens: let rows sum to 1 again (r)'
          )
        ]
      ),
      group(
        [],
        ['limits', threshold()],
        [
          'limits',
          select(
            'top',
            'Per token',
            'top',
            () => [[0, 'all'], ...[1, 2, 3, 5, 10].map(k => [k, `top ${k}`])],
            v => ({ top: Number(v) })
          )
        ]
      )
    );
    syncs.push(() => {
      const off = page.get().special;
      page.byId('renormalize').disabled = off;
      page.byId('renormalize').closest('label').classList.toggle('off', off);
    });
  }

  // ---- Views, tiles -----------------------------------------------------------

  function buildViews() {
    const buttons = page.viewList.map(view =>
      page.el(
        'button',
        { type: 'button', 'data-view': view.name, onclick: () => page.set({ view: view.name }) },
        view.title
      )
    );
    page.byId('views').append(...buttons);
    syncs.push(() =>
      buttons.forEach(b => {
        if (b.dataset.view === page.get().view) b.setAttribute('aria-current', 'page');
        else b.removeAttribute('aria-current');
      })
    );
  }

  page.toggleHead = function (head) {
    const { heads } = page.get();
    page.set({
      head,
      heads: heads.includes(head) ? heads.filter(h => h !== head) : [...heads, head].sort((a, b) => a - b)
    });
  };
  // Alone; or, if it is alone already, with all others again.
  page.isolateHead = function (head) {
    const { heads } = page.get(),
      alone = heads.length === 1 && heads[0] === head;
    page.set({ head, heads: alone ? page.range(0, page.mostHeads()) : [head] });
  };

  // A tile answers to a click and to a double click; a click acts at once, and the
  // second one of a double click starts from the heads before the first.
  function buildTiles() {
    let before = null;
    const tiles = page.range(0, page.mostHeads()).map(head =>
      page.el(
        'button',
        {
          type: 'button',
          class: 'tile',
          'data-head': head,
          'aria-label': `Head ${head}`,
          onclick: event => {
            if (event.shiftKey) {
              page.isolateHead(head);
              return;
            }
            if (event.detail < 2) before = page.get().heads;
            page.toggleHead(head);
          },
          ondblclick: () => {
            if (before) page.set({ heads: before });
            page.isolateHead(head);
          }
        },
        String(head)
      )
    );
    tiles.forEach(tile => tile.style.setProperty('--color', `var(--head-${tile.dataset.head % 12})`));
    const all = page.el('button', {
      type: 'button',
      id: 'all-heads',
      onclick: () =>
        page.set({ heads: page.get().heads.length === page.mostHeads() ? [] : page.range(0, page.mostHeads()) })
    });
    const holder = page.byId('tiles');
    holder.append(
      page.el('span', { class: 'tiles-name' }, 'Heads'),
      ...tiles,
      all,
      page.el('span', { class: 'tiles-hint' }, 'click: show or hide · double click: only this one')
    );
    syncs.push(() => {
      holder.hidden = !page.view().tiles;
      tiles.forEach(tile => {
        const head = Number(tile.dataset.head),
          label = page.runs[0].labels[page.get().layer]?.[head];
        tile.setAttribute('aria-pressed', String(page.get().heads.includes(head)));
        tile.title = `Head ${head}${label ? `: ${label}` : ''}`;
      });
      all.textContent = page.get().heads.length === page.mostHeads() ? 'None' : 'All';
    });
  }

  // ---- Notices ------------------------------------------------------------------

  // The smallest and largest sum of the rows that the numbers speak of.
  function rowSums(source) {
    const matrix = page.view().matrix(source),
      n = source.units.length;
    if (!matrix || source.signed || source.queries.length === 0) return null;
    const sums = source.queries.map(i => source.keys.reduce((sum, j) => sum + matrix[i * n + j], 0));
    return [Math.min(...sums), Math.max(...sums)];
  }

  page.drawNotices = function () {
    const notes = [],
      sources = page.figureSources(),
      { special, renormalize, filter } = page.get(),
      view = page.view();
    const add = (text, plain, ...more) =>
      notes.push(page.el('p', { class: plain ? 'notice plain' : 'notice' }, text, ...more));
    page.runs.forEach(run => {
      if (run.truncated)
        add(
          `${run.name ? `${run.name}: the` : 'The'} text was longer than the model or the option max_tokens allows: what you see is its beginning, ${page.many(run.count, 'token')}.`
        );
    });
    const sums =
      view.tokensOnly || (special && filter === 'all')
        ? []
        : sources.map(rowSums).filter(s => s && s[0] < 0.995);
    if (sums.length > 0) {
      const low = Math.min(...sums.map(s => s[0])),
        high = Math.max(...sums.map(s => s[1]));
      const why =
        !special && !renormalize && filter !== 'all'
          ? 'hidden special tokens and pairs hold the rest'
          : filter !== 'all'
            ? 'the pairs that are not shown hold the rest'
            : 'hidden special tokens hold the rest';
      add(
        `Rows no longer sum to 1: ${why}. They sum to ${page.number(low, 2)} to ${page.number(high, 2)}.`,
        false,
        special || renormalize
          ? null
          : page.el(
              'button',
              { type: 'button', id: 'renormalize-now', onclick: () => page.set({ renormalize: true }) },
              'Renormalize'
            )
      );
    }
    if (!special && renormalize && !view.tokensOnly)
      add('Rows are divided by their sum, since special tokens are hidden.', true);
    if (page.data.temperature !== 1)
      add(`Weights are those of temperature ${page.data.temperature}, not the model’s own.`, true);
    const { layer, head } = page.get();
    sources
      .filter(s => layer >= s.layers || (view.uses.includes('head') && head >= s.heads))
      .forEach(s =>
        add(
          `${s.name || s.run.model} has layers 0 to ${s.layers - 1} and heads 0 to ${s.heads - 1}; the last of these is shown.`
        )
      );
    if (sources.some(s => s.queries.length === 0 || s.keys.length === 0))
      add('There is nothing to show with these filters.');
    if (view.notes) [...new Set(sources.flatMap(s => view.notes(s)))].forEach(text => add(text, true));
    page.byId('notices').replaceChildren(...notes);
  };

  // ---- Title, start ---------------------------------------------------------------

  function buildHeading() {
    const [a] = page.runs,
      title =
        page.data.title === null ? `Attention in ${page.visible(a.model)}` : page.visible(page.data.title);
    page.byId('title').textContent = document.title = title;
    const parts = page.runs.map(
      run =>
        `${run.name ? `${run.name}: ` : ''}${page.data.title === null && !run.name ? '' : `${page.visible(run.model)}, `}` +
        `${page.many(run.layers, 'layer')} of ${page.many(run.heads, 'head')}, ${page.many(run.count, 'token')}`
    );
    page.byId('subtitle').textContent = `${parts.join('  ·  ')}  ·  weights in ${page.data.bits} bits`;
  }

  page.buildControls = function () {
    buildHeading();
    buildViews();
    buildTiles();
    build();
    const theme = page.byId('theme');
    theme.addEventListener('change', () => page.set({ theme: theme.value }));
    syncs.push(() => {
      theme.value = page.get().theme;
    });
  };
  page.syncControls = () => syncs.forEach(sync => sync());
})(window.bertsql);
