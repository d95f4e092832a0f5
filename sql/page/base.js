// What all files of the page use. The page is one namespace, `bertsql`: each file
// adds its part, and main.js starts it. No framework, nothing fetched.
(function (page) {
  'use strict';

  // An element: el('button', { type: 'button', onclick: f }, 'text', child, …).
  // Keys that begin with "on" are listeners, true and false set or leave out an
  // attribute. Strings become text nodes: nothing here is ever parsed as HTML.
  page.el = function (tag, attributes, ...children) {
    const node = document.createElement(tag);
    for (const [key, value] of Object.entries(attributes || {})) {
      if (key.startsWith('on')) node.addEventListener(key.slice(2), value);
      else if (value === true) node.setAttribute(key, '');
      else if (value !== false && value !== null && value !== undefined) node.setAttribute(key, value);
    }
    node.append(...children.filter(child => child !== null && child !== undefined));
    return node;
  };

  page.byId = id => document.getElementById(id);
  page.clamp = (value, low, high) => Math.min(high, Math.max(low, value));
  page.range = (from, to) => Array.from({ length: Math.max(0, to - from) }, (_, i) => from + i);

  // A weight as people read it: three decimals, a real minus sign.
  page.number = function (value, digits = 3) {
    if (value === null || Number.isNaN(value)) return '–';
    const text = value.toFixed(digits);
    return /^-0\.?0*$/.test(text) ? text.slice(1) : text.replace('-', '−');
  };
  page.signed = (value, digits = 3) => (value > 0 ? '+' : '') + page.number(value, digits);

  // "1 token", "2 tokens".
  page.many = (count, noun, plural = `${noun}s`) =>
    `${count.toLocaleString('en')} ${count === 1 ? noun : plural}`;

  // Text that may hold anything, made visible: control characters become their
  // pictures, characters that steer the direction of text or show nothing become
  // their code points. Without that, one token could turn the page around. The two
  // joiners stay: they shape Persian words and emoji.
  page.visible = function (text) {
    let out = '';
    for (const c of text) {
      const code = c.codePointAt(0);
      if (code < 0x20) out += String.fromCodePoint(0x2400 + code);
      else if (code === 0x7f) out += '\u2421';
      else if (
        (code >= 0x80 && code < 0xa0) ||
        code === 0xad ||
        code === 0x200b ||
        code === 0x200e ||
        code === 0x200f ||
        (code >= 0x2028 && code <= 0x202e) ||
        (code >= 0x2060 && code <= 0x206f) ||
        code === 0xfeff ||
        code === 0x61c ||
        (code >= 0xfff0 && code <= 0xfffb)
      )
        out += `⟨${code.toString(16).toUpperCase().padStart(4, '0')}⟩`;
      else out += c;
    }
    return /^[\u200c\u200d]*$/.test(out) ? '∅' : out;
  };

  page.announce = text => {
    page.byId('announce').textContent = text;
  };
})((window.bertsql = window.bertsql || {}));
