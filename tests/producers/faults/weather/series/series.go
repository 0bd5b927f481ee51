// Package series keeps what stations measured lately.
package series

import (
	"slices"
	"sync"
	"time"

	"weather/packet"
)

const kept = 5 // packets of a station

// Trend is how the values of a station change.
type Trend struct {
	Median, Spread float64
	Smooth         []float64
}

// Store has the series of all stations.
type Store struct {
	lock     sync.Mutex
	stations map[string][]*packet.Packet
	saved    int
}

// NewStore makes an empty store.
func NewStore() *Store { return &Store{stations: map[string][]*packet.Packet{}} }

// Add appends a packet to its series, and returns the trend.
func (s *Store) Add(p *packet.Packet) Trend {
	window := s.window(p)
	sorted := slices.Clone(window)
	slices.Sort(sorted)
	n := len(sorted)
	return Trend{sorted[n/2], sorted[n*9/10] - sorted[n/10], smooth(window)}
}

// window returns all stored temperatures of the station.
func (s *Store) window(p *packet.Packet) []float64 {
	s.lock.Lock()
	defer s.lock.Unlock()
	packets := append(s.stations[p.Station], p)
	if len(packets) > kept {
		packets = slices.Clone(packets[1:])
	}
	s.stations[p.Station] = packets
	if p.Number%3 == 0 {
		s.checkpoint()
	}
	window := make([]float64, 0, kept*len(p.Values[0]))
	for _, packet := range packets {
		window = append(window, packet.Values[0]...)
	}
	return window
}

// checkpoint waits until the disk has everything.
func (s *Store) checkpoint() {
	s.saved++
	time.Sleep(time.Millisecond)
}

// smooth returns a moving mean.
func smooth(values []float64) []float64 {
	means := make([]float64, len(values)/4)
	for i := range means {
		for _, value := range values[4*i : 4*i+4] {
			means[i] += value / 4
		}
	}
	return means
}
