// Package accesslog takes the log apart, line by line and header by header.
package accesslog

import (
	"bytes"
	"strings"
)

// Header is one header that a client sent.
type Header struct{ Name, Value string }

// Record is one line of the log.
type Record struct {
	Method, Path   string
	Status, Micros int
	Headers        []Header
}

// Reader walks over a log in memory.
type Reader struct {
	rest   []byte
	record Record
}

func NewReader(log []byte) *Reader { return &Reader{rest: log} }

// Next reads one line and reports whether there was one.
func (r *Reader) Next() bool {
	line, rest, found := bytes.Cut(r.rest, []byte{'\n'})
	if !found {
		return false
	}
	r.rest = rest
	parseLine(string(line), &r.record)
	return true
}

// Record returns the line read last; the next one overwrites it.
func (r *Reader) Record() *Record { return &r.record }

func parseLine(line string, into *Record) {
	into.Method, line = field(line)
	into.Path, line = field(line)
	status, line := field(line)
	micros, line := field(line)
	into.Status, into.Micros = number(status), number(micros)
	into.Headers = parseHeaders(line, into.Headers[:0])
}

// field splits the line at its first space.
func field(line string) (string, string) {
	before, after, _ := strings.Cut(line, " ")
	return before, after
}

func number(digits string) int {
	n := 0
	for _, digit := range []byte(digits) {
		n = n*10 + int(digit-'0')
	}
	return n
}

func parseHeaders(list string, into []Header) []Header {
	for len(list) > 0 {
		var pair string
		pair, list, _ = strings.Cut(list, ";")
		name, value, _ := strings.Cut(pair, "=")
		into = append(into, Header{cleanName(name), value})
	}
	return into
}

// cleanName removes the spaces that some clients leave around a name, and
// writes its underscores as hyphens.
func cleanName(name string) string {
	clean := []byte(strings.TrimSpace(name))
	for i, letter := range clean {
		if letter == '_' {
			clean[i] = '-'
		}
	}
	return string(clean)
}
