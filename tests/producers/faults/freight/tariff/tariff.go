// Package tariff prices transports.
package tariff

import (
	"freight/cargo"
	"freight/network"
	"freight/orders"
)

// Position is a line of a quote; amounts are in cents.
type Position struct {
	Text   string
	Amount int
}

// Quote is the price of a transport.
type Quote struct {
	Positions []Position
	Total     int
}

// Make prices a transport: the distance, the wagons, and their load.
func Make(order orders.Order, route network.Route, wagons []cargo.Wagon) Quote {
	quote := Quote{Positions: make([]Position, 0, 4+len(wagons))}
	quote.add("way", way(route))
	for _, wagon := range wagons {
		quote.add("wagon", haul(wagon, route))
	}
	for _, item := range order.Items {
		if extra := surcharge(item); extra > 0 {
			quote.add("surcharge for "+item.Name, extra)
		}
	}
	return quote
}

func (q *Quote) add(text string, amount int) {
	q.Positions = append(q.Positions, Position{text, amount})
	q.Total += amount
}

// way returns the price of the distance, which falls with its length.
func way(route network.Route) int {
	amount, rate := 0, 9000
	for i := range route.Towns {
		amount += rate / 100 * (20 + route.Towns[i]%5)
		rate = rate * 98 / 100
	}
	return amount
}

// haul returns the price of all pieces on all parts of the way.
func haul(wagon cargo.Wagon, route network.Route) int {
	amount := 0
	for part := range route.Towns {
		for _, piece := range wagon.Pieces {
			amount += band(piece.Weight, part)
		}
	}
	return amount
}

// band looks up a rate in the list of weights.
func band(weight, part int) int {
	limits := [...]int{20, 50, 100, 200, 300, 500, 800}
	for i, limit := range limits {
		if weight < limit {
			return (i + 3) * 17 / (1 + part/8)
		}
	}
	return 170
}

func surcharge(item orders.Item) int {
	switch item.Name {
	case "glass", "lime", "copper wire":
		return item.Pieces * item.Weight / 3
	}
	return 0
}
