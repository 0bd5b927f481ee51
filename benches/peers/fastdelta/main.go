// A peer: fastdelta, DataDog's delta computation for heap profiles inside a Go process, with gzip level 1 on both
// sides.
//
// fastdelta RUNS SNAPSHOT... prints the milliseconds of each delta (the median of the runs) as JSON, and the bytes
// written. fastdelta write PREFIX SNAPSHOT... writes the deltas to PREFIX1.pb.gz and so on, for checks.
//
// The package is internal to dd-trace-go. Go checks import paths for access to internal packages, so this module is
// named as if it were in the same repository.
package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/DataDog/dd-trace-go/v2/profiler/internal/fastdelta"
	"github.com/DataDog/dd-trace-go/v2/profiler/internal/pprofutils"
)

func main() {
	if os.Args[1] == "write" {
		computer := computer()
		for i, snapshot := range read(os.Args[3:]) {
			packed := delta(computer, snapshot)
			if i > 0 {
				check(os.WriteFile(fmt.Sprintf("%s%d.pb.gz", os.Args[2], i), packed, 0o666))
			}
		}
		return
	}
	runs, err := strconv.Atoi(os.Args[1])
	check(err)
	snapshots := read(os.Args[2:])
	times := make([][]float64, len(snapshots)-1)
	size := 0
	for range runs {
		computer := computer()
		delta(computer, snapshots[0])
		size = 0
		for i, snapshot := range snapshots[1:] {
			start := time.Now()
			size += len(delta(computer, snapshot))
			times[i] = append(times[i], time.Since(start).Seconds()*1000)
		}
	}
	var medians []float64
	for _, all := range times {
		slices.Sort(all)
		medians = append(medians, all[len(all)/2])
	}
	check(json.NewEncoder(os.Stdout).Encode(map[string]any{"milliseconds": medians, "bytes": size}))
}

func computer() *fastdelta.DeltaComputer {
	return fastdelta.NewDeltaComputer(
		pprofutils.ValueType{Type: "alloc_objects", Unit: "count"},
		pprofutils.ValueType{Type: "alloc_space", Unit: "bytes"},
	)
}

func read(paths []string) [][]byte {
	var all [][]byte
	for _, path := range paths {
		content, err := os.ReadFile(path)
		check(err)
		all = append(all, content)
	}
	return all
}

func delta(computer *fastdelta.DeltaComputer, snapshot []byte) []byte {
	unzipped, err := gzip.NewReader(bytes.NewReader(snapshot))
	check(err)
	raw, err := io.ReadAll(unzipped)
	check(err)
	var out bytes.Buffer
	zipped, err := gzip.NewWriterLevel(&out, 1)
	check(err)
	check(computer.Delta(raw, zipped))
	check(zipped.Close())
	return out.Bytes()
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
