// Lends books from a shelf that has room for the last 4,000 that somebody asked for; others come from the cellar. The
// shelf is lru-cache: version 6 on side a, 7 on side b. Usage: node shelf.js a|b [ROUNDS]
const LRU = require(`shelf-${process.argv[2]}`);

const rounds = Number(process.argv[3] || 400);

function main() {
  const shelf = new LRU({ max: 4000 });
  let points = 0;
  for (let round = 0; round < rounds; round++) {
    points += lend(shelf, wishes(round));
  }
  console.log(points, "points,", shelf.keys().length ?? [...shelf.keys()].length, "books on the shelf");
}

// The books that are asked for in a day: some often, most seldom.
function wishes(day) {
  const titles = [];
  let random = day * 7919 + 1;
  for (let i = 0; i < 20000; i++) {
    random = (random * 1103515245 + 12345) % 2147483648;
    const popular = random % 997;
    titles.push(`book ${popular < 500 ? popular : random % 30011}`);
  }
  return titles;
}

function lend(shelf, titles) {
  let points = 0;
  for (const title of titles) {
    let book = shelf.get(title);
    if (book === undefined) {
      book = fetch(title);
      shelf.set(title, book);
    }
    points += stamp(book);
  }
  return points;
}

// Makes a book.
function fetch(title) {
  return { title, pages: title.length * 30, lent: 0, stamps: [] };
}

function stamp(book) {
  book.lent++;
  book.stamps.push(book.lent % 7);
  if (book.stamps.length > 8) book.stamps.shift();
  return book.stamps.reduce((sum, s) => sum + s, book.pages % 5);
}

main();
