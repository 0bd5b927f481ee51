// Two runs of a program that did a different number of operations: 1,000
// orders on base, 3,000 orders on new. In new, splitFields also copies the rest
// of the line after every field (copyRest). With new scaled by 1/3, that is per
// order, everything else of the program is exactly the same as before: every
// allocation is recorded, and none is so small (16 bytes) that the runtime
// would put several into one block.
package main

import (
	"runtime"
	"strconv"
	"strings"
)

var book []*order

type order struct {
	customer string
	items    []item
	total    int
}

type item struct {
	article string
	price   int
}

func heapOps(dir, side string, operations int, keepRest bool) {
	runtime.MemProfileRate = 1
	book = make([]*order, 0, operations)
	line := "anna of the mill lane,apples from the hill:30,pears from the valley:45,plums from the hedge:12"
	for range operations {
		book = append(book, takeOrder(line, keepRest))
	}
	printReceipts(book)
	runtime.GC()
	runtime.GC()
	write(dir, "go-heap-ops."+side+".pb.gz", "heap", 0)
	write(dir, "go-allocs-ops."+side+".pb.gz", "allocs", 0)
}

func takeOrder(line string, keepRest bool) *order {
	fields := splitFields(line, keepRest)
	taken := &order{customer: strings.Clone(fields[0])}
	for _, field := range fields[1:] {
		taken.items = append(taken.items, parseItem(field))
	}
	taken.total = total(taken.items)
	return taken
}

func splitFields(line string, keepRest bool) []string {
	fields := make([]string, 0, 4)
	for {
		field, rest, found := strings.Cut(line, ",")
		fields = append(fields, field)
		if !found {
			return fields
		}
		if keepRest {
			rest = copyRest(rest)
		}
		line = rest
	}
}

// copyRest is the allocation that new adds.
func copyRest(rest string) string { return string([]byte(rest)) }

func parseItem(field string) item {
	article, price, _ := strings.Cut(field, ":")
	cents, err := strconv.Atoi(price)
	check(err)
	return item{strings.ToUpper(article), cents}
}

func total(items []item) int {
	sum := 0
	for _, item := range items {
		sum += item.price
	}
	return sum
}

func printReceipts(orders []*order) {
	for _, order := range orders {
		printReceipt(order)
	}
}

func printReceipt(order *order) string {
	receipt := make([]byte, 0, 256)
	for _, item := range order.items {
		receipt = append(receipt, item.article...)
		receipt = strconv.AppendInt(receipt, int64(item.price), 10)
	}
	return string(strconv.AppendInt(receipt, int64(order.total), 10))
}
