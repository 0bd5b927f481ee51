// Package routes finds the pattern that a path follows, in a tree of segments.
package routes

import "strings"

// Tree holds the patterns; a segment "*" stands for any text.
type Tree struct{ root *node }

type node struct {
	segment  string
	pattern  string
	children []*node
}

func NewTree(patterns []string) *Tree {
	tree := &Tree{root: &node{}}
	for _, pattern := range patterns {
		insert(tree.root, pattern, pattern)
	}
	return tree
}

func insert(at *node, rest, pattern string) {
	segment, rest := split(rest)
	if segment == "" {
		at.pattern = pattern
		return
	}
	for _, child := range at.children {
		if child.segment == segment {
			insert(child, rest, pattern)
			return
		}
	}
	child := &node{segment: segment}
	at.children = append(at.children, child)
	insert(child, rest, pattern)
}

// Match returns the pattern of a path, or "" if there is none.
func (t *Tree) Match(path string) string { return match(t.root, path) }

// match tries every child that fits and goes on below it.
func match(at *node, rest string) string {
	segment, rest := split(rest)
	if segment == "" {
		return at.pattern
	}
	for _, child := range at.children {
		if child.segment != "*" && child.segment != segment {
			continue
		}
		if pattern := match(child, rest); pattern != "" {
			return pattern
		}
	}
	return ""
}

// split takes the first segment off a path.
func split(path string) (string, string) {
	path = strings.TrimPrefix(path, "/")
	if end := strings.IndexByte(path, '/'); end >= 0 {
		return path[:end], path[end:]
	}
	return path, ""
}
