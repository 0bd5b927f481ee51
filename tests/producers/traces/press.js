// A printing press for words, for V8's profilers: sets lines, sorts them, and keeps a few; it rests between two jobs.
// Usage: node --cpu-prof|--heap-prof press.js ROUNDS
'use strict';

const kept = [];

function setLine(length, seed) {
  let line = '';
  for (let i = 0; i < length; i++) {
    seed = (Math.imul(seed ^ i, 16777619) >>> 0) + i;
    line += String.fromCharCode(97 + (seed % 26));
  }
  return line;
}

const sortLine = line => line.split('').sort().join('');

function fold(depth, length) {
  if (depth > 0) {
    return fold(depth - 1, length);
  }
  return sortLine(setLine(length, length));
}

function printSheets(rounds) {
  for (let round = 0; round < rounds; round++) {
    for (let depth = 0; depth < 60; depth += 20) {
      kept.push({ depth, line: fold(depth, 4000) });
    }
    // An anonymous function, and one whose name needs an escape.
    (() => JSON.parse(JSON.stringify(kept.slice(-50))))();
    ({ 'quote "\u00e9"\n': () => sortLine(setLine(3000, round)) })['quote "\u00e9"\n']();
  }
}

const rounds = Number(process.argv[2] ?? 20);
printSheets(rounds);
setTimeout(() => printSheets(rounds), 100);
