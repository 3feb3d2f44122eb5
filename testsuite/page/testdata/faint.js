// Texts whose contrast with what is behind them is below 4.5, as a browser shows them.
(() => {
  const parse = c => (c.match(/[\d.]+/g) || []).map(Number);
  const linear = v => (v /= 255) <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4;
  const luminance = ([r, g, b]) => .2126 * linear(r) + .7152 * linear(g) + .0722 * linear(b);
  const behind = e => {
    for (; e; e = e.parentElement) {
      const c = parse(getComputedStyle(e).backgroundColor);
      if (c.length === 3 || c[3] > 0) return c;
    }
    return [255, 255, 255];
  };
  const isText = e => [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim());
  const texts = [...document.querySelectorAll('body *')]
    .filter(e => isText(e) && e.getClientRects().length && !e.closest('script, noscript'));
  const faint = texts.map(e => {
    const a = luminance(parse(getComputedStyle(e).color)), b = luminance(behind(e));
    return { e, ratio: (Math.max(a, b) + .05) / (Math.min(a, b) + .05) };
  }).filter(({ ratio }) => ratio < 4.5)
    .map(({ e, ratio }) => `${e.tagName}.${e.className} ${e.textContent.trim().slice(0, 40)} ${ratio.toFixed(2)}`);
  return texts.length > 6 ? faint : [`only ${texts.length} texts were seen`];
})()
