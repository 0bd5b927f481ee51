// Package board shows the latest values of all stations.
package board

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"weather/packet"
	"weather/series"
)

// Board is a display with a line for every station.
type Board struct {
	lock  sync.Mutex
	lines map[string]string
}

// New makes an empty board.
func New() *Board { return &Board{lines: map[string]string{}} }

// Post shows a packet.
func (b *Board) Post(p *packet.Packet, trend series.Trend) {
	line := render(p, trend)
	b.lock.Lock()
	b.lines[p.Station] = line
	time.Sleep(time.Millisecond) // the display takes the line
	b.lock.Unlock()
}

func render(p *packet.Packet, trend series.Trend) string {
	return fmt.Sprintf("%-12s %6.1f C %7.1f +-%.1f %s", p.Station, p.Values[0][0], trend.Median, trend.Spread, chart(trend))
}

// chart draws the smooth curve with a letter a value.
func chart(trend series.Trend) string {
	var drawn strings.Builder
	for _, value := range trend.Smooth {
		height := int(value-trend.Median)/4 + 3
		drawn.WriteByte("_.-=^*'"[min(max(height, 0), 6)])
	}
	return drawn.String()
}
