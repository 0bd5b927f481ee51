// Makes Node write V8's CPU profile into its trace. The option --trace-event-categories does not start V8's profiler in
// the main thread. Usage: node --trace-event-file-pattern FILE -r ./trace.js PROGRAM
'use strict';

require('trace_events').createTracing({ categories: ['disabled-by-default-v8.cpu_profiler'] }).enable();
