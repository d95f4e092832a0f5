// The picture as a file: drawn again, on a string of SVG or on a canvas of its own.
(function (page) {
  'use strict';

  const margin = 16,
    head = 34,
    foot = 26;

  function sizeOf(figures) {
    return {
      width: Math.ceil(2 * margin + figures.reduce((sum, f) => sum + f.layout.width + 24, -24)),
      height: Math.ceil(margin + head + Math.max(...figures.map(f => f.layout.height)) + foot)
    };
  }

  const nameOf = figure => [figure.source.name, page.view().describe(figure.source)].filter(Boolean).join(': ');

  // Draws figure by figure; `shifted` gives a surface whose origin is at x, y.
  function draw(surface, figures, shifted) {
    const view = page.view(),
      { width, height } = sizeOf(figures);
    surface.rect(0, 0, width, height, page.color('paper'));
    let x = margin;
    for (const figure of figures) {
      surface.text(page.fitText(nameOf(figure), figure.layout.width, 14), x, margin + 6, {
        color: page.color('ink'),
        size: 14,
        weight: 600
      });
      shifted(x, margin + head, moved => {
        const active = page.activeIn(figure.source);
        moved.group(view.dims(active, figure.layout) ? 0.1 : 1, inner =>
          view.base(inner, figure.source, figure.layout)
        );
        view.over(moved, figure.source, figure.layout, active, null);
      });
      x += figure.layout.width + 24;
    }
    surface.text(page.fitText(`${document.title}  ·  bertsql`, width - 2 * margin, 11), margin, height - 13, {
      color: page.color('soft'),
      size: 11
    });
  }

  page.svgOf = function (figures = page.figures()) {
    const { width, height } = sizeOf(figures),
      surface = page.svgSurface();
    draw(surface, figures, (x, y, inside) => {
      surface.parts.push(`<g transform="translate(${x} ${y})">`);
      inside(surface);
      surface.parts.push('</g>');
    });
    return surface.document(width, height, document.title, figures.map(nameOf).join('; '));
  };

  page.pngOf = function (done, figures = page.figures()) {
    const { width, height } = sizeOf(figures),
      scale = Math.min(2, Math.sqrt(5e7 / (width * height)));
    const canvas = page.el('canvas', { width: Math.round(width * scale), height: Math.round(height * scale) });
    const context = canvas.getContext('2d');
    context.scale(scale, scale);
    const surface = page.canvasSurface(context);
    surface.group = (opacity, inside) => {
      // one layer, faded as a whole
      const layer = page.el('canvas', { width: canvas.width, height: canvas.height }),
        c = layer.getContext('2d');
      c.setTransform(context.getTransform());
      inside(page.canvasSurface(c));
      context.save();
      context.resetTransform();
      context.globalAlpha = opacity;
      context.drawImage(layer, 0, 0);
      context.restore();
    };
    draw(surface, figures, (x, y, inside) => {
      context.save();
      context.translate(x, y);
      inside(surface);
      context.restore();
    });
    canvas.toBlob(done, 'image/png');
  };

  function save(blob, ending) {
    const { view, layer, head: h } = page.get(),
      address = URL.createObjectURL(blob);
    const name = `attention-${view}-layer${layer}${['matrix', 'neuron'].includes(view) ? `-head${h}` : ''}.${ending}`;
    const link = page.el('a', { href: address, download: name });
    link.click();
    setTimeout(() => URL.revokeObjectURL(address), 10000);
    page.announce(`Saved ${name}`);
  }

  page.startExport = function () {
    page
      .byId('save-svg')
      .addEventListener('click', () => save(new Blob([page.svgOf()], { type: 'image/svg+xml' }), 'svg'));
    page.byId('save-png').addEventListener('click', () => page.pngOf(blob => blob && save(blob, 'png')));
  };
})(window.bertsql);
