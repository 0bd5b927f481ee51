// Freight plans the rail freight of a few days: it reads the orders of four depots, finds their way through the
// network, packs wagons, prices them and writes waybills. It is profiled as it is here and with each of the faults
// beside it; all do the same fixed amount of work, whose result is printed.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/pprof"

	"freight/cargo"
	"freight/network"
	"freight/orders"
	"freight/papers"
	"freight/tariff"
)

func main() {
	days := flag.Int("days", 550, "days to plan")
	cpu := flag.String("cpu", "", "write a CPU profile to this `file`")
	heap := flag.String("heap", "", "write a heap profile to this `file`")
	flag.Parse()

	runtime.MemProfileRate = 128 << 10
	debug.SetGCPercent(1000)
	rails := network.Build(18, 13)
	books := map[string][]string{}
	for _, depot := range orders.Depots {
		books[depot.Name] = orders.Write(depot, rails.Towns())
	}
	profile := create(*cpu)
	check(pprof.StartCPUProfile(profile))
	total := 0
	for range *days {
		for _, depot := range orders.Depots {
			total += serve(rails, depot.Name, books[depot.Name])
		}
	}
	pprof.StopCPUProfile()
	check(profile.Close())

	snapshot := create(*heap)
	runtime.GC()
	check(pprof.Lookup("heap").WriteTo(snapshot, 0))
	check(snapshot.Close())
	fmt.Println(total)
}

// serve plans what a depot ordered on one day.
func serve(rails *network.Network, depot string, book []string) (total int) {
	pprof.Do(context.Background(), pprof.Labels("depot", depot), func(context.Context) {
		for _, text := range book {
			total += plan(rails, text)
		}
	})
	return total
}

// plan does what one order needs.
func plan(rails *network.Network, text string) int {
	order, err := orders.Parse(text)
	check(err)
	route := rails.Find(order.From, order.To)
	wagons := cargo.Pack(order.Items)
	quote := tariff.Make(order, route, wagons)
	bill := papers.Waybill(order, route, wagons, quote)
	return len(bill) + quote.Total
}

func create(name string) *os.File {
	file, err := os.Create(name)
	check(err)
	return file
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "freight:", err)
		os.Exit(1)
	}
}
