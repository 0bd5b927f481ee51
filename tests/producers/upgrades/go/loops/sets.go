// Sets of blocks that were collapsed, as a forest with paths that get shorter (union and find).
package main

const unvisited = -1

// Node is a block in the order of the search, and the set that it is in.
type Node struct {
	Block  *Block
	Number int
	parent *Node
	loop   *Loop
}

func (n *Node) reset(b *Block, number int) {
	*n = Node{Block: b, Number: number}
	n.parent = n
}

// Find returns the node that represents the set.
func (n *Node) Find() *Node {
	root := n
	for root.parent != root {
		root = root.parent
	}
	for n != root {
		n, n.parent = n.parent, root
	}
	return root
}

// isAncestor returns true if w is v or above it in the tree of the search.
func isAncestor(w, v int, last []int) bool {
	return w <= v && v <= last[w]
}

func contains(pool []*Node, n *Node) bool {
	for _, p := range pool {
		if p == n {
			return true
		}
	}
	return false
}
