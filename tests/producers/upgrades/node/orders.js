// Reads orders (XML), corrects prices in the tree and writes it again. The library is xmldom 0.6.0 on side a, and
// @xmldom/xmldom 0.7.0, as it was renamed, on side b. Usage: node orders.js a|b [ROUNDS]
const { DOMParser, XMLSerializer } = require(`orders-${process.argv[2]}`);

const rounds = Number(process.argv[3] || 700);

function main() {
  let bytes = 0;
  for (let round = 0; round < rounds; round++) {
    const tree = read(describe(120, round));
    correct(tree, round % 5);
    bytes += write(tree).length;
  }
  console.log(bytes, "bytes written");
}

function read(text) {
  return new DOMParser().parseFromString(text, "text/xml");
}

function write(tree) {
  return new XMLSerializer().serializeToString(tree);
}

// Raises the prices of all lines.
function correct(tree, cents) {
  for (let order = tree.documentElement.firstChild; order; order = order.nextSibling) {
    for (let line = order.firstChild; line; line = line.nextSibling) {
      if (line.nodeName === "line") {
        line.setAttribute("price", String(Number(line.getAttribute("price")) + cents));
        line.appendChild(tree.createElement("checked"));
      }
    }
  }
}

// Makes up the text.
function describe(count, seed) {
  const orders = [];
  for (let i = 0; i < count; i++) {
    const lines = [];
    for (let j = 0; j < 4 + (i % 3); j++) {
      lines.push(`<line price="${(i * seed) % 900}" unit="piece">Nails &amp; hooks, ${j} mm<!-- row ${j} --></line>`);
    }
    orders.push(`<order id="o${seed}-${i}" xml:lang="en"><to>Harbour &#8470; ${i}</to>${lines.join("\n  ")}</order>`);
  }
  return `<?xml version="1.0"?>\n<orders xmlns="urn:orders" made="${seed}">${orders.join("\n")}</orders>`;
}

main();
