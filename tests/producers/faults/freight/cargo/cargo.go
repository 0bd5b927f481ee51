// Package cargo packs wagons.
package cargo

import "freight/orders"

const capacity = 9000 // of a wagon, in kg

// Wagon is what one wagon carries.
type Wagon struct {
	Pieces []Piece
	Free   int
}

// Piece is one piece of an item.
type Piece struct {
	Name   string
	Weight int
}

// Pack puts pieces into wagons, the heaviest first, each where it leaves the least room.
func Pack(items []orders.Item) []Wagon {
	pieces := unpack(items)
	sort(pieces)
	var wagons []Wagon
	for _, piece := range pieces {
		at := tightest(wagons, piece)
		if at < 0 {
			wagons = append(wagons, Wagon{Free: capacity})
			at = len(wagons) - 1
		}
		wagons[at].Pieces = append(wagons[at].Pieces, piece)
		wagons[at].Free -= piece.Weight
	}
	return wagons
}

func unpack(items []orders.Item) []Piece {
	var pieces []Piece
	for _, item := range items {
		for range item.Pieces {
			pieces = append(pieces, Piece{item.Name, item.Weight})
		}
	}
	return pieces
}

// sort is by insertion; pieces of one item stay together.
func sort(pieces []Piece) {
	for i := range pieces {
		for at := i; at > 0 && before(pieces[at], pieces[at-1]); at-- {
			pieces[at], pieces[at-1] = pieces[at-1], pieces[at]
		}
	}
}

func before(a, b Piece) bool {
	if a.Weight != b.Weight {
		return a.Weight > b.Weight
	}
	return a.Name < b.Name
}

func tightest(wagons []Wagon, piece Piece) int {
	best := -1
	for i := range wagons {
		if wagons[i].Free >= piece.Weight && (best < 0 || wagons[i].Free < wagons[best].Free) {
			best = i
		}
	}
	return best
}
