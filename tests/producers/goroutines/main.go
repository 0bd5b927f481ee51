// Goroutines starts goroutines that wait in different ways, and writes all forms of its goroutine profile and of Go's
// profile of leaked goroutines. At last it sends itself SIGQUIT, so that the runtime prints all goroutines to stderr.
// Usage: goroutines leaking|fixed FOLDER
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"sync"
	"syscall"
	"time"
)

type queue[T any] struct{ items chan T }

//go:noinline
func (q *queue[T]) take() T { return <-q.items }

//go:noinline
func first[T any](q *queue[T]) T { return q.take() }

// wait is inlined into its callers.
func wait(c chan int) { <-c }

type pool struct{ jobs chan int }

//go:noinline
func (p *pool) work(done <-chan struct{}) {
	select {
	case <-done:
	case <-p.jobs:
	}
}

//go:noinline
func deep(n int, c chan int) {
	if n == 0 {
		wait(c)
		return
	}
	deep(n-1, c)
	runtime.KeepAlive(c)
}

func main() {
	side, folder := os.Args[1], os.Args[2]
	alive, done := make(chan int), make(chan struct{})
	if side == "leaking" {
		// Nobody else knows these channels.
		for range 3 {
			go first(&queue[string]{make(chan string)})
		}
		for range 2 {
			go deep(20, make(chan int))
		}
	}
	jobs := &pool{make(chan int)}
	for range 4 {
		go jobs.work(done)
	}
	// Go prints 100 frames of a goroutine.
	go deep(150, alive)
	pprof.Do(context.Background(), pprof.Labels("tenant", "a \"quoted\" name"), func(context.Context) {
		go func() {
			runtime.LockOSThread()
			wait(alive)
		}()
	})
	var lock sync.Mutex
	lock.Lock()
	go func() { lock.Lock() }()
	read, write, err := os.Pipe()
	check(err)
	go func() { read.Read(make([]byte, 1)) }()
	time.Sleep(100 * time.Millisecond)

	for _, kind := range []string{"goroutine", "goroutineleak"} {
		for debug, ending := range []string{"pb.gz", "debug1.txt", "debug2.txt"} {
			file, err := os.Create(filepath.Join(folder, fmt.Sprintf("%s.%s.%s", side, kind, ending)))
			check(err)
			check(pprof.Lookup(kind).WriteTo(file, debug))
			check(file.Close())
		}
	}
	check(syscall.Kill(os.Getpid(), syscall.SIGQUIT))
	time.Sleep(time.Hour)
	lock.Unlock()
	fmt.Println(alive, done, write)
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
