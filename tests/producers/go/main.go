// Producers runs one of the small programs in this folder and writes its
// profiles, with the profilers of Go's runtime. Usage: producers PROGRAM DIR
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime/pprof"
)

func main() {
	if len(os.Args) != 3 {
		usage()
	}
	switch dir := os.Args[2]; os.Args[1] {
	case "heap":
		heap(dir)
	case "heap-ops-base":
		heapOps(dir, "base", 1000, false)
	case "heap-ops-new":
		heapOps(dir, "new", 3000, true)
	case "locks-base":
		locks(dir, "base", newSingleStore())
	case "locks-new":
		locks(dir, "new", newShardedStore())
	case "goroutine":
		goroutines(dir)
	case "labels-base":
		labels(dir, "base", bubbleDown, 500_000)
	case "labels-new":
		labels(dir, "new", mergeSort, 900_000)
	case "series":
		series(dir, 0, 9)
	case "series-restarted":
		series(dir, 9, 12)
	default:
		usage()
	}
}

func usage() {
	fmt.Fprintln(os.Stderr, "usage: producers PROGRAM DIR")
	os.Exit(2)
}

// create opens a file of the corpus.
func create(dir, name string) *os.File {
	file, err := os.Create(filepath.Join(dir, name))
	check(err)
	return file
}

// write saves one of the runtime's profiles; debug 0 is pprof's format, 1 the
// older text.
func write(dir, name, profile string, debug int) {
	file := create(dir, name)
	check(pprof.Lookup(profile).WriteTo(file, debug))
	check(file.Close())
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
