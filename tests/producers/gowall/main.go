// Gowall fetches and renders pages. fgprof records where its goroutines are,
// whether they work or wait, so that most of the time is not CPU time. Usage:
// gowall base|new OUT. In new, pages are fetched one after another instead of
// four at a time, and the rendering got cheaper.
package main

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/felixge/fgprof"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: gowall base|new OUT")
		os.Exit(2)
	}
	out, err := os.Create(os.Args[2])
	check(err)
	stop := fgprof.Start(out, fgprof.FormatPprof)
	size := 0
	for batch := range 30 {
		if os.Args[1] == "base" {
			size += renderAll(fetchTogether(batch), 40_000)
		} else {
			size += renderAll(fetchInTurn(batch), 15_000)
		}
	}
	check(stop())
	check(out.Close())
	fmt.Println(size, "bytes rendered")
}

const pages = 4

func fetchTogether(batch int) []string {
	fetched := make([]string, pages)
	var all sync.WaitGroup
	for page := range pages {
		all.Go(func() { fetched[page] = fetch(batch, page) })
	}
	all.Wait()
	return fetched
}

func fetchInTurn(batch int) []string {
	fetched := make([]string, pages)
	for page := range pages {
		fetched[page] = fetch(batch, page)
	}
	return fetched
}

// fetch stands for a request.
func fetch(batch, page int) string {
	connect()
	time.Sleep(time.Duration(8+page*3) * time.Millisecond)
	return fmt.Sprintf("batch %d, page %d", batch, page)
}

func connect() { time.Sleep(3 * time.Millisecond) }

func renderAll(fetched []string, rounds int) int {
	size := 0
	for _, text := range fetched {
		size += len(render(text, 12, rounds))
	}
	return size
}

// render nests a text in boxes; recursive.
func render(text string, depth, rounds int) string {
	if depth == 0 {
		return strings.ToUpper(strings.Repeat(text, rounds))
	}
	return "[" + render(text, depth-1, rounds) + "]"
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
