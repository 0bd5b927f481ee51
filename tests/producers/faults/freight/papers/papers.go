// Package papers writes waybills.
package papers

import (
	"strings"

	"freight/cargo"
	"freight/network"
	"freight/orders"
	"freight/tariff"
)

// Waybill returns the papers for a train.
func Waybill(order orders.Order, route network.Route, wagons []cargo.Wagon, quote tariff.Quote) string {
	var page strings.Builder
	page.Grow(4096)
	page.WriteString("WAYBILL for " + order.Customer + "\n")
	stations(&page, route)
	for number, wagon := range wagons {
		load(&page, number+1, wagon)
	}
	for _, position := range quote.Positions {
		row(&page, position.Text, amount(position.Amount))
	}
	row(&page, "total", amount(quote.Total))
	return page.String() + seal(page.String())
}

func stations(page *strings.Builder, route network.Route) {
	for i := len(route.Towns) - 1; i >= 0; i-- {
		page.WriteString(" > T" + decimal(route.Towns[i]))
	}
	page.WriteByte('\n')
}

func load(page *strings.Builder, number int, wagon cargo.Wagon) {
	page.WriteString("wagon " + decimal(number) + ":\n")
	for _, piece := range wagon.Pieces {
		row(page, piece.Name, decimal(piece.Weight)+" kg")
	}
}

// row writes a name, and a value aligned to the right.
func row(page *strings.Builder, name, value string) {
	line := make([]byte, 0, 48)
	for i := range len(name) {
		line = append(line, plain(name[i]))
	}
	for len(line)+len(value) < 40 {
		line = append(line, '.')
	}
	page.Write(append(append(line, value...), '\n'))
}

// plain converts a letter for printers with capitals only.
func plain(letter byte) byte {
	if letter >= 'a' && letter <= 'z' {
		return letter - 'a' + 'A'
	}
	return letter
}

func amount(cents int) string {
	text := decimal(cents%100 + 100)
	return decimal(cents/100) + "," + text[1:]
}

func decimal(n int) string {
	digits := [20]byte{}
	at := len(digits)
	for at == len(digits) || n > 0 {
		at--
		digits[at] = byte('0' + n%10)
		n /= 10
	}
	return string(digits[at:])
}

// seal returns a checksum of the page (Fletcher 1982).
func seal(page string) string {
	low, high := 1, 0
	for i := range len(page) {
		low = (low + int(page[i])) % 65521
		high = (high + low) % 65521
	}
	return decimal(high<<16 | low)
}
