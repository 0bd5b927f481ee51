// A CPU profile whose samples carry labels: the endpoint that was served, and
// for one endpoint also the tenant. In new, /sort has a better algorithm and
// /sum more to add up; /walk does what it did.
package main

import (
	"context"
	"hash/fnv"
	"runtime/pprof"
	"strconv"
)

// sink keeps the compiler from leaving the work out.
var sink int

func labels(dir, side string, sort func([]int) []int, sumSize int) {
	file := create(dir, "go-labels-cpu."+side+".pb.gz")
	check(pprof.StartCPUProfile(file))
	for round := range 450 {
		tenant := "tenant-" + strconv.Itoa(round%3)
		serve("/sort", func() { sink += serveSort(1500, sort) })
		serve("/sum", func() { sink += serveSum(sumSize) })
		serve("/walk", func() { sink += serveWalk(18) }, "tenant", tenant)
	}
	sink += serveSort(8000, sort) // not labelled
	pprof.StopCPUProfile()
	check(file.Close())
}

func serve(endpoint string, handler func(), more ...string) {
	pairs := append([]string{"endpoint", endpoint}, more...)
	pprof.Do(context.Background(), pprof.Labels(pairs...), func(context.Context) { handler() })
}

func serveSort(size int, sort func([]int) []int) int {
	values := make([]int, size)
	for i := range values {
		values[i] = i * 7919 % size
	}
	return sort(values)[size/2]
}

func bubbleDown(values []int) []int {
	for last := len(values) - 1; last > 0; last-- {
		for i := range last {
			if values[i] > values[i+1] {
				swap(values, i, i+1)
			}
		}
	}
	return values
}

func swap(values []int, i, j int) { values[i], values[j] = values[j], values[i] }

// mergeSort is recursive.
func mergeSort(values []int) []int {
	if len(values) < 2 {
		return values
	}
	middle := len(values) / 2
	return merge(mergeSort(values[:middle]), mergeSort(values[middle:]))
}

func merge(left, right []int) []int {
	merged := make([]int, 0, len(left)+len(right))
	for len(left) > 0 && len(right) > 0 {
		if left[0] <= right[0] {
			merged, left = append(merged, left[0]), left[1:]
		} else {
			merged, right = append(merged, right[0]), right[1:]
		}
	}
	return append(append(merged, left...), right...)
}

func serveSum(size int) int {
	sum := fnv.New64a()
	sum.Write(make([]byte, size))
	return int(sum.Sum64())
}

func serveWalk(depth int) int { return walk(depth) }

// walk visits a tree that exists only in the recursion.
func walk(depth int) int {
	if depth == 0 {
		return 1
	}
	return walk(depth-1) + walk(depth-1) + 1
}
