// Two columns of tokens with lines between them: queries left, keys right. The
// head view draws all active heads so, the neuron view and an enlarged thumbnail
// a single one.
(function (page) {
  'use strict';

  const top = 30; // room for the names of the columns

  function layoutOf(source, width) {
    const most = Math.max(source.queries.length, source.keys.length, 1);
    const size = most <= 48 ? 14 : most <= 96 ? 12.5 : 11;
    const row = most <= 48 ? 26 : most <= 96 ? 20 : 16;
    const narrow = width < 480,
      numbers = narrow ? 40 : 98;
    const w = Math.min(width, 980);
    const longest = Math.max(30, ...source.units.map(u => page.textWidth(u.label, size)));
    const label = Math.min(Math.ceil(longest) + 4, Math.floor(w * (narrow ? 0.24 : 0.22)));
    return {
      width: w,
      height: top + row * most + 10,
      row,
      size,
      label,
      numbers,
      narrow,
      left: numbers + label + 10,
      right: w - numbers - label - 10,
      y: position => top + row * (position + 0.5)
    };
  }

  // Lines {x1, y1, x2, y2, weight} of one matrix, `shift` pixels below the middle of
  // the rows. `only` is { unit, key }.
  function linesOf(source, layout, weights, only, shift) {
    const n = source.units.length,
      lines = [];
    const { left, right, y } = layout;
    const add = (i, qi, j, kj) => {
      const weight = weights[i * n + j];
      if (weight !== 0) lines.push({ x1: left, y1: y(qi) + shift, x2: right, y2: y(kj) + shift, weight });
    };
    if (!only) source.queries.forEach((i, qi) => source.keys.forEach((j, kj) => add(i, qi, j, kj)));
    else if (only.key) {
      const kj = source.keys.indexOf(only.unit);
      if (kj >= 0) source.queries.forEach((i, qi) => add(i, qi, only.unit, kj));
    } else {
      const qi = source.queries.indexOf(only.unit);
      if (qi >= 0) source.keys.forEach((j, kj) => add(only.unit, qi, j, kj));
    }
    return lines;
  }

  // Head by head, each a little below the one before, so that lines of several
  // heads lie side by side and keep their colours. Where much attention lies on
  // top of each other, small weights are drawn fainter: together they would hide the rest.
  function drawLines(surface, source, layout, heads, layer, only) {
    const spread = heads.length > 1 ? layout.row * 0.62 : 0;
    const shiftOf = place => (spread === 0 ? 0 : spread * (place / (heads.length - 1) - 0.5));
    const all = heads.map((head, place) =>
      linesOf(source, layout, source.shown(layer, head), only, shiftOf(place))
    );
    const count = all.reduce((sum, lines) => sum + lines.length, 0);
    const widest = heads.length > 1 ? Math.max(1.6, 3.4 - heads.length * 0.12) : layout.row < 20 ? 2.4 : 3.4;
    const mass = all.reduce((sum, lines) => lines.reduce((part, l) => part + Math.abs(l.weight), sum), 0);
    const style = { most: widest, faint: !only && mass > 4 * source.queries.length };
    all.forEach((lines, place) => {
      if (source.signed) {
        surface.lines(
          lines.filter(l => l.weight < 0),
          page.color('minus'),
          style
        );
        surface.lines(
          lines.filter(l => l.weight > 0),
          page.color('plus'),
          style
        );
      } else surface.lines(lines, page.headColor(heads[place]), style);
    });
    return count;
  }

  // Beside each partner of a token: a cell for each head, as strong as its weight,
  // and the mean as a number.
  function drawShares(surface, source, layout, heads, layer, active) {
    const n = source.units.length,
      others = active.key ? source.queries : source.keys;
    const weightOf = (head, other) => {
      const w = source.matrix(layer, head);
      return active.key ? w[other * n + active.unit] : w[active.unit * n + other];
    };
    const side = active.key ? -1 : 1,
      edge = (active.key ? layout.numbers : layout.width - layout.numbers) + side * 4;
    const room = layout.narrow ? 0 : 52,
      cell = Math.min(12, room / Math.max(1, heads.length)),
      height = Math.min(layout.row - 4, 16);
    others.forEach((other, position) => {
      const y = layout.y(position),
        all = heads.map(head => weightOf(head, other));
      const mean = all.reduce((sum, w) => sum + w, 0) / (heads.length || 1);
      if (room)
        all.forEach((weight, place) => {
          const color = source.signed
            ? page.color(weight < 0 ? 'minus' : 'plus')
            : page.headColor(heads[place]);
          surface.rect(
            side > 0 ? edge + place * cell : edge - (heads.length - place) * cell,
            y - height / 2,
            cell,
            height,
            color,
            Math.min(1, Math.abs(weight))
          );
        });
      if (Math.abs(mean) >= 0.005)
        surface.text(
          source.signed ? page.signed(mean, 2) : page.number(mean, 2),
          edge + side * (room ? heads.length * cell + 6 : 2),
          y,
          { color: page.color('ink'), size: Math.min(12, layout.size), align: side > 0 ? 'left' : 'right' }
        );
    });
  }

  function drawColumn(surface, source, layout, key, active) {
    const column = key ? source.keys : source.queries;
    const align = key ? 'left' : 'right',
      x = key ? layout.right + 9 : layout.left - 9;
    surface.text(key ? 'to (keys)' : 'from (queries)', x, 12, { color: page.color('soft'), size: 12, align });
    column.forEach((unit, position) => {
      const u = source.units[unit],
        y = layout.y(position),
        here = active && active.unit === unit;
      const box = key ? layout.right + 4 : layout.left - 4 - layout.label - 6;
      if (here)
        surface.rect(
          box,
          y - layout.row / 2 + 1,
          layout.label + 6,
          layout.row - 2,
          page.color(active.key === key ? 'accent' : 'accent-soft'),
          1,
          4
        );
      if (source.run.pair)
        surface.rect(
          key ? layout.right : layout.left - 3,
          y - layout.row / 2 + 1,
          3,
          layout.row - 2,
          page.color(u.part === 0 ? 'segment-a' : 'segment-b')
        );
      surface.text(page.fitText(u.label, layout.label, layout.size), x, y, {
        color: page.color(here && active.key === key ? 'on-accent' : u.special ? 'soft' : 'ink'),
        size: layout.size,
        align
      });
    });
  }

  // The parts of a view that draws heads of one layer so.
  page.linesPicture = {
    layout: layoutOf,
    base(surface, source, layout, layer, heads) {
      layout.lines = drawLines(surface, source, layout, heads, layer, null);
    },
    over(surface, source, layout, layer, heads, active) {
      layout.activeLines = 0;
      if (active) {
        layout.activeLines = drawLines(surface, source, layout, heads, layer, active);
        drawShares(surface, source, layout, heads, layer, active);
      }
      drawColumn(surface, source, layout, false, active);
      drawColumn(surface, source, layout, true, active);
    },
    hit(source, layout, x, y) {
      const key = x > layout.width / 2,
        column = key ? source.keys : source.queries;
      if (x > layout.left + 30 && x < layout.right - 30) return null;
      const position = Math.floor((y - top) / layout.row);
      return position >= 0 && position < column.length ? { unit: column[position], key } : null;
    }
  };
})(window.bertsql);
