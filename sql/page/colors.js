// Colours of the pictures, read from the style sheet, so that they stand in one
// place. The scales are ordered by lightness and the head colours differ in it
// too; heads carry their number wherever they carry a colour.
(function (page) {
  'use strict';

  let named = new Map(),
    scales = {};

  const parse = hex => [1, 3, 5].map(i => parseInt(hex.slice(i, i + 2), 16));
  const toHex = rgb => '#' + rgb.map(v => Math.round(v).toString(16).padStart(2, '0')).join('');

  // 256 colours between the stops given, as [r, g, b].
  function scaleOf(stops) {
    const points = stops.map(name => parse(page.color(name)));
    return page.range(0, 256).map(step => {
      const at = (step / 255) * (points.length - 1),
        i = Math.min(points.length - 2, Math.floor(at));
      return points[i].map((v, c) => v + (points[i + 1][c] - v) * (at - i));
    });
  }

  page.color = function (name) {
    if (!named.has(name))
      named.set(
        name,
        getComputedStyle(document.documentElement)
          .getPropertyValue('--' + name)
          .trim()
      );
    return named.get(name);
  };
  page.headColor = head => page.color('head-' + (head % 12));

  // Weights are small where many tokens share them, so the scale follows their
  // square root; the legend has its marks accordingly.
  page.shade = weight => Math.sqrt(page.clamp(Math.abs(weight), 0, 1));
  page.weightRgb = function (weight, signed) {
    const step = page.shade(weight);
    if (!signed)
      return (scales.plain = scales.plain || scaleOf(['scale-0', 'scale-1', 'scale-2', 'scale-3', 'scale-4']))[
        Math.round(step * 255)
      ];
    const s = (scales.signed = scales.signed || scaleOf(['minus', 'middle', 'plus']));
    return s[Math.round(127.5 + (weight < 0 ? -127.5 : 127.5) * step)];
  };
  page.weightColor = (weight, signed) => toHex(page.weightRgb(weight, signed));

  // Black or white, whichever reads better on a colour: one of them always has a
  // contrast above 4.5.
  page.inkOn = function (rgb) {
    const [r, g, b] = rgb.map(v => ((v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.179 ? '#000000' : '#ffffff';
  };

  const dark = window.matchMedia('(prefers-color-scheme: dark)');
  page.isDark = () => page.get().theme === 'dark' || (page.get().theme === 'auto' && dark.matches);
  page.applyTheme = function () {
    document.documentElement.dataset.theme = page.get().theme;
    document.documentElement.dataset.shade = page.isDark() ? 'dark' : 'light';
    named = new Map();
    scales = {};
  };
  page.whenSystemTheme = listener => dark.addEventListener('change', listener);
})(window.bertsql);
