// Package stats adds up what the report shows.
package stats

import (
	"maps"
	"math/bits"
	"slices"

	"logmill/accesslog"
	"logmill/headers"
)

// Route holds the statistics of one pattern.
type Route struct {
	Pattern  string
	Hits     int
	Failures int
	Micros   [32]int // a histogram: index n counts times below 2^n
	Recent   []int   // the last times, for exact quantiles
}

// Collector gathers records.
type Collector struct {
	routes         map[string]*Route
	known, unknown int
}

func NewCollector() *Collector { return &Collector{routes: map[string]*Route{}} }

// Add counts one record.
func (c *Collector) Add(pattern string, record *accesslog.Record, class headers.Class) {
	route := c.route(pattern)
	route.Hits++
	if record.Status >= 500 {
		route.Failures++
	}
	route.Micros[bucket(record.Micros)]++
	remember(route, record.Micros)
	c.known += class.Body + class.Routing + class.Client
	c.unknown += class.Unknown
}

func (c *Collector) route(pattern string) *Route {
	route := c.routes[pattern]
	if route == nil {
		route = &Route{Pattern: pattern}
		c.routes[pattern] = route
	}
	return route
}

func bucket(micros int) int { return bits.Len(uint(micros)) }

// remember keeps the last times of a route.
func remember(route *Route, micros int) {
	const kept = 64
	if len(route.Recent) < kept {
		route.Recent = append(route.Recent, micros)
	} else {
		route.Recent[route.Hits%kept] = micros
	}
}

// Snapshot is a copy for the report.
type Snapshot struct {
	Routes         []Line
	Known, Unknown int
}

// Line is one route in a snapshot.
type Line struct {
	Pattern          string
	Hits, Failures   int
	Median, Slowest  int
	BelowMillisecond int
}

// Snapshot sorts the routes by name and works out their quantiles.
func (c *Collector) Snapshot() *Snapshot {
	snapshot := &Snapshot{Known: c.known, Unknown: c.unknown}
	for _, pattern := range slices.Sorted(maps.Keys(c.routes)) {
		route := c.routes[pattern]
		snapshot.Routes = append(snapshot.Routes, Line{
			Pattern: pattern, Hits: route.Hits, Failures: route.Failures,
			Median: quantile(route, 50), Slowest: quantile(route, 100), BelowMillisecond: below(route, 1000),
		})
	}
	return snapshot
}

func quantile(route *Route, percent int) int {
	sorted := slices.Clone(route.Recent)
	slices.Sort(sorted)
	return sorted[(len(sorted)-1)*percent/100]
}

func below(route *Route, micros int) int {
	sum := 0
	for _, count := range route.Micros[:bucket(micros)] {
		sum += count
	}
	return sum
}
