// Package orders reads what depots order.
package orders

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Depot orders a number of transports a day.
type Depot struct {
	Name   string
	Orders int
}

// Depots are all that order.
var Depots = []Depot{{"harbour", 26}, {"mill", 30}, {"quarry", 22}, {"market", 28}}

// Item is a number of pieces of the same kind.
type Item struct {
	Name   string
	Pieces int
	Weight int // of a piece, in kg
}

// Order is one transport.
type Order struct {
	Customer string
	From, To int
	Items    []Item
}

var errForm = errors.New("an order is customer;from;to;item*pieces*weight|...")

// Write makes the order book of a day up; it has columns, as forms have.
func Write(depot Depot, towns int) []string {
	names := []string{"barley", "bricks", "copper wire", "firewood", "flour", "glass", "hinges", "lime", "paper", "salt"}
	random := uint32(len(depot.Name) * 7919)
	roll := func(sides int) int {
		random = random*1664525 + 1013904223
		return int(random>>8) % sides
	}
	var book []string
	for number := range depot.Orders {
		var text strings.Builder
		text.WriteString(depot.Name + " customer number " + strconv.Itoa(number))
		from := roll(towns)
		text.WriteString(";" + strconv.Itoa(from) + ";" + strconv.Itoa((from+towns/3+roll(towns/3))%towns) + ";")
		for i := range 9 + roll(8) {
			if i > 0 {
				text.WriteByte('|')
			}
			name := names[roll(len(names))]
			fmt.Fprintf(&text, "%-70s* %69d* %69d", name, 1+roll(8), 100+roll(900))
		}
		book = append(book, text.String())
	}
	return book
}

// Parse reads an order.
func Parse(text string) (Order, error) {
	var order Order
	head := strings.SplitN(text, ";", 4)
	if len(head) != 4 {
		return order, errForm
	}
	order.Customer = title(head[0])
	order.From, order.To = number(head[1]), number(head[2])
	for _, part := range strings.Split(head[3], "|") {
		// The words of a part, with the spaces around them cut off and those within them made one.
		var words [3]string
		word, n := make([]byte, 0, 64), 0
		for i := 0; i <= len(part); i++ {
			if i < len(part) && part[i] != '*' {
				if part[i] != ' ' || len(word) > 0 && word[len(word)-1] != ' ' {
					word = append(word, part[i])
				}
				continue
			}
			for len(word) > 0 && word[len(word)-1] == ' ' {
				word = word[:len(word)-1]
			}
			if n == len(words) {
				return order, errForm
			}
			words[n], word = string(word), word[:0]
			n++
		}
		order.Items = append(order.Items, Item{words[0], number(words[1]), number(words[2])})
	}
	return order, nil
}

// title writes a customer with capitals.
func title(name string) string {
	letters := []byte(name)
	for i, letter := range letters {
		if (i == 0 || letters[i-1] == ' ') && letter >= 'a' && letter <= 'z' {
			letters[i] -= 'a' - 'A'
		}
	}
	return string(letters)
}

func number(digits string) (n int) {
	for i := range len(digits) {
		n = 10*n + int(digits[i]-'0')
	}
	return n
}
