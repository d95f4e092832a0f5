// Keys, and the dialog that lists them.
(function (page) {
  'use strict';

  const step = (key, by, most) => page.clamp(page.get()[key] + by, 0, most() - 1);

  function stepHead(by) {
    const { view, heads, head } = page.get(),
      alone = view !== 'head' || heads.length === 1;
    const next = alone ? step('head', by, page.mostHeads) : head;
    page.set(view === 'head' ? { head: next, heads: [next] } : { head: next });
  }

  function expand() {
    const { view, expanded, zoom } = page.get();
    if (view === 'model') page.set({ zoom: !zoom });
    else if (view === 'neuron') page.set({ expanded: !expanded });
    else page.set({ view: 'neuron', expanded: true });
  }

  function escape() {
    if (page.get().view === 'model' && page.get().zoom) page.set({ zoom: false });
    else page.set({ token: null });
  }

  const keys = {
    ArrowUp: () => page.set({ layer: step('layer', -1, page.mostLayers) }),
    ArrowDown: () => page.set({ layer: step('layer', 1, page.mostLayers) }),
    ArrowLeft: () => stepHead(-1),
    ArrowRight: () => stepHead(1),
    '/': () => {
      page.byId('find').focus();
      page.byId('find').select();
    },
    n: () => page.nextFound(1),
    N: () => page.nextFound(-1),
    j: () => page.stepToken(1),
    k: () => page.stepToken(-1),
    e: expand,
    w: () => page.set({ words: !page.get().words }),
    s: () => page.set({ special: !page.get().special }),
    r: () => {
      if (!page.get().special) page.set({ renormalize: !page.get().renormalize });
    },
    a: () => page.set({ heads: page.range(0, page.mostHeads()) }),
    d: () => page.set({ theme: page.isDark() ? 'light' : 'dark' }),
    Escape: escape,
    '?': () => page.byId('help').showModal()
  };
  page.views.forEach((view, i) => {
    keys[i + 1] = () => page.set({ view });
  });

  // Keys that a focused control needs for itself stay with it.
  function belongsTo(node, key) {
    if (!(node instanceof HTMLElement)) return false;
    if (node.matches('input[type="search"], input[type="number"], textarea')) return true;
    if (node.matches('select')) return key !== 'Escape' && key !== '?';
    return node.matches('input[type="range"], .wide-table, #table-body, .scroller') && key.startsWith('Arrow');
  }

  function onKey(event) {
    const action = Object.hasOwn(keys, event.key) ? keys[event.key] : null;
    if (!action || event.ctrlKey || event.metaKey || event.altKey || page.byId('help').open) return;
    if (belongsTo(event.target, event.key)) return;
    event.preventDefault();
    action();
    if (event.key.startsWith('Arrow'))
      page.announce(
        page
          .figureSources()
          .map(s => page.view().describe(s))
          .join('; ')
      );
  }

  const list = [
    [['↑', '↓'], 'layer'],
    [['←', '→'], 'head'],
    [['j', 'k'], 'next and previous token'],
    [['/'], 'find a token; Enter or n for the next one'],
    [['e'], 'expand: query, key and product of a token; in the model view, enlarge a head'],
    [['w'], 'merge word pieces into words'],
    [['s'], 'show or hide special tokens'],
    [['r'], 'renormalize rows while special tokens are hidden'],
    [['a'], 'all heads'],
    [['1', '…', '6'], 'view'],
    [['d'], 'dark or light'],
    [['Esc'], 'let go of the token, back to all heads'],
    [['?'], 'this list']
  ];

  function buildHelp() {
    const dialog = page.byId('help');
    dialog.append(
      page.el('h2', { id: 'help-title' }, 'Keys and hints'),
      page.el(
        'dl',
        {},
        ...list.flatMap(([names, text]) => [
          page.el(
            'dt',
            {},
            ...names.flatMap((name, i) => (i ? [' ', page.el('kbd', {}, name)] : [page.el('kbd', {}, name)]))
          ),
          page.el('dd', {}, text)
        ])
      ),
      page.el(
        'p',
        {},
        'Point at a token for its lines and numbers; click to keep it. Click a head’s tile to show or hide it, double click (or Shift and click) for that head alone.'
      ),
      page.el('p', {}, 'The address of this page holds what you see: copy it to come back to it.'),
      page.el('button', { type: 'button', id: 'help-close', onclick: () => dialog.close() }, 'Close')
    );
    page.byId('help-open').addEventListener('click', () => dialog.showModal());
    dialog.addEventListener('click', event => {
      if (event.target === dialog) dialog.close();
    });
  }

  page.startKeyboard = function () {
    buildHelp();
    document.addEventListener('keydown', onKey);
    page.byId('skip').addEventListener('click', event => {
      // keeps the fragment for the state
      event.preventDefault();
      page.byId('stage').focus();
    });
  };
})(window.bertsql);
