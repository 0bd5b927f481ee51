// A small tool: it parses numbers, hashes, sorts, multiplies matrices and counts words. pairs.py edits one function at a
// time. Each function prints its result, so that an edit of its data is visible too.
package main

import (
	"fmt"
	"os"
	"sort"
	"strings"
)

var limits = [4]int{100, 250, 500, 900}

type shape interface{ area() float64 }

type square struct{ side float64 }

type circle struct{ radius float64 }

//go:noinline
func (s square) area() float64 { return s.side * s.side }

//go:noinline
func (c circle) area() float64 { return 3.14159 * c.radius * c.radius }

func rotate(x uint64, by int) uint64 { return x<<by | x>>(64-by) }

func weigh(x int) int { return x*3 + x>>4 }

//go:noinline
func left(x int) int { return x*5 + 1 }

//go:noinline
func right(x int) int { return x*7 + 2 }

//go:noinline
func difference(x, y int) int { return 4*x - y }

// parse adds the decimal numbers of a text.
//
//go:noinline
func parse(text string) int {
	sum, value, sign := 0, 0, 1
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c >= '0' && c <= '9':
			value = value*10 + int(c-'0')
		case c == '-':
			sign = -1
		default:
			sum += sign * value
			value, sign = 0, 1
		}
	}
	return sum + sign*value
}

//go:noinline
func hash(data string) uint64 {
	h := uint64(0xcbf29ce484222325)
	for i := 0; i < len(data); i++ {
		h ^= uint64(data[i])
		h *= 0x100000001b3
		h = rotate(h, 23)
	}
	return h
}

//go:noinline
func insertion(values []int) {
	for i := 1; i < len(values); i++ {
		value, j := values[i], i
		for j > 0 && values[j-1] > value {
			values[j] = values[j-1]
			j--
		}
		values[j] = value
	}
}

//go:noinline
func multiply(a, b, c []float64, n int) float64 {
	trace := 0.0
	for i := 0; i < n; i++ {
		for j := 0; j < n; j++ {
			sum := 0.1
			for k := 0; k < n; k++ {
				sum += a[i*n+k] * b[k*n+j]
			}
			c[i*n+j] = sum
		}
		trace += c[i*n+i] * 1.7
	}
	return trace
}

// words counts words of at least three letters.
//
//go:noinline
func words(text string) (count int) {
	length := 0
	for i := 0; i < len(text); i++ {
		if c := text[i] | 32; c >= 'a' && c <= 'z' {
			length++
			continue
		}
		if length >= 3 {
			count++
		}
		length = 0
	}
	return count
}

//go:noinline
func find(values []int, wanted int) int {
	low, high := 0, len(values)
	for low < high {
		middle := int(uint(low+high) >> 1)
		if values[middle] < wanted {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low
}

//go:noinline
func day(k int) string {
	switch k % 9 {
	case 0:
		return "monday"
	case 1:
		return "tuesday"
	case 2:
		return "wednesday"
	case 3:
		return "thursday"
	case 4:
		return "friday"
	case 5:
		return "saturday"
	case 6:
		return "sunday"
	case 7:
		return "holiday"
	}
	return "never"
}

//go:noinline
func limit(k, x int) int { return min(x, limits[k&3]) }

//go:noinline
func weight(k int) int {
	return [...]int{3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3}[k&15]
}

//go:noinline
func fold(values []int) int {
	x := 1
	for _, v := range values {
		x = left(x) ^ v
	}
	return x
}

//go:noinline
func compare(values []int) (x int) {
	for i := 1; i < len(values); i++ {
		x += difference(values[i], values[i-1])
	}
	return x
}

//go:noinline
func score(values []int) (x int) {
	for _, v := range values {
		x += weigh(v)
	}
	return x
}

//go:noinline
func shapes(values []int) []shape {
	var all []shape
	for i, v := range values {
		if i%2 == 0 {
			all = append(all, square{float64(v)})
		} else {
			all = append(all, circle{float64(v)})
		}
	}
	sort.Slice(all, func(i, j int) bool { return all[i].area() > all[j].area() })
	return all
}

//go:noinline
func count(text string) map[string]int {
	counts := map[string]int{}
	for _, word := range strings.Fields(text) {
		counts[strings.ToLower(word)] += 2
	}
	return counts
}

//go:noinline
func report(name string, value any) {
	fmt.Fprintf(os.Stdout, "%s: %v\n", name, value)
}

func main() {
	text := "12 apples, 7 pears and -30 plums for 1999 guests on 24 tables"
	values := make([]int, 64)
	a, b, c := make([]float64, 64), make([]float64, 64), make([]float64, 64)
	for i := range values {
		values[i] = i * 37 % 101
		a[i], b[i] = float64(i%7), float64(i%5)
	}
	report("parse", parse(text))
	report("hash", hash(text))
	report("fold", fold(values))
	report("compare", compare(values))
	report("score", score(values))
	report("shapes", shapes(values)[:9])
	insertion(values)
	report("insertion", values[3]*1000+values[40])
	report("find", find(values, 52)*100+find(values, 7))
	report("multiply", multiply(a, b, c, 8))
	report("words", words(text))
	report("count", count(text))
	report("limit", limit(2, 1000)+limit(3, 1000))
	for k := range 16 {
		report("weight", weight(k))
	}
	for k := range 9 {
		report("day", day(k))
	}
}
