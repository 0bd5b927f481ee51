// Two snapshots of one process. Between them the import is over and its
// buffers are gone (shrinks), the cache of sessions has grown (grows), and a
// search index was built (new).
package main

import (
	"fmt"
	"runtime"
	"strings"
)

type session struct {
	user    string
	history [][]byte
}

type indexNode struct {
	left, right *indexNode
	word        string
	postings    []int32
}

var (
	imports  [][]byte
	sessions = map[string]*session{}
	index    *indexNode
)

func heap(dir string) {
	runtime.MemProfileRate = 2048

	for chunk := range 400 {
		imports = append(imports, readChunk(chunk))
	}
	growSessions(0, 400)
	snapshot(dir, "base")

	imports = nil
	growSessions(400, 3000)
	for document := range 500 {
		indexDocument(int32(document))
	}
	for range 600 {
		renderPage()
	}
	snapshot(dir, "new")
}

// snapshot collects garbage first: the in-use values are those of the last
// complete collection.
func snapshot(dir, side string) {
	runtime.GC()
	runtime.GC()
	write(dir, "go-heap."+side+".pb.gz", "heap", 0)
	if side == "base" {
		write(dir, "legacy/go-heap.debug1.txt", "heap", 1)
	}
}

func readChunk(number int) []byte {
	size := 4096 + number%7*1024
	if number%3 == 0 {
		return unpackChunk(size)
	}
	return make([]byte, size)
}

func unpackChunk(size int) []byte {
	packed := make([]byte, size/2)
	return append(packed, make([]byte, size)...)
}

func growSessions(from, to int) {
	for number := from; number < to; number++ {
		s := newSession(fmt.Sprintf("user-%d", number))
		for page := range 3 {
			s.visit(page)
		}
		sessions[s.user] = s
	}
}

func newSession(user string) *session { return &session{user: user} }

func (s *session) visit(page int) {
	s.history = append(s.history, []byte(strings.Repeat("/", page*40+20)))
}

func indexDocument(document int32) {
	for word := range 6 {
		index = insertWord(index, fmt.Sprintf("word-%x", (int(document)*31+word*977)%2048), document)
	}
}

// insertWord puts a word into a binary tree; it is recursive.
func insertWord(at *indexNode, word string, document int32) *indexNode {
	switch {
	case at == nil:
		return &indexNode{word: word, postings: []int32{document}}
	case word < at.word:
		at.left = insertWord(at.left, word, document)
	case word > at.word:
		at.right = insertWord(at.right, word, document)
	default:
		at.postings = append(at.postings, document)
	}
	return at
}

// renderPage only makes garbage: allocated, but never in use.
func renderPage() string {
	var page strings.Builder
	for row := range 200 {
		fmt.Fprintf(&page, "<tr><td>%d</td></tr>", row)
	}
	return page.String()
}
