// Package prof takes the profiles of a run: Go's CPU profiler, and the heap's at the end.
package prof

import (
	"flag"
	"log"
	"os"
	"runtime"
	"runtime/pprof"
)

// Run does the work between the two profiles, as the flags say: -cpu FILE, -heap FILE, -rounds N.
func Run(rounds int, work func(round int)) {
	cpu := flag.String("cpu", "", "where the CPU profile goes")
	heap := flag.String("heap", "", "where the heap profile goes")
	flag.IntVar(&rounds, "rounds", rounds, "how often the work is done")
	flag.Parse()
	runtime.MemProfileRate = 128 << 10
	if *cpu != "" {
		must(pprof.StartCPUProfile(create(*cpu)))
	}
	for round := range rounds {
		work(round)
	}
	pprof.StopCPUProfile()
	if *heap != "" {
		runtime.GC()
		must(pprof.Lookup("heap").WriteTo(create(*heap), 0))
	}
}

func create(name string) *os.File {
	file, err := os.Create(name)
	must(err)
	return file
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
