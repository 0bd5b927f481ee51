// A peer: deltas of cumulative heap profiles, computed in the usual way with the Go library. For each pair of
// consecutive snapshots: parse the newer, scale the older (-1 for cumulative types, 0 for others), merge, and write
// with gzip level 1.
//
// godelta RUNS SNAPSHOT... prints the milliseconds of each delta (the median of the runs) as JSON, and the bytes
// written. godelta check SNAPSHOT... -- DELTA... compares deltas with its own. After merging with the negated
// expectation, only samples that vanished (or decreased because one of two duplicates vanished) may remain, where the
// library has negative values.
package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/google/pprof/profile"
)

var ratios = []float64{-1, -1, 0, 0}

func main() {
	if os.Args[1] == "check" {
		split := slices.Index(os.Args, "--")
		compare(os.Args[2:split], os.Args[split+1:])
		return
	}
	runs, err := strconv.Atoi(os.Args[1])
	check(err)
	var snapshots [][]byte
	for _, path := range os.Args[2:] {
		content, err := os.ReadFile(path)
		check(err)
		snapshots = append(snapshots, content)
	}
	times := make([][]float64, len(snapshots)-1)
	size := 0
	for range runs {
		prev := parse(snapshots[0])
		size = 0
		for i, snapshot := range snapshots[1:] {
			start := time.Now()
			cur := parse(snapshot)
			size += len(pack(subtract(prev, cur)))
			times[i] = append(times[i], time.Since(start).Seconds()*1000)
			prev = cur
		}
	}
	var medians []float64
	for _, all := range times {
		slices.Sort(all)
		medians = append(medians, all[len(all)/2])
	}
	check(json.NewEncoder(os.Stdout).Encode(map[string]any{"milliseconds": medians, "bytes": size}))
}

func parse(content []byte) *profile.Profile {
	p, err := profile.ParseData(content)
	check(err)
	return p
}

// subtract changes prev.
func subtract(prev, cur *profile.Profile) *profile.Profile {
	check(prev.ScaleN(ratios))
	merged, err := profile.Merge([]*profile.Profile{cur, prev})
	check(err)
	return merged
}

func pack(p *profile.Profile) []byte {
	var out bytes.Buffer
	zipped, err := gzip.NewWriterLevel(&out, 1)
	check(err)
	check(p.WriteUncompressed(zipped))
	check(zipped.Close())
	return out.Bytes()
}

func compare(snapshots, deltas []string) {
	read := func(path string) *profile.Profile {
		content, err := os.ReadFile(path)
		check(err)
		return parse(content)
	}
	for i, path := range deltas {
		expected := subtract(read(snapshots[i]), read(snapshots[i+1]))
		samples := len(expected.Sample)
		expected.Scale(-1)
		left, err := profile.Merge([]*profile.Profile{read(path), expected})
		check(err)
		for _, s := range left.Sample {
			// The expectation is negated, so these values are positive.
			if s.Value[0] < 0 || s.Value[1] < 0 || s.Value[2] != 0 || s.Value[3] != 0 {
				log.Fatalf("%s: a sample differs: %v", path, s.Value)
			}
		}
		fmt.Fprintf(os.Stderr, "%s: %d samples as expected, %d vanished\n", path, samples-len(left.Sample), len(left.Sample))
		if samples < 2*len(left.Sample) {
			log.Fatal("most of it differs")
		}
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
