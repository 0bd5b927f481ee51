// Two snapshots of the goroutines of one process, labelled by what they serve.
// Between them the readers doubled, the writers went home, and a compaction
// with nested (recursive) steps began.
package main

import (
	"context"
	"runtime/pprof"
	"strconv"
	"sync"
)

func goroutines(dir string) {
	requests := make(chan int)
	leave := make(chan struct{})
	var started, left sync.WaitGroup
	background := context.Background()

	begin := func(count int, step func(), pairs ...string) {
		for range count {
			started.Add(1)
			go pprof.Do(background, pprof.Labels(pairs...), func(context.Context) {
				started.Done()
				step()
			})
		}
		started.Wait()
	}

	for tenant := range 4 {
		begin(10, func() { readRequest(requests) }, "role", "reader", "tenant", strconv.Itoa(tenant))
	}
	left.Add(12)
	begin(12, func() { writeUntil(leave); left.Done() }, "role", "writer")
	begin(3, func() { select {} })
	write(dir, "go-goroutine.base.pb.gz", "goroutine", 0)
	write(dir, "legacy/go-goroutine.debug1.txt", "goroutine", 1)

	close(leave)
	left.Wait()
	for tenant := range 4 {
		begin(10, func() { readRequest(requests) }, "role", "reader", "tenant", strconv.Itoa(tenant))
	}
	var never sync.Mutex
	never.Lock()
	for depth := 1; depth <= 4; depth++ {
		begin(depth, func() { compact(depth, &never) }, "role", "compaction", "depth", strconv.Itoa(depth))
	}
	write(dir, "go-goroutine.new.pb.gz", "goroutine", 0)
}

func readRequest(requests <-chan int) int { return <-requests }

func writeUntil(leave <-chan struct{}) { <-leave }

// compact goes down to depth 0 and waits there.
func compact(depth int, lock *sync.Mutex) {
	if depth == 0 {
		lock.Lock()
		return
	}
	compact(depth-1, lock)
	lock.Unlock()
}
