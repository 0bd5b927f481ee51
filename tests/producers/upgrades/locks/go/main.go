// A harbour's office: clerks book what ships owe in a ledger, pilots read and write a board, and couriers fill and empty
// a bag, each behind a lock of its own. Profiled by Go's mutex and block profilers, every contention. What is changed on side b of a pair:
//
//	held   the ledger is held for 10 ms instead of 1 ms
//	often  a clerk books four times a ship instead of once
//	two    the ledger has two halves, with a lock each
//
// Usage: locks a|held|often|two MUTEX.gz BLOCK.gz
package main

import (
	"fmt"
	"log"
	"os"
	"runtime"
	"runtime/pprof"
	"sync"
	"time"
)

const (
	clerks, ships = 6, 40
	pilots, tides = 4, 60
	couriers, ways = 3, 80
)

// Ledger holds the debts of ships.
type Ledger struct {
	halves []half
	held   time.Duration
}

type half struct {
	sync.Mutex
	owed map[int]int
}

// Book adds to the debt of a ship.
func (l *Ledger) Book(ship, amount int) {
	h := &l.halves[ship%len(l.halves)]
	h.Lock()
	defer h.Unlock()
	h.owed[ship] += amount
	time.Sleep(l.held)
}

// Sum returns the debt of all ships.
func (l *Ledger) Sum() int {
	sum := 0
	for i := range l.halves {
		h := &l.halves[i]
		h.Lock()
		for _, amount := range h.owed {
			sum += amount
		}
		h.Unlock()
	}
	return sum
}

// Board holds the positions of pilots.
type Board struct {
	sync.Mutex
	at map[int]int
}

// Post stores the position of a pilot.
func (b *Board) Post(pilot, ship int) {
	b.Lock()
	defer b.Unlock()
	b.at[pilot] = ship
	time.Sleep(500 * time.Microsecond)
}

// Look returns the position of a pilot.
func (b *Board) Look(pilot int) int {
	b.Lock()
	defer b.Unlock()
	time.Sleep(300 * time.Microsecond)
	return b.at[pilot]
}

// Bag is the mail.
type Bag struct {
	sync.Mutex
	letters []int
}

// Put adds a letter.
func (b *Bag) Put(letter int) {
	b.Lock()
	defer b.Unlock()
	b.letters = append(b.letters, letter)
	time.Sleep(200 * time.Microsecond)
}

// Take removes a letter.
func (b *Bag) Take() (letter int) {
	b.Lock()
	defer b.Unlock()
	time.Sleep(400 * time.Microsecond)
	if last := len(b.letters) - 1; last >= 0 {
		letter, b.letters = b.letters[last], b.letters[:last]
	}
	return letter
}

func main() {
	if len(os.Args) != 4 {
		log.Fatal("usage: locks a|held|often|two MUTEX.gz BLOCK.gz")
	}
	ledger, times := &Ledger{halves: make([]half, 1), held: time.Millisecond}, 1
	switch os.Args[1] {
	case "held":
		ledger.held *= 10
	case "often":
		times = 4
	case "two":
		ledger.halves = make([]half, 2)
	}
	for i := range ledger.halves {
		ledger.halves[i].owed = map[int]int{}
	}
	board, bag := &Board{at: map[int]int{}}, &Bag{}

	runtime.SetMutexProfileFraction(1)
	runtime.SetBlockProfileRate(1)
	var all sync.WaitGroup
	for clerk := range clerks {
		all.Go(func() { settle(ledger, clerk, times) })
	}
	for pilot := range pilots {
		all.Go(func() { guide(board, pilot) })
	}
	for courier := range couriers {
		all.Go(func() { carry(bag, courier) })
	}
	all.Wait()
	save("mutex", os.Args[2])
	save("block", os.Args[3])
	fmt.Println(ledger.Sum(), "owed")
}

// settle books what the ships of a clerk owe: fees and, where they are booked in parts, the parts.
func settle(ledger *Ledger, clerk, times int) {
	for ship := range ships {
		for part := range times {
			ledger.Book(ship*clerks+(clerk+part)%clerks, 100)
		}
		if ship%10 == 9 {
			ledger.Sum()
		}
	}
}

func guide(board *Board, pilot int) {
	for tide := range tides {
		board.Post(pilot, tide)
		board.Look((pilot + 1) % pilots)
	}
}

func carry(bag *Bag, courier int) {
	for way := range ways {
		bag.Put(courier + way)
		bag.Take()
	}
}

func save(name, file string) {
	f, err := os.Create(file)
	if err == nil {
		err = pprof.Lookup(name).WriteTo(f, 0)
	}
	if err != nil {
		log.Fatal(err)
	}
}
