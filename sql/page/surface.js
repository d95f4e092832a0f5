// What views draw on: a canvas for the screen and PNG, a string of SVG for the
// file, with the same few shapes. Coordinates are CSS pixels.
(function (page) {
  'use strict';

  const family = 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Liberation Sans", sans-serif';
  const font = (size, weight) => `${weight || 400} ${size}px ${family}`;
  const steps = 24; // of opacity: lines of one step are stroked together

  // Lines {x1, y1, x2, y2, weight} by opacity. Curves leave and arrive level.
  function byStep(lines) {
    const groups = Array.from({ length: steps + 1 }, () => []);
    for (const line of lines) groups[Math.ceil(page.clamp(Math.abs(line.weight), 0, 1) * steps)].push(line);
    return groups;
  }
  // `faint` is for pictures of many heads, where small weights add up.
  const opacityOf = (step, faint) =>
    faint ? 0.02 + (0.6 * step) / steps : 0.05 + 0.95 * Math.pow(step / steps, 0.7);
  const widthOf = (step, most) => 0.6 + ((most - 0.6) * step) / steps;

  page.canvasSurface = function (context) {
    return {
      rect(x, y, w, h, color, opacity = 1, radius = 0) {
        context.globalAlpha = opacity;
        context.fillStyle = color;
        if (radius) {
          context.beginPath();
          context.roundRect(x, y, w, h, radius);
          context.fill();
        } else context.fillRect(x, y, w, h);
        context.globalAlpha = 1;
      },
      frame(x, y, w, h, color, width = 1) {
        context.strokeStyle = color;
        context.lineWidth = width;
        context.strokeRect(x, y, w, h);
      },
      text(text, x, y, { color, size = 13, weight, align = 'left', turn = 0 } = {}) {
        context.font = font(size, weight);
        context.fillStyle = color;
        context.textAlign = align;
        context.textBaseline = 'middle';
        if (!turn) {
          context.fillText(text, x, y);
          return;
        }
        context.save();
        context.translate(x, y);
        context.rotate((turn * Math.PI) / 180);
        context.fillText(text, 0, 0);
        context.restore();
      },
      lines(lines, color, { most = 3, curved = true, faint = false } = {}) {
        context.strokeStyle = color;
        byStep(lines).forEach((group, step) => {
          if (group.length === 0) return;
          context.globalAlpha = opacityOf(step, faint);
          context.lineWidth = widthOf(step, most);
          context.beginPath();
          for (const { x1, y1, x2, y2 } of group) {
            context.moveTo(x1, y1);
            if (curved) context.bezierCurveTo((x1 + x2) / 2, y1, (x1 + x2) / 2, y2, x2, y2);
            else context.lineTo(x2, y2);
          }
          context.stroke();
        });
        context.globalAlpha = 1;
      },
      // rows * columns cells as one image; colorOf gives [r, g, b] or null
      cells(x, y, w, h, rows, columns, colorOf) {
        if (rows === 0 || columns === 0) return;
        context.imageSmoothingEnabled = w < columns || h < rows;
        context.drawImage(cellImage(rows, columns, colorOf), x, y, w, h);
      },
      group(opacity, draw) {
        draw(this);
        return opacity;
      }
    };
  };

  function cellImage(rows, columns, colorOf) {
    const canvas = document.createElement('canvas');
    canvas.width = columns;
    canvas.height = rows;
    const context = canvas.getContext('2d'),
      image = context.createImageData(columns, rows);
    for (let i = 0, at = 0; i < rows; i++)
      for (let j = 0; j < columns; j++, at += 4) {
        const color = colorOf(i, j);
        if (!color) continue;
        image.data.set(color, at);
        image.data[at + 3] = 255;
      }
    context.putImageData(image, 0, 0);
    return canvas;
  }

  const escapeXml = text =>
    text
      .replace(/[&<>"']/g, c => `&#${c.charCodeAt(0)};`)
      .replace(
        /[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g,
        '\ufffd'
      );
  const short = value => String(Math.round(value * 100) / 100);

  page.svgSurface = function () {
    const parts = [];
    const surface = {
      parts,
      rect(x, y, w, h, color, opacity = 1, radius = 0) {
        parts.push(
          `<rect x="${short(x)}" y="${short(y)}" width="${short(w)}" height="${short(h)}" fill="${color}"` +
            (opacity < 1 ? ` opacity="${short(opacity)}"` : '') +
            (radius ? ` rx="${radius}"` : '') +
            '/>'
        );
      },
      frame(x, y, w, h, color, width = 1) {
        parts.push(
          `<rect x="${short(x)}" y="${short(y)}" width="${short(w)}" height="${short(h)}" fill="none" ` +
            `stroke="${color}" stroke-width="${width}"/>`
        );
      },
      text(text, x, y, { color, size = 13, weight, align = 'left', turn = 0 } = {}) {
        const anchor = { left: 'start', right: 'end', center: 'middle' }[align];
        parts.push(
          `<text x="${short(x)}" y="${short(y)}" fill="${color}" font-size="${size}" text-anchor="${anchor}" ` +
            `dy=".35em"` +
            (weight ? ` font-weight="${weight}"` : '') +
            (turn ? ` transform="rotate(${turn} ${short(x)} ${short(y)})"` : '') +
            ` xml:space="preserve">${escapeXml(text)}</text>`
        );
      },
      lines(lines, color, { most = 3, curved = true, faint = false } = {}) {
        byStep(lines).forEach((group, step) => {
          if (group.length === 0) return;
          const d = group
            .map(({ x1, y1, x2, y2 }) => {
              const mid = short((x1 + x2) / 2);
              return (
                `M${short(x1)} ${short(y1)}` +
                (curved ? `C${mid} ${short(y1)} ${mid} ${short(y2)} ` : 'L') +
                `${short(x2)} ${short(y2)}`
              );
            })
            .join('');
          parts.push(
            `<path d="${d}" fill="none" stroke="${color}" stroke-opacity="${short(opacityOf(step, faint))}" ` +
              `stroke-width="${short(widthOf(step, most))}"/>`
          );
        });
      },
      cells(x, y, w, h, rows, columns, colorOf, { image = rows * columns > 5000 } = {}) {
        if (rows === 0 || columns === 0) return;
        if (image) {
          // a rectangle each would take megabytes
          parts.push(
            `<image x="${short(x)}" y="${short(y)}" width="${short(w)}" height="${short(h)}" ` +
              `preserveAspectRatio="none" image-rendering="pixelated" href="${cellImage(rows, columns, colorOf).toDataURL()}"/>`
          );
          return;
        }
        const cw = w / columns,
          ch = h / rows;
        for (let i = 0; i < rows; i++)
          for (let j = 0; j < columns; j++) {
            const color = colorOf(i, j);
            if (color) surface.rect(x + j * cw, y + i * ch, cw, ch, `rgb(${color.map(Math.round).join()})`);
          }
      },
      group(opacity, draw) {
        parts.push(`<g opacity="${opacity}">`);
        draw(surface);
        parts.push('</g>');
        return opacity;
      },
      document(width, height, title, description) {
        return (
          `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" ` +
          `font-family="${escapeXml(family)}" role="img"><title>${escapeXml(title)}</title>` +
          `<desc>${escapeXml(description)}</desc>\n${parts.join('\n')}\n</svg>\n`
        );
      }
    };
    return surface;
  };

  // ---- Text that fits -------------------------------------------------------

  const ruler = document.createElement('canvas').getContext('2d');
  const widths = new Map();
  page.textWidth = function (text, size, weight) {
    const key = `${size},${weight || 400},${text}`;
    if (!widths.has(key)) {
      ruler.font = font(size, weight);
      widths.set(key, ruler.measureText(text).width);
    }
    return widths.get(key);
  };
  page.fitText = function (text, width, size) {
    if (page.textWidth(text, size) <= width) return text;
    const letters = [...text];
    let low = 0,
      high = letters.length;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (page.textWidth(letters.slice(0, middle).join('') + '…', size) <= width) low = middle;
      else high = middle - 1;
    }
    return letters.slice(0, low).join('') + '…';
  };
})(window.bertsql);
