// Fills caches and keeps them, for V8's heap profiler at its default interval of 512 KiB: about a hundred samples.
// Usage: node --heap-prof cache.js
'use strict';

const kept = (globalThis.kept = []); // Still reachable when the profile is written, at exit.
const word = (seed, length) => Array.from({ length }, (_, i) => String.fromCharCode(97 + ((seed * 31 + i * 7) % 26))).join('');

function cacheOrders(n) { for (let i = 0; i < n; i++) kept.push({ id: i, lines: [word(i, 40), word(i + 1, 40)] }); }
function cacheUsers(n) { for (let i = 0; i < n; i++) kept.push({ id: i, name: word(i, 60), tags: new Array(8).fill(i) }); }
function cachePrices(n) { for (let i = 0; i < n; i++) kept.push(new Float64Array(32).fill(i)); }
function cachePages(n) { for (let i = 0; i < n; i++) kept.push(Buffer.alloc(2000, i & 255).toString('latin1')); }
function indexWords(n) { const index = new Map(); for (let i = 0; i < n; i++) index.set(word(i, 20) + i, i); kept.push(index); }
function logLines(n) { const log = []; for (let i = 0; i < n; i++) log.push(`${i}: ${word(i, 80)}`); kept.push(log); }

cacheOrders(30000);
cacheUsers(30000);
cachePrices(20000);
cachePages(3000);
indexWords(40000);
logLines(60000);
