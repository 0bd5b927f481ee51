// Logmill reads an access log, classifies its headers, finds the routes and
// renders a report. It is the program of the README's story: it is profiled
// once as it is here ("main") and once with ../branch.patch applied ("branch").
// Both do the same fixed amount of work.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"runtime/pprof"

	"logmill/accesslog"
	"logmill/headers"
	"logmill/input"
	"logmill/report"
	"logmill/routes"
	"logmill/stats"
)

func main() {
	lines := flag.Int("lines", 120_000, "lines in the log")
	passes := flag.Int("passes", 8, "times to work through the log")
	every := flag.Int("every", 400, "lines between two interim reports")
	cpu := flag.String("cpuprofile", "", "write a CPU profile to this `file`")
	flag.Parse()

	log := input.Generate(*lines)
	out, err := os.Create(*cpu)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	pprof.StartCPUProfile(out)
	var summary string
	for range *passes {
		summary = run(log, *every)
	}
	pprof.StopCPUProfile()
	out.Close()
	fmt.Println(summary)
}

// run works through the whole log and renders a report every few lines, as a
// live view would, and once more at the end.
func run(log []byte, every int) string {
	tree := routes.NewTree(input.Routes())
	collector := stats.NewCollector()
	reader := accesslog.NewReader(log)
	count := 0
	for reader.Next() {
		record := reader.Record()
		class := headers.Classify(record)
		collector.Add(tree.Match(record.Path), record, class)
		if count++; count%every == 0 {
			report.Render(io.Discard, collector.Snapshot())
		}
	}
	final := collector.Snapshot()
	report.Render(io.Discard, final)
	return fmt.Sprintf("%d lines, %d classified, %d unknown headers", count, final.Known, final.Unknown)
}
