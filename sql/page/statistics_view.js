// Statistics view: a map of all heads coloured by one statistic, and below it the
// table of all of them.
(function (page) {
  'use strict';

  const side = 34,
    top = 52;

  // Rows of a source, or of a difference the rows of A minus those of B.
  function rowsOf(source) {
    if (source.rows) return source.rows;
    if (!source.signed) return (source.rows = page.statisticRows(source));
    const [a, b] = source.parts.map(page.statisticRows);
    const other = new Map(b.map(row => [`${row.layer},${row.head}`, row]));
    return (source.rows = a
      .filter(row => other.has(`${row.layer},${row.head}`))
      .map(row => {
        const minus = other.get(`${row.layer},${row.head}`),
          out = { layer: row.layer, head: row.head };
        out.label = row.label === minus.label ? row.label : `${row.label} / ${minus.label}`;
        for (const [name] of page.statisticColumns) out[name] = row[name] - minus[name];
        return out;
      }));
  }

  const shownStatistic = () =>
    page.statisticColumns.some(([name]) => name === page.get().sort) ? page.get().sort : 'entropy_norm';

  function sorted(rows) {
    const { sort, descending } = page.get(),
      sign = descending ? -1 : 1;
    const key = row =>
      sort === 'layer' ? row.layer * 1e4 + row.head : sort === 'head' ? row.head * 1e4 + row.layer : row[sort];
    return [...rows].sort((x, y) => {
      const a = key(x),
        b = key(y);
      if (typeof a === 'string') return sign * a.localeCompare(b) || x.layer - y.layer || x.head - y.head;
      if (Number.isNaN(a) || Number.isNaN(b)) return Number.isNaN(a) - Number.isNaN(b);
      return sign * (a - b) || x.layer - y.layer || x.head - y.head;
    });
  }

  const open = (layer, head) => page.set({ view: 'head', layer, head, heads: [head] });

  // The map's picture.
  page.addView({
    name: 'statistics',
    title: 'Statistics',
    uses: ['units'],
    wide: () => true,
    layout(source, width) {
      const cell = page.clamp(Math.floor((Math.min(width, 760) - side) / source.heads), 24, 46);
      return {
        cell,
        width: Math.max(side + cell * source.heads + 4, 280),
        height: top + Math.min(cell, 34) * source.layers + 8,
        row: Math.min(cell, 34)
      };
    },
    base(surface, source, layout) {
      const name = shownStatistic(),
        rows = rowsOf(source),
        { cell, row } = layout;
      const numbers = rows.map(r => r[name]).filter(v => !Number.isNaN(v));
      const low = Math.min(...numbers),
        high = Math.max(...numbers),
        most = Math.max(Math.abs(low), Math.abs(high)) || 1;
      surface.text(`${name} of each head, ${page.number(low, 2)} to ${page.number(high, 2)}`, side, 12, {
        color: page.color('ink'),
        size: 13
      });
      for (let h = 0; h < source.heads; h++)
        surface.text(String(h), side + cell * (h + 0.5), top - 12, {
          color: page.color('soft'),
          size: 12,
          align: 'center'
        });
      for (let l = 0; l < source.layers; l++)
        surface.text(String(l), side - 10, top + row * (l + 0.5), {
          color: page.color('soft'),
          size: 12,
          align: 'right'
        });
      for (const r of rows) {
        const value = r[name],
          x = side + cell * r.head,
          y = top + row * r.layer;
        if (Number.isNaN(value)) continue;
        const share = source.signed ? value / most : high > low ? (value - low) / (high - low) : 0;
        const rgb = page.weightRgb(Math.sign(share) * share * share, source.signed); // even steps: no root here
        surface.rect(x + 1, y + 1, cell - 2, row - 2, `rgb(${rgb.map(Math.round).join()})`, 1, 3);
        if (cell >= 34)
          surface.text(page.number(value, Math.abs(value) >= 10 ? 1 : 2), x + cell / 2, y + row / 2, {
            color: page.inkOn(rgb),
            size: 11,
            align: 'center'
          });
      }
    },
    over(surface, source, layout, active, pointed) {
      if (pointed)
        surface.frame(
          side + layout.cell * pointed.head + 0.5,
          top + layout.row * pointed.layer + 0.5,
          layout.cell - 1,
          layout.row - 1,
          page.color('accent'),
          2
        );
    },
    dims: () => false,
    hit(source, layout, x, y) {
      const head = Math.floor((x - side) / layout.cell),
        layer = Math.floor((y - top) / layout.row);
      return x >= side && y >= top && source.hasHead(layer, head) ? { layer, head } : null;
    },
    click(hit) {
      open(hit.layer, hit.head);
      return true;
    },
    tip(source, hit) {
      const row = rowsOf(source).find(r => r.layer === hit.layer && r.head === hit.head);
      return (
        row &&
        `layer ${hit.layer}, head ${hit.head}: ${row.label}\n${shownStatistic()} ${page.number(row[shownStatistic()], 4)}`
      );
    },
    record: (layout, source) => ({ rows: sorted(rowsOf(source)) }),
    matrix: () => null,
    describe: () => `${shownStatistic()} of all heads`,
    below: source => table(source),
    notes(source) {
      const { special, renormalize } = page.get(),
        lines = [];
      if (!source.plain)
        lines.push(
          'Computed in this page from its rounded weights, in the units shown; labels are those of the tokens.'
        );
      if (!special && !renormalize)
        lines.push(
          'Rows no longer sum to 1, since special tokens are hidden: the numbers are of what is left.'
        );
      lines.push('Labels are a rule of thumb from these numbers, not a finding about what a head does.');
      return lines;
    }
  });

  function sortBy(name) {
    const { sort, descending } = page.get();
    const numeric = !['layer', 'head', 'label'].includes(name);
    page.set({ sort: name, descending: sort === name ? !descending : numeric });
  }

  // A long name may go on in a second line after its underscore, so that all columns
  // fit on a usual screen.
  const broken = name =>
    name.split('_').flatMap((part, i) => (i > 0 ? ['_', page.el('wbr'), part] : [part]));

  // The columns stay where they are when a column is sorted: only the order of rows
  // changes, and the focus remains on the heading.
  function table(source) {
    const { sort, descending } = page.get();
    const columns = [
      ['layer', 'layer'],
      ['head', 'head'],
      ['label', 'what it resembles'],
      ...page.statisticColumns
    ];
    const heads = columns.map(([name, hint]) =>
      page.el(
        'th',
        {
          scope: 'col',
          'aria-sort': sort === name ? (descending ? 'descending' : 'ascending') : 'none'
        },
        page.el(
          'button',
          { type: 'button', title: hint, 'data-sort': name, onclick: () => sortBy(name) },
          ...broken(name),
          sort === name ? (descending ? ' ↓' : ' ↑') : ''
        )
      )
    );
    const rows = sorted(rowsOf(source)).map(row => {
      const { layer, head } = row,
        current = layer === page.get().layer && head === page.get().head;
      const go = page.el(
        'button',
        { type: 'button', title: `Show layer ${layer}, head ${head}` },
        `layer ${layer}`
      );
      return page.el(
        'tr',
        {
          class: current && 'is-current',
          'data-layer': layer,
          'data-head': head,
          onclick: () => open(layer, head)
        },
        page.el('th', { scope: 'row' }, go),
        page.el('td', {}, String(head)),
        page.el('td', { class: 'text' }, row.label),
        ...page.statisticColumns.map(([name]) =>
          page.el(
            'td',
            {},
            name === 'collapsed'
              ? String(row[name])
              : source.signed
                ? page.signed(row[name])
                : page.number(row[name])
          )
        )
      );
    });
    return page.el(
      'div',
      { class: 'wide-table', tabindex: '0', role: 'region', 'aria-label': 'Statistics of all heads' },
      page.el(
        'table',
        { class: 'grid sortable' },
        page.el('thead', {}, page.el('tr', {}, ...heads)),
        page.el('tbody', {}, ...rows)
      )
    );
  }
})(window.bertsql);
