// Weather collects what weather stations send: six receivers decode packets, keep the series of every station, raise
// alarms, show the latest values on a board and write blocks to an archive. Receivers share the series, the board and
// the archive. It is profiled as it is here and with each of the faults beside it.
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
	"sync"
	"time"

	"weather/alarm"
	"weather/archive"
	"weather/board"
	"weather/packet"
	"weather/series"
)

const receivers = 6

// collector is what receivers share.
type collector struct {
	rules   *alarm.Rules
	series  *series.Store
	board   *board.Board
	archive *archive.Archive
}

func main() {
	rounds := flag.Int("rounds", 80, "packets that every station sends")
	heap := flag.String("heap", "", "write a heap profile to this `file`")
	mutex := flag.String("mutex", "", "write a mutex profile to this `file`")
	flag.Parse()

	runtime.MemProfileRate = 8 << 10
	runtime.SetMutexProfileFraction(1)
	shared := &collector{alarm.NewRules(), series.NewStore(), board.New(), archive.New()}
	var group sync.WaitGroup
	for number := range receivers {
		group.Go(func() { shared.receive(number, *rounds) })
	}
	group.Wait()

	runtime.GC()
	write(*heap, "heap")
	write(*mutex, "mutex")
	fmt.Println(shared.archive.Blocks(), "blocks,", shared.rules.Raised(), "alarms")
}

// receive takes the packets of the stations of one receiver, as they come.
func (c *collector) receive(receiver, rounds int) {
	for round := range rounds {
		for station := range 4 {
			time.Sleep(time.Duration(5+(receiver*station+round)%7) * time.Millisecond)
			raw := packet.Made(receiver*4+station, round)
			if err := c.handle(raw); err != nil {
				fmt.Fprintln(os.Stderr, "weather:", err)
			}
		}
	}
}

// handle processes a packet.
func (c *collector) handle(raw []byte) error {
	p, err := packet.Decode(raw)
	if err != nil {
		return err
	}
	trend := c.series.Add(p)
	for _, text := range c.rules.Check(p, trend) {
		c.archive.Note(p.Station, text)
	}
	c.board.Post(p, trend)
	if p.Number%3 == 1 {
		c.archive.Write(p)
	}
	return nil
}

func write(name, profile string) {
	file, err := os.Create(name)
	if err == nil {
		err = pprof.Lookup(profile).WriteTo(file, 0)
	}
	if err == nil {
		err = file.Close()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "weather:", err)
		os.Exit(1)
	}
}
