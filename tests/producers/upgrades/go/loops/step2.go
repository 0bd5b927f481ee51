//go:build step2

// Step 2: the numbers are in a slice.
package main

const rounds = 2500

// DFS numbers the blocks that can be reached in the order in which the search meets them; last holds the last number
// below each.
func DFS(b *Block, nodes []Node, number []int, last []int, next int) int {
	mine := next
	nodes[mine].reset(b, mine)
	number[b.Index] = mine
	next++
	for _, to := range b.Out {
		if number[to.Index] == unvisited {
			next = DFS(to, nodes, number, last, next)
		}
	}
	last[mine] = next - 1
	return next
}

// FindLoops returns the loops of a graph, those within others first.
func FindLoops(g *Graph) []*Loop {
	n := len(g.Blocks)
	nodes, last := make([]Node, n), make([]int, n)
	number := make([]int, n)
	preds := make([][]int, n) // over back edges
	others := make([]map[int]bool, n)
	for i := range others {
		others[i] = map[int]bool{}
	}
	for _, b := range g.Blocks {
		number[b.Index] = unvisited
	}
	reached := DFS(g.Blocks[0], nodes, number, last, 0)
	for w := range reached {
		for _, from := range nodes[w].Block.In {
			v := number[from.Index]
			switch {
			case v == unvisited:
			case isAncestor(w, v, last):
				preds[w] = append(preds[w], v)
			default:
				others[w][v] = true
			}
		}
	}
	var loops []*Loop
	for w := reached - 1; w >= 0; w-- {
		var pool []*Node
		itself := false
		for _, v := range preds[w] {
			if v == w {
				itself = true
			} else if x := nodes[v].Find(); !contains(pool, x) {
				pool = append(pool, x)
			}
		}
		reducible := true
		work := append([]*Node{}, pool...)
		for i := 0; i < len(work); i++ {
			x := work[i]
			for v := range others[x.Number] {
				y := nodes[v].Find()
				if !isAncestor(w, y.Number, last) {
					reducible = false
					others[w][y.Number] = true
				} else if y.Number != w && !contains(pool, y) {
					pool, work = append(pool, y), append(work, y)
				}
			}
		}
		if len(pool) == 0 && !itself {
			continue
		}
		loop := &Loop{Header: nodes[w].Block, Reducible: reducible}
		for _, x := range pool {
			x.parent = &nodes[w]
			if x.loop != nil {
				x.loop.Parent = loop
			} else {
				loop.Body = append(loop.Body, x.Block)
			}
		}
		nodes[w].loop = loop
		loops = append(loops, loop)
	}
	return loops
}
