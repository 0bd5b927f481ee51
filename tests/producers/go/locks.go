// Waiting for locks and channels, in two versions of one store. On base all
// workers share a single lock; on new every shard has its own, so that wait
// shrinks, but a journal was added that all writers wait for.
package main

import (
	"hash/maphash"
	"runtime"
	"sync"
	"time"
)

type store interface {
	put(key string, value int)
	get(key string) int
}

func locks(dir, side string, s store) {
	runtime.SetMutexProfileFraction(1)
	runtime.SetBlockProfileRate(1)

	results := make(chan int)
	var workers sync.WaitGroup
	for number := range 8 {
		workers.Go(func() { work(s, number, results) })
	}
	go func() {
		workers.Wait()
		close(results)
	}()
	drain(results)

	write(dir, "go-mutex."+side+".pb.gz", "mutex", 0)
	write(dir, "go-block."+side+".pb.gz", "block", 0)
	if side == "base" {
		write(dir, "legacy/go-mutex.debug1.txt", "mutex", 1)
	}
}

func work(s store, number int, results chan<- int) {
	keys := []string{"north", "east", "south", "west", "up", "down"}
	for round := range 60 {
		key := keys[(number+round)%len(keys)]
		if round%3 == 0 {
			s.put(key, round)
		}
		results <- s.get(key)
	}
}

func drain(results <-chan int) int {
	sum := 0
	for result := range results {
		sum += result
		if sum%16 == 0 {
			pause(50 * time.Microsecond)
		}
	}
	return sum
}

type singleStore struct {
	lock   sync.Mutex
	values map[string]int
}

func newSingleStore() *singleStore { return &singleStore{values: map[string]int{}} }

func (s *singleStore) put(key string, value int) {
	s.lock.Lock()
	defer s.lock.Unlock()
	pause(300 * time.Microsecond)
	s.values[key] = value
}

func (s *singleStore) get(key string) int {
	s.lock.Lock()
	defer s.lock.Unlock()
	pause(100 * time.Microsecond)
	return s.values[key]
}

type shardedStore struct {
	seed    maphash.Seed
	shards  [4]singleStore
	journal journal
}

func newShardedStore() *shardedStore {
	s := &shardedStore{seed: maphash.MakeSeed()}
	for i := range s.shards {
		s.shards[i].values = map[string]int{}
	}
	return s
}

func (s *shardedStore) shard(key string) *singleStore {
	return &s.shards[maphash.String(s.seed, key)%uint64(len(s.shards))]
}

func (s *shardedStore) put(key string, value int) {
	s.journal.append(key)
	s.shard(key).put(key, value)
}

func (s *shardedStore) get(key string) int { return s.shard(key).get(key) }

type journal struct {
	lock    sync.RWMutex
	entries []string
}

func (j *journal) append(key string) {
	j.lock.Lock()
	defer j.lock.Unlock()
	pause(200 * time.Microsecond)
	j.entries = append(j.entries, key)
}

// pause stands for work under the lock.
func pause(long time.Duration) { time.Sleep(long) }
