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
  function group(...children) {
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

  // A button that is pressed while a flag of the state is set.
  function toggle(id, key, off, on) {
    const node = page.el('button', {
      type: 'button',
      id,
      onclick: () => page.set({ [key]: !page.get()[key] })
    });
    syncs.push(() => {
      node.textContent = page.get()[key] ? on : off;
      node.setAttribute('aria-pressed', String(page.get()[key]));
    });
    return node;
  }

  const asNumber = key => value => ({ [key]: Number(value) });
  const comparisons = [
    ['both', 'Side by side'],
    ['a', 'A'],
    ['b', 'B'],
    ['difference', 'A − B']
  ];
  const thumbnails = [
    ['lines', 'Lines'],
    ['matrix', 'Matrices']
  ];
  const pairs = [
    ['all', 'All'],
    ['aa', 'A → A'],
    ['ab', 'A → B'],
    ['ba', 'B → A'],
    ['bb', 'B → B']
  ];
  const limits = [[0, 'all'], ...[1, 2, 3, 5, 10].map(k => [k, `top ${k}`])];

  const comparison = () => group(['always', choice('Comparison', 'show', comparisons)]);

  const place = () =>
    group(
      ['layer', select('layer', 'Layer', 'layer', numbers(page.mostLayers), asNumber('layer'))],
      ['head', select('head', 'Head', 'head', numbers(page.mostHeads), asNumber('head'))],
      ['expand', toggle('expand', 'expanded', 'Expand token', 'Collapse')],
      ['zoom', toggle('zoom', 'zoom', 'Enlarge', 'Back to all heads')],
      ['thumbs', choice('Thumbnails', 'thumbs', thumbnails)],
      ['filter', select('filter', 'Pairs', 'filter', () => pairs)]
    );

  const units = () =>
    group(
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
    );

  const restraint = () =>
    group(
      ['limits', threshold()],
      ['limits', select('top', 'Per token', 'top', () => limits, asNumber('top'))]
    );

  // On a narrow screen these open on demand, so that the picture is in sight.
  function moreOnDemand(groups) {
    const controls = page.byId('controls');
    const button = page.el(
      'button',
      {
        type: 'button',
        id: 'more',
        'aria-expanded': 'false',
        'aria-controls': 'controls',
        onclick: () => button.setAttribute('aria-expanded', String(controls.classList.toggle('is-open')))
      },
      'Options'
    );
    groups.forEach(g => g.classList.add('on-demand'));
    syncs.push(() => {
      button.hidden = groups.every(g => g.hidden);
    });
    return [button, ...groups];
  }

  function build() {
    const first = page.runs.length > 1 ? [comparison(), place()] : [place()];
    page.byId('controls').append(...first, ...moreOnDemand([units(), restraint()]));
    syncs.push(() => {
      const off = page.get().special;
      page.byId('renormalize').disabled = off;
      page.byId('renormalize').closest('label').classList.toggle('off', off);
    });
  }

  // ---- Views, title, start ----------------------------------------------------

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
        if (b.dataset.view === page.get().view) {
          b.setAttribute('aria-current', 'page');
          page.byId('views').scrollLeft = b.offsetLeft + b.offsetWidth / 2 - page.byId('views').clientWidth / 2;
        } else b.removeAttribute('aria-current');
      })
    );
  }

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
    page.buildTiles(syncs);
    build();
    const theme = page.byId('theme');
    theme.addEventListener('change', () => page.set({ theme: theme.value }));
    syncs.push(() => {
      theme.value = page.get().theme;
    });
  };
  page.syncControls = () => syncs.forEach(sync => sync());
})(window.bertsql);
