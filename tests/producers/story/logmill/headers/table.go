// Package headers knows the headers and methods that the report counts.
package headers

import (
	"logmill/accesslog"
	"logmill/names"
)

// Class counts what a record's headers are about.
type Class struct{ Body, Routing, Client, Unknown int }

type kind int

const (
	unknown kind = iota
	body
	routing
	client
	reading
	writing
)

type entry struct {
	name string
	kind kind
}

var known = []entry{
	{"Accept", client}, {"Accept-Charset", client}, {"Accept-Encoding", client}, {"Accept-Language", client},
	{"Authorization", client}, {"Content-Encoding", body}, {"Content-Length", body}, {"Content-Type", body},
	{"Cookie", client}, {"Forwarded", routing}, {"Host", routing}, {"If-Match", client},
	{"If-None-Match", client}, {"Origin", routing}, {"Referer", client}, {"Traceparent", routing},
	{"Transfer-Encoding", body}, {"User-Agent", client}, {"Via", routing}, {"X-Forwarded-For", routing},
	{"X-Forwarded-Host", routing}, {"X-Forwarded-Proto", routing}, {"X-Real-Ip", routing}, {"X-Request-Id", routing},
}

var methods = []entry{{"GET", reading}, {"HEAD", reading}, {"POST", writing}, {"PUT", writing}, {"DELETE", writing}}

// Classify looks up every header of a record. What a record that only reads
// says about its body does not count.
func Classify(record *accesslog.Record) Class {
	var class Class
	reads := tableExact(methods, record.Method) == reading
	for _, header := range record.Headers {
		switch tableInsensitive(known, header.Name) {
		case body:
			if !reads {
				class.Body++
			}
		case routing:
			class.Routing++
		case client:
			class.Client++
		default:
			class.Unknown++
		}
	}
	return class
}

// tableInsensitive finds a name in a table, whatever the case of its letters.
func tableInsensitive(table []entry, name string) kind {
	for i := range table {
		if names.Same(table[i].name, name) {
			return table[i].kind
		}
	}
	return unknown
}

// tableExact finds a name in a table as it is written there.
func tableExact(table []entry, name string) kind {
	for i := range table {
		if table[i].name == name {
			return table[i].kind
		}
	}
	return unknown
}
