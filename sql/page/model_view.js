// Model view: every head of every layer as a thumbnail; one of them enlarged.
(function (page) {
  'use strict';

  const side = 34,
    top = 26,
    gap = 5;

  function gridLayout(source, width) {
    const cell = page.clamp((width - side) / source.heads - gap, 28, 96);
    return {
      cell,
      width: Math.ceil(side + source.heads * (cell + gap)),
      height: Math.ceil(top + source.layers * (cell + gap)),
      x: head => side + head * (cell + gap),
      y: layer => top + layer * (cell + gap)
    };
  }

  // The lines of one thumbnail; `only` as in lines.js.
  function thumbLines(source, layout, layer, head, only) {
    const weights = source.shown(layer, head),
      n = source.units.length,
      lines = [];
    const x = layout.x(head) + 4,
      y = layout.y(layer) + 3,
      w = layout.cell - 8,
      h = layout.cell - 6;
    const yOf = (position, count) => y + (h * (position + 0.5)) / count;
    source.queries.forEach((i, qi) => {
      if (only && !only.key && only.unit !== i) return;
      source.keys.forEach((j, kj) => {
        if (only && only.key && only.unit !== j) return;
        const weight = weights[i * n + j];
        if (weight !== 0)
          lines.push({
            x1: x,
            y1: yOf(qi, source.queries.length),
            x2: x + w,
            y2: yOf(kj, source.keys.length),
            weight
          });
      });
    });
    return lines;
  }

  function drawThumb(surface, source, layout, layer, head, only) {
    const lines = thumbLines(source, layout, layer, head, only);
    const style = { most: source.units.length > 40 ? 1 : 2, curved: false };
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
    } else surface.lines(lines, page.headColor(head), style);
    return lines.length;
  }

  function drawMatrix(surface, source, layout, layer, head) {
    const weights = source.shown(layer, head),
      n = source.units.length;
    surface.cells(
      layout.x(head) + 2,
      layout.y(layer) + 2,
      layout.cell - 4,
      layout.cell - 4,
      source.queries.length,
      source.keys.length,
      (i, j) => page.weightRgb(weights[source.queries[i] * n + source.keys[j]], source.signed),
      { image: true }
    );
    return source.queries.length * source.keys.length;
  }

  const eachHead = (source, call) => {
    for (let layer = 0; layer < source.layers; layer++)
      for (let head = 0; head < source.heads; head++) call(layer, head);
  };

  const grid = {
    base(surface, source, layout) {
      layout.lines = 0;
      eachHead(source, (layer, head) => {
        surface.rect(layout.x(head), layout.y(layer), layout.cell, layout.cell, page.color('panel'));
        layout.lines +=
          page.get().thumbs === 'matrix'
            ? drawMatrix(surface, source, layout, layer, head)
            : drawThumb(surface, source, layout, layer, head, null);
      });
    },
    // A matrix shows a token as its row or column.
    band(surface, source, layout, layer, head, active) {
      const list = active.key ? source.keys : source.queries,
        at = list.indexOf(active.unit);
      if (at < 0) return;
      const step = (layout.cell - 4) / list.length,
        from = 2 + step * at,
        size = Math.max(step, 1.5);
      surface.frame(
        layout.x(head) + (active.key ? from : 2),
        layout.y(layer) + (active.key ? 2 : from),
        active.key ? size : layout.cell - 4,
        active.key ? layout.cell - 4 : size,
        page.color('minus'),
        1
      );
    },
    over(surface, source, layout, active, pointed) {
      const state = page.get();
      layout.activeLines = 0;
      for (let head = 0; head < source.heads; head++)
        surface.text(String(head), layout.x(head) + layout.cell / 2, 13, {
          color: page.color(head === state.head ? 'ink' : 'soft'),
          size: 12,
          align: 'center',
          weight: head === state.head ? 650 : 400
        });
      for (let layer = 0; layer < source.layers; layer++)
        surface.text(String(layer), side - 12, layout.y(layer) + layout.cell / 2, {
          color: page.color(layer === state.layer ? 'ink' : 'soft'),
          size: 12,
          align: 'right',
          weight: layer === state.layer ? 650 : 400
        });
      eachHead(source, (layer, head) => {
        if (active && state.thumbs === 'matrix') grid.band(surface, source, layout, layer, head, active);
        else if (active) layout.activeLines += drawThumb(surface, source, layout, layer, head, active);
        const chosen = layer === state.layer && head === state.head;
        const here = pointed && pointed.layer === layer && pointed.head === head;
        surface.frame(
          layout.x(head) + 0.5,
          layout.y(layer) + 0.5,
          layout.cell - 1,
          layout.cell - 1,
          page.color(chosen || here ? 'accent' : 'rule'),
          chosen || here ? 2 : 1
        );
      });
    },
    hit(source, layout, x, y) {
      const head = Math.floor((x - side) / (layout.cell + gap)),
        layer = Math.floor((y - top) / (layout.cell + gap));
      return x >= side && y >= top && source.hasHead(layer, head) ? { layer, head } : null;
    }
  };

  const zoomed = source => page.get().zoom && source.hasHead(page.get().layer, page.get().head);

  page.addView({
    name: 'model',
    title: 'Model',
    // Two grids side by side need the width of the panel, which then stands below them.
    wide: () => !page.get().zoom && page.figureSources().length > 1,
    uses: ['layer', 'head', 'filter', 'units', 'limits', 'thumbs', 'zoom'],
    layout(source, width) {
      return zoomed(source)
        ? { zoom: true, ...page.linesPicture.layout(source, width) }
        : gridLayout(source, width);
    },
    base(surface, source, layout) {
      const { layer, head } = page.get();
      if (layout.zoom) page.linesPicture.base(surface, source, layout, layer, [head]);
      else grid.base(surface, source, layout);
    },
    over(surface, source, layout, active, pointed) {
      const { layer, head } = page.get();
      if (layout.zoom) page.linesPicture.over(surface, source, layout, layer, [head], active);
      else grid.over(surface, source, layout, active, pointed);
    },
    dims: (active, layout) => Boolean(active) && (layout.zoom || page.get().thumbs === 'lines'),
    hit: (source, layout, x, y) =>
      layout.zoom ? page.linesPicture.hit(source, layout, x, y) : grid.hit(source, layout, x, y),
    click(hit) {
      if (hit.layer === undefined) return false;
      page.set({ layer: hit.layer, head: hit.head, zoom: true });
      return true;
    },
    tip: (source, hit) =>
      hit.layer === undefined
        ? null
        : `layer ${hit.layer}, head ${hit.head}\n${source.run.labels[hit.layer][hit.head]}`,
    record: layout => ({ lines: layout.lines, activeLines: layout.activeLines, zoom: Boolean(layout.zoom) }),
    matrix(source) {
      const { layer, head } = page.get(),
        all = [];
      if (zoomed(source)) return source.matrix(layer, head);
      if (!this.mean || this.mean.source !== source) {
        eachHead(source, (l, h) => all.push(source.matrix(l, h)));
        this.mean = { source, matrix: page.meanOf(all, source.units.length) };
      }
      return this.mean.matrix;
    },
    describe: source =>
      zoomed(source)
        ? `layer ${page.get().layer}, head ${page.get().head}`
        : `all ${source.layers * source.heads} heads; numbers are their mean`
  });
})(window.bertsql);
