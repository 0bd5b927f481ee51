// Takes the profiles of shop.js. Usage: node profile.js time-base|time-new|heap DIR
'use strict';

const fs = require('node:fs');
const path = require('node:path');
const pprof = require('@datadog/pprof');
const shop = require('./shop');

const [program, dir] = process.argv.slice(2);

// Wall time, one run for each version of the shop. Samples carry the route
// (text) and the number of articles on the page (a number without a unit).
function time(side, version) {
  pprof.time.start({ intervalMicros: 5000, withContexts: true, collectCpuTime: true });
  const handlers = shop.routes(version);
  for (let round = 0; round < 600; round++) {
    for (const [route, articles, handler] of handlers) {
      pprof.time.setContext({ route, articles });
      handler(articles);
    }
  }
  pprof.time.setContext({});
  shop.idle(200);
  write(`node-time.${side}.pb.gz`, pprof.time.stop(false, ({ context }) => ({ ...context?.context })));
}

// The heap of one process, before and after its cache was filled.
function heap() {
  pprof.heap.start(4096, 64);
  const kept = [shop.loadCatalogue(4000)];
  write('node-heap.base.pb.gz', pprof.heap.profile());
  kept[0] = shop.loadCatalogue(1000);
  kept.push(shop.fillCache(600), shop.buildMenu(6));
  global.gc();
  write('node-heap.new.pb.gz', pprof.heap.profile());
  pprof.heap.stop();
  return kept;
}

function write(name, profile) {
  fs.writeFileSync(path.join(dir, name), pprof.encodeSync(profile));
}

if (program === 'heap') {
  heap();
} else if (program === 'time-base') {
  time('base', 1);
} else {
  time('new', 2);
}
