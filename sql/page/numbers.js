// Numbers beside the picture, and all of them as a table: what the canvas shows,
// for reading and for those who do not see it.
(function (page) {
  'use strict';

  let shown = '';

  function barOf(weight, signed) {
    const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
    const rect = document.createElementNS('http://www.w3.org/2000/svg', 'rect');
    svg.setAttribute('class', 'bar');
    svg.setAttribute('width', '100%');
    svg.setAttribute('height', '9');
    svg.setAttribute('aria-hidden', 'true');
    rect.setAttribute('width', `${Math.min(100, Math.abs(weight) * 100)}%`);
    rect.setAttribute('height', '9');
    rect.setAttribute('rx', '2');
    if (signed) rect.setAttribute('class', weight < 0 ? 'minus' : 'plus');
    svg.append(rect);
    return svg;
  }

  // The largest weights of a list of [unit, weight].
  function listOf(source, title, weights) {
    const rows = weights
      .sort((a, b) => Math.abs(b[1]) - Math.abs(a[1]))
      .slice(0, page.figureSources().length > 1 ? 5 : 8);
    return [
      page.el('h3', {}, title),
      page.el(
        'table',
        {},
        page.el(
          'tbody',
          {},
          ...rows.map(([unit, weight]) =>
            page.el(
              'tr',
              {},
              page.el('th', { scope: 'row' }, page.el('bdi', {}, source.units[unit].label)),
              page.el('td', {}, barOf(weight, source.signed)),
              page.el('td', {}, source.signed ? page.signed(weight) : page.number(weight))
            )
          )
        )
      )
    ];
  }

  function panel(source) {
    const view = page.view(),
      matrix = view.matrix(source),
      active = page.activeIn(source),
      n = source.units.length;
    if (!matrix || n === 0) return [];
    const head = [
      page.el('p', { class: 'what' }, (source.name ? `${source.name}: ` : '') + view.describe(source))
    ];
    if (!active)
      return [
        ...head,
        page.el(
          'p',
          { class: 'hint' },
          page.activeToken()
            ? 'This token has no counterpart here.'
            : 'Point at a token, or choose one, to see its numbers.'
        )
      ];
    const relations = view.relations || ['attends to', 'is attended to by'];
    const to = source.keys.map(j => [j, matrix[active.unit * n + j]]);
    const from = source.queries.map(i => [i, matrix[i * n + active.unit]]);
    return [
      page.el('h2', {}, page.el('bdi', {}, source.units[active.unit].label)),
      ...head,
      ...(source.queries.includes(active.unit) ? listOf(source, relations[0], to) : []),
      ...(source.keys.includes(active.unit) ? listOf(source, relations[1], from) : [])
    ];
  }

  page.drawNumbers = function () {
    const view = page.view(),
      aside = page.byId('numbers'),
      hidden = view.name === 'statistics' || (view.name === 'neuron' && page.get().expanded);
    aside.hidden = hidden;
    const key = hidden ? '' : JSON.stringify([page.stateKey, page.activeToken()]);
    if (key === shown) return;
    shown = key;
    if (!hidden) aside.replaceChildren(...page.figureSources().flatMap(panel));
  };

  // All weights of a source as a table; a page of more than 150 units would become
  // slow by it, so then only the row and column of the chosen token.
  function gridOf(source) {
    const view = page.view(),
      matrix = view.matrix(source),
      n = source.units.length,
      active = page.activeIn(source);
    if (!matrix) return null;
    const large = source.queries.length > 150,
      rows = large ? source.queries.filter(i => active && i === active.unit) : source.queries;
    const text = source.signed ? page.signed : page.number;
    return page.el(
      'table',
      { class: 'grid' },
      page.el(
        'caption',
        {},
        `${source.name ? `${source.name}: ` : ''}${view.describe(source)}. Rows attend to columns.` +
          (large ? ' Long text: only the row of the chosen token.' : '')
      ),
      page.el(
        'thead',
        {},
        page.el(
          'tr',
          {},
          page.el('td', {}),
          ...source.keys.map(j => page.el('th', { scope: 'col' }, page.el('bdi', {}, source.units[j].label)))
        )
      ),
      page.el(
        'tbody',
        {},
        ...rows.map(i =>
          page.el(
            'tr',
            {},
            page.el('th', { scope: 'row' }, page.el('bdi', {}, source.units[i].label)),
            ...source.keys.map(j => page.el('td', {}, text(matrix[i * n + j])))
          )
        )
      )
    );
  }

  // The work behind an expanded neuron view, in numbers.
  function neuronGrid(source, layout) {
    const { vector, keys, query } = layout.work,
      size = vector.length;
    const row = (name, numbers, ...rest) =>
      page.el(
        'tr',
        {},
        page.el('th', { scope: 'row' }, page.el('bdi', {}, name)),
        ...rest.map(text => page.el('td', {}, text)),
        ...Array.from(numbers, v => page.el('td', {}, page.number(v)))
      );
    return page.el(
      'table',
      { class: 'grid' },
      page.el(
        'caption',
        {},
        `Query of ${source.units[query].label} with the key of each token: score, softmax, elementwise products.`
      ),
      page.el(
        'thead',
        {},
        page.el(
          'tr',
          {},
          ...['token', `q·k/√${size}`, 'softmax', ...page.range(0, size)].map(t =>
            page.el('th', { scope: 'col' }, String(t))
          )
        )
      ),
      page.el(
        'tbody',
        {},
        ...keys.map((k, j) =>
          row(source.units[j].label, k.product, page.number(k.score), page.number(k.weight))
        )
      )
    );
  }

  page.drawTable = function () {
    const details = page.byId('table'),
      body = page.byId('table-body');
    details.hidden = page.view().name === 'statistics';
    body.replaceChildren();
    if (!details.open || details.hidden) return;
    body.append(
      ...page
        .figures()
        .map(f => (f.layout.work ? neuronGrid(f.source, f.layout) : gridOf(f.source)))
        .filter(Boolean)
    );
  };
})(window.bertsql);
