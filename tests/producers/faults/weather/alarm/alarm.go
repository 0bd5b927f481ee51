// Package alarm tells what is out of the ordinary.
package alarm

import (
	"fmt"
	"sync"
	"time"

	"weather/packet"
	"weather/series"
)

// Rules holds the limits of usual values.
type Rules struct {
	cold, storm float64
	siren       sync.Mutex
	raised      int
}

// NewRules returns rules for summer.
func NewRules() *Rules { return &Rules{cold: 22, storm: 55} }

// Raised returns the number of alarms.
func (r *Rules) Raised() int { return r.raised }

// Check returns the unusual values of a packet.
func (r *Rules) Check(p *packet.Packet, trend series.Trend) []string {
	var found []string
	if trend.Median < r.cold {
		found = append(found, fmt.Sprintf("cold: %.1f, spread %.1f", trend.Median, trend.Spread))
	}
	for _, gust := range gusts(p.Values[2]) {
		if gust > r.storm {
			found = append(found, fmt.Sprintf("gust of %.1f", gust))
		}
	}
	if len(found) > 0 {
		r.sound()
	}
	return found
}

// sound waits for the only siren.
func (r *Rules) sound() {
	r.siren.Lock()
	defer r.siren.Unlock()
	r.raised++
	time.Sleep(time.Millisecond)
}

// gusts returns the increases between consecutive values.
func gusts(wind []float64) []float64 {
	steps := make([]float64, 0, len(wind))
	for i := 1; i < len(wind); i++ {
		if step := wind[i] - wind[i-1]; step > 2 {
			steps = append(steps, 5*step)
		}
	}
	return steps
}
