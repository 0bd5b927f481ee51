// Package report renders the routes as an indented tree of their segments.
package report

import (
	"bytes"
	"io"
	"strconv"
	"strings"

	"logmill/stats"
)

type branch struct {
	segment  string
	line     *stats.Line
	hits     int
	children []*branch
}

// Render writes a snapshot as text.
func Render(to io.Writer, snapshot *stats.Snapshot) {
	root := &branch{segment: "/"}
	for i := range snapshot.Routes {
		line := &snapshot.Routes[i]
		grow(root, strings.Split(line.Pattern[1:], "/"), line)
	}
	var page bytes.Buffer
	renderBranch(&page, root, 0)
	to.Write(page.Bytes())
}

// grow hangs a line into the tree and adds its hits up on the way.
func grow(at *branch, segments []string, line *stats.Line) {
	at.hits += line.Hits
	if len(segments) == 0 {
		at.line = line
		return
	}
	last := len(at.children) - 1
	if last < 0 || at.children[last].segment != segments[0] {
		at.children = append(at.children, &branch{segment: segments[0]})
		last++
	}
	grow(at.children[last], segments[1:], line)
}

// renderBranch writes a branch and, further in, everything below it.
func renderBranch(page *bytes.Buffer, at *branch, depth int) {
	writeRow(page, at, depth)
	for _, child := range at.children {
		renderBranch(page, child, depth+1)
	}
}

func writeRow(page *bytes.Buffer, at *branch, depth int) {
	start := page.Len()
	for range depth {
		page.WriteString("  ")
	}
	page.WriteString(at.segment)
	pad(page, start+32)
	writeNumber(page, at.hits, 10)
	if at.line != nil {
		writeNumber(page, at.line.Failures, 8)
		writeNumber(page, at.line.Median, 10)
		writeNumber(page, at.line.Slowest, 10)
		writeNumber(page, at.line.BelowMillisecond, 8)
	}
	page.WriteByte('\n')
}

// pad fills the page with spaces up to a column.
func pad(page *bytes.Buffer, column int) {
	for page.Len() < column {
		page.WriteByte(' ')
	}
}

// writeNumber writes a number, aligned to the right.
func writeNumber(page *bytes.Buffer, number, width int) {
	digits := strconv.Itoa(number)
	pad(page, page.Len()+width-len(digits))
	page.WriteString(digits)
}
