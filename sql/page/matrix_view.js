// Matrix view: one head as a heat map, with a legend and a tooltip of numbers.
(function (page) {
  'use strict';

  const legendHeight = 56;

  function layoutOf(source, width) {
    const rows = source.queries.length,
      columns = source.keys.length;
    const narrow = width < 480;
    const size = Math.max(rows, columns) <= 40 ? 13 : 11;
    const longest = Math.max(24, ...source.units.map(u => page.textWidth(u.label, size)));
    const label = Math.min(Math.ceil(longest) + 10, narrow ? 84 : 130);
    const cell = page.clamp(
      Math.floor((Math.min(width, 980) - label - 8) / Math.max(columns, 1)),
      narrow ? 9 : 7,
      52
    );
    return {
      cell,
      size,
      label,
      rows,
      columns,
      left: label,
      top: label + 6,
      names: cell >= 9,
      values: cell >= 34,
      width: Math.max(label + cell * columns + 8, 240),
      height: label + 6 + cell * rows + legendHeight
    };
  }

  function legend(surface, source, layout, y) {
    const width = 200,
      marks = source.signed ? [-1, -0.25, 0, 0.25, 1] : [0, 0.05, 0.25, 0.5, 1];
    const at = weight =>
      source.signed ? 0.5 + (Math.sign(weight) * page.shade(weight)) / 2 : page.shade(weight);
    surface.cells(
      layout.left,
      y,
      width,
      10,
      1,
      100,
      (i, j) => {
        const t = (j + 0.5) / 100;
        return source.signed
          ? page.weightRgb(Math.sign(t - 0.5) * (2 * t - 1) ** 2, true)
          : page.weightRgb(t * t, false);
      },
      { image: true }
    );
    surface.frame(layout.left - 0.5, y - 0.5, width + 1, 11, page.color('edge'));
    for (const mark of marks)
      surface.text(
        page.number(mark, 2).replace(/0$/, '').replace(/\.0$/, ''),
        layout.left + width * at(mark),
        y + 20,
        { color: page.color('soft'), size: 11, align: 'center' }
      );
  }

  const cellOf = (source, weights, i, j) => weights[source.queries[i] * source.units.length + source.keys[j]];

  page.matrixPicture = {
    layout: layoutOf,
    base(surface, source, layout, weights) {
      const { left, top, cell, rows, columns } = layout;
      layout.weights = weights;
      layout.filled = 0;
      surface.cells(left, top, cell * columns, cell * rows, rows, columns, (i, j) => {
        const weight = cellOf(source, weights, i, j);
        if (weight !== 0) layout.filled++;
        return page.weightRgb(weight, source.signed);
      });
      if (layout.values)
        for (let i = 0; i < rows; i++)
          for (let j = 0; j < columns; j++) {
            const weight = cellOf(source, weights, i, j);
            if (Math.abs(weight) < 0.005) continue;
            surface.text(
              source.signed ? page.signed(weight, 2) : page.number(weight, 2),
              left + cell * (j + 0.5),
              top + cell * (i + 0.5),
              {
                color: page.inkOn(page.weightRgb(weight, source.signed)),
                size: cell >= 44 ? 12 : 10.5,
                align: 'center'
              }
            );
          }
      surface.frame(left - 0.5, top - 0.5, cell * columns + 1, cell * rows + 1, page.color('rule'));
      legend(surface, source, layout, top + cell * rows + 16);
    },
    over(surface, source, layout, active, pointed) {
      const { left, top, cell, rows, columns, label, size } = layout;
      const at = pointed && pointed.query !== undefined ? pointed : null;
      const hot = (key, unit) =>
        at ? (key ? at.key_unit : at.query) === unit : active && active.key === key && active.unit === unit;
      if (layout.names) {
        source.queries.forEach((unit, i) => {
          const u = source.units[unit],
            strong = hot(false, unit);
          surface.text(page.fitText(u.label, label - 8, size), left - 6, top + cell * (i + 0.5), {
            color: page.color(strong ? 'accent' : u.special ? 'soft' : 'ink'),
            size: Math.min(size, cell + 2),
            align: 'right',
            weight: strong ? 650 : 400
          });
        });
        source.keys.forEach((unit, j) => {
          const u = source.units[unit],
            strong = hot(true, unit);
          surface.text(page.fitText(u.label, label - 8, size), left + cell * (j + 0.5), top - 6, {
            color: page.color(strong ? 'accent' : u.special ? 'soft' : 'ink'),
            size: Math.min(size, cell + 2),
            turn: -90,
            weight: strong ? 650 : 400
          });
        });
      }
      const row = at
        ? source.queries.indexOf(at.query)
        : active && !active.key
          ? source.queries.indexOf(active.unit)
          : -1;
      const column = at
        ? source.keys.indexOf(at.key_unit)
        : active && active.key
          ? source.keys.indexOf(active.unit)
          : -1;
      if (row >= 0) surface.frame(left, top + cell * row, cell * columns, cell, page.color('minus'), 1.5);
      if (column >= 0) surface.frame(left + cell * column, top, cell, cell * rows, page.color('minus'), 1.5);
    },
    hit(source, layout, x, y) {
      const i = Math.floor((y - layout.top) / layout.cell),
        j = Math.floor((x - layout.left) / layout.cell);
      const row = i >= 0 && i < layout.rows,
        column = j >= 0 && j < layout.columns;
      if (row && column)
        return { query: source.queries[i], key_unit: source.keys[j], unit: source.queries[i], key: false };
      if (row && x < layout.left) return { unit: source.queries[i], key: false };
      return column && y < layout.top ? { unit: source.keys[j], key: true } : null;
    },
    tip(source, hit, whole) {
      if (hit.query === undefined) return null;
      const weight = whole[hit.query * source.units.length + hit.key_unit];
      const names = `${source.units[hit.query].label} → ${source.units[hit.key_unit].label}`;
      return `${names}\n${source.signed ? page.signed(weight, 4) : page.number(weight, 4)}`;
    }
  };

  const layerOf = source => Math.min(page.get().layer, source.layers - 1);
  const headOf = source => Math.min(page.get().head, source.heads - 1);
  page.addView({
    name: 'matrix',
    title: 'Matrix',
    uses: ['layer', 'head', 'filter', 'units', 'limits'],
    layout: layoutOf,
    base(surface, source, layout) {
      page.matrixPicture.base(surface, source, layout, source.shown(layerOf(source), headOf(source)));
    },
    over: (surface, source, layout, active, pointed) =>
      page.matrixPicture.over(surface, source, layout, active, pointed),
    dims: () => false,
    hit: (source, layout, x, y) => page.matrixPicture.hit(source, layout, x, y),
    tip: (source, hit) => page.matrixPicture.tip(source, hit, source.matrix(layerOf(source), headOf(source))),
    record: layout => ({ filled: layout.filled, weights: Array.from(layout.weights) }),
    matrix: source => source.matrix(layerOf(source), headOf(source)),
    describe: source => `layer ${layerOf(source)}, head ${headOf(source)}`
  });
})(window.bertsql);
