// Snapshots of one process while it works, and of the process that takes its
// place after a restart: every kind of cumulative profile, and goroutines as a
// gauge. Every few rounds the work changes, so that stacks appear, go quiet and
// come back.
package main

import (
	"context"
	"fmt"
	"runtime"
	"runtime/pprof"
	"strings"
	"sync"
	"time"
)

// kept is what is in use; it grows and is dropped now and then.
var kept = map[string][]byte{}

// series takes the snapshots from..to-1. The second process begins with the
// same work as the first, so that its counters are lower and not merely others.
func series(dir string, from, to int) {
	runtime.MemProfileRate = 512
	runtime.SetMutexProfileFraction(1)
	runtime.SetBlockProfileRate(1)
	stop := make(chan struct{})
	defer close(stop)
	for number := from; number < to; number++ {
		round := number - from
		tasks := []func(int){importOrders, renderReports, indexDocuments, resizeCache}
		for task := range min(round/2+1, len(tasks)) {
			if (round+task)%3 != 2 {
				tasks[task](round)
			}
		}
		contend(round)
		listen(round, stop)
		if round%4 == 3 {
			clear(kept)
		}
		runtime.GC()
		runtime.GC()
		for _, kind := range []string{"heap", "mutex", "block", "goroutine"} {
			write(dir, fmt.Sprintf("series/%s-%02d.pb.gz", kind, number), kind, 0)
		}
	}
}

func importOrders(round int) {
	for order := range 40 + 10*round {
		keep(fmt.Sprintf("order-%d-%d", round, order), make([]byte, 64+order%5*96))
	}
}

func keep(name string, content []byte) { kept[name] = append(content, name...) }

func renderReports(round int) {
	for page := range 30 {
		renderRows(page%6, round)
	}
}

// renderRows is recursive: a stack for each depth.
func renderRows(depth, round int) string {
	if depth == 0 {
		return strings.Repeat("<td>", 16+round)
	}
	return "<tr>" + renderRows(depth-1, round) + "</tr>"
}

func indexDocuments(round int) {
	words := map[string][]int{}
	for document := range 25 {
		word := fmt.Sprintf("word-%d", document*(round+3)%17)
		words[word] = append(words[word], document)
	}
	keep(fmt.Sprintf("index-%d", round), make([]byte, 32*len(words)))
}

func resizeCache(round int) {
	for size := 128; size <= 2048; size *= 2 {
		keep(fmt.Sprintf("cache-%d", size), make([]byte, size*(round%3+1)))
	}
}

// contend makes goroutines wait for each other, in more ways each round.
func contend(round int) {
	var all sync.WaitGroup
	var accounts sync.Mutex
	var rates sync.RWMutex
	results := make(chan int)
	for worker := range 4 {
		all.Go(func() {
			for range 3 {
				transfer(&accounts)
				if round >= 3 {
					updateRates(&rates, worker)
				}
			}
			if round%2 == 1 {
				results <- worker
			}
		})
	}
	if round%2 == 1 {
		for range 4 {
			<-results
		}
	}
	all.Wait()
}

func transfer(accounts *sync.Mutex) {
	accounts.Lock()
	defer accounts.Unlock()
	pause(100 * time.Microsecond)
}

func updateRates(rates *sync.RWMutex, worker int) {
	if worker == 0 {
		rates.Lock()
		defer rates.Unlock()
	} else {
		rates.RLock()
		defer rates.RUnlock()
	}
	pause(150 * time.Microsecond)
}

// listen starts goroutines that stay, labelled.
func listen(round int, stop chan struct{}) {
	for connection := range 3 {
		labels := pprof.Labels("tenant", fmt.Sprintf("tenant-%d", connection%2), "round", fmt.Sprint(round%4))
		ready := make(chan struct{})
		go pprof.Do(context.Background(), labels, func(context.Context) {
			close(ready)
			<-stop
		})
		<-ready
	}
}
