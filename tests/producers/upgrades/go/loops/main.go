// Loops finds the loops of a control-flow graph, as Havlak's refinement of Tarjan's algorithm does: a depth-first search
// numbers the blocks, then from the last block to the first, what reaches a block over a back edge is collapsed into it.
// It is built in four steps, each with the tag of its number, that differ in DFS and FindLoops alone:
//
//	step1  the number of a block is looked up in a map, and predecessors are kept in maps
//	step2  the number of a block is in a slice, by the block's index
//	step3  predecessors that are no back edges are kept in slices, without doubles
//	step4  what FindLoops needs is kept from one call to the next
package main

import (
	"fmt"

	"upgrades/prof"
)

// Block is a piece of straight code.
type Block struct {
	Index   int
	In, Out []*Block
}

// Graph is the blocks of a function; the first is where it starts.
type Graph struct {
	Blocks []*Block
}

// Loop is what was found: its header, and the loop around it.
type Loop struct {
	Header    *Block
	Body      []*Block
	Parent    *Loop
	Reducible bool
}

func main() {
	g := BuildGraph(120)
	found := 0
	prof.Run(rounds, func(int) {
		loops := FindLoops(g)
		for _, l := range loops {
			found += Depth(l)
		}
	})
	fmt.Println(found, "levels of loops")
}

// Depth returns the number of loops that contain a loop, including itself.
func Depth(l *Loop) int {
	depth := 0
	for ; l != nil; l = l.Parent {
		depth++
	}
	return depth
}

// BuildGraph builds a switch whose cases are nested loops, inside an outer loop.
func BuildGraph(cases int) *Graph {
	g := &Graph{}
	start, end := g.block(), g.block()
	for i := range cases {
		first := g.block()
		connect(start, first)
		connect(g.nest(first, 3+i%4), end)
	}
	connect(end, start)
	return g
}

// nest adds nested loops after a block, with a branch in each, and returns their last block.
func (g *Graph) nest(at *Block, depth int) *Block {
	header, left, right, latch := g.block(), g.block(), g.block(), g.block()
	connect(at, header)
	connect(header, left)
	connect(header, right)
	connect(right, latch)
	inner := left
	if depth > 1 {
		inner = g.nest(left, depth-1)
	}
	again := g.block()
	connect(inner, again)
	connect(again, again)
	connect(again, latch)
	connect(latch, header)
	exit := g.block()
	connect(latch, exit)
	if depth%3 == 0 {
		connect(right, again)
		connect(left, exit)
	}
	return exit
}

func (g *Graph) block() *Block {
	b := &Block{Index: len(g.Blocks)}
	g.Blocks = append(g.Blocks, b)
	return b
}

func connect(from, to *Block) {
	from.Out = append(from.Out, to)
	to.In = append(to.In, from)
}
