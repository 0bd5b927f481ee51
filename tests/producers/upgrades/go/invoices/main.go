// Invoices turns loose records, maps as a decoder of JSON would make them, into structs and back, a fixed number of
// times. The library is mapstructure: mitchellh's without a build tag, go-viper's, as it was renamed, with the tag b.
package main

import (
	"fmt"
	"log"
	"strings"

	"upgrades/prof"
)

type invoice struct {
	Number   string
	Customer customer
	Lines    []line
	Paid     bool
}

type customer struct {
	Name    string
	Country string `mapstructure:"country_code"`
	Street  []string
}

type line struct {
	Article string `mapstructure:"article_number"`
	Pieces  int
	Price   float64
	Taxes   map[string]float64
}

func main() {
	records := loose(120)
	total := 0.0
	prof.Run(900, func(int) {
		for _, record := range records {
			i := shape(record)
			total += i.sum()
			total += float64(len(loosen(i)))
		}
	})
	fmt.Printf("%.0f in all\n", total)
}

func shape(record map[string]any) invoice {
	var i invoice
	if err := decode(record, &i); err != nil {
		log.Fatal(err)
	}
	return i
}

func loosen(i invoice) map[string]any {
	record := map[string]any{}
	if err := decode(i, &record); err != nil {
		log.Fatal(err)
	}
	return record
}

// sum is the program's own work.
func (i invoice) sum() float64 {
	sum := 0.0
	for _, l := range i.Lines {
		net := l.Price * float64(l.Pieces)
		for name, rate := range l.Taxes {
			if strings.HasPrefix(name, "vat") {
				net += net * rate
			}
		}
		sum += net
	}
	return sum
}

// loose makes up records.
func loose(count int) []map[string]any {
	records := make([]map[string]any, count)
	for i := range records {
		lines := []any{}
		for j := range 3 + i%5 {
			lines = append(lines, map[string]any{
				"article_number": fmt.Sprintf("A-%d", i*31+j), "pieces": j + 1, "price": float64(j) + 0.99,
				"taxes": map[string]any{"vat-reduced": 0.07, "packing": 0.01},
			})
		}
		records[i] = map[string]any{
			"number": fmt.Sprintf("2024/%d", i), "paid": i%2 == 0, "lines": lines, "channel": "letter", "desk": i,
			"customer": map[string]any{"name": fmt.Sprintf("Customer %d", i), "country_code": "NO", "street": []any{"Quay", "3 b"}},
		}
	}
	return records
}
