// A shop that renders pages, in two versions. In version 2 the search compares
// the words of every article after cleaning them each time (slower), and the
// menu is rendered from a cache (it was rendered recursively for every page).
'use strict';

function loadCatalogue(size) {
  const catalogue = [];
  for (let number = 0; number < size; number++) {
    catalogue.push(makeArticle(number));
  }
  return catalogue;
}

function makeArticle(number) {
  const words = ['Apple', 'Pear', 'Plum', 'Quince', 'Cherry', 'Medlar'];
  return {
    number,
    title: `${words[number % 6]} ${words[(number * 7) % 5]} no. ${number}`,
    prices: Array.from({ length: 12 }, (_, month) => (number * 31 + month * 17) % 1000),
  };
}

// The menu is a tree; buildMenu and renderMenu are recursive.
function buildMenu(depth, name = 'root') {
  const children = [];
  for (let child = 0; depth > 0 && child < 4; child++) {
    children.push(buildMenu(depth - 1, `${name}-${child}`));
  }
  return { name, children };
}

function renderMenu(menu, indent = '') {
  let text = `${indent}${escapeText(menu.name)}\n`;
  for (const child of menu.children) {
    text += renderMenu(child, indent + '  ');
  }
  return text;
}

function escapeText(text) {
  return text.replace(/[&<>"]/g, (letter) => `&#${letter.charCodeAt(0)};`);
}

function clean(text) {
  return text.trim().toLowerCase().normalize('NFC');
}

function sameWord(version, a, b) {
  return version === 1 ? a === b : clean(a) === clean(b);
}

function searchPage(version, catalogue, wanted) {
  const found = [];
  for (const article of catalogue) {
    for (const word of article.title.split(' ')) {
      if (sameWord(version, word, wanted)) {
        found.push(article);
        break;
      }
    }
  }
  return found.map(renderArticle).join('\n');
}

function renderArticle(article) {
  return `${escapeText(article.title)}: ${lowest(article.prices)}`;
}

function lowest(prices) {
  return prices.slice().sort((a, b) => a - b)[0];
}

function statistics(catalogue) {
  let sum = 0;
  for (const article of catalogue) {
    sum += article.prices.reduce((total, price) => total + price * price, 0);
  }
  return JSON.stringify({ sum, articles: catalogue.length });
}

// What the shop serves: route, number of articles, handler.
function routes(version) {
  const catalogue = loadCatalogue(1500);
  const menu = buildMenu(5);
  let cached;
  const menuPage = () => {
    if (version === 1) return renderMenu(menu);
    return (cached ??= renderMenu(menu));
  };
  return [
    ['/menu', 0, menuPage],
    ['/search', 1500, () => searchPage(version, catalogue, 'Quince')],
    ['/statistics', 800, (articles) => statistics(catalogue.slice(0, articles))],
  ];
}

function fillCache(size) {
  const cache = new Map();
  for (let page = 0; page < size; page++) {
    cache.set(`page-${page}`, renderMenu(buildMenu(2, `page-${page}`)).split('\n'));
  }
  return cache;
}

// Waits without working.
function idle(millis) {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, millis);
}

module.exports = { buildMenu, fillCache, idle, loadCatalogue, routes };
