// Package archive writes blocks of packets to a slow disk.
package archive

import (
	"encoding/binary"
	"sync"
	"time"

	"weather/packet"
)

// Archive is a disk that takes one block at a time.
type Archive struct {
	lock   sync.Mutex
	blocks int
	notes  []string
}

// New makes an archive.
func New() *Archive { return &Archive{} }

// Write stores a packet.
func (a *Archive) Write(p *packet.Packet) {
	block := encode(p)
	a.lock.Lock()
	defer a.lock.Unlock()
	a.store(block)
}

// Note stores a remark on a station.
func (a *Archive) Note(station, text string) {
	a.lock.Lock()
	defer a.lock.Unlock()
	if a.notes = append(a.notes, station+": "+text); len(a.notes) == 100 {
		a.notes = nil
	}
}

// Blocks returns the number of stored blocks.
func (a *Archive) Blocks() int { return a.blocks }

func (a *Archive) store(block []byte) {
	time.Sleep(2*time.Millisecond + time.Duration(len(block))*2*time.Microsecond)
	a.blocks++
}

// encode writes differences of values in as few bytes as they need.
func encode(p *packet.Packet) []byte {
	block := []byte(p.Station)
	for _, counts := range p.Counts {
		before := int32(0)
		for _, count := range counts {
			block = binary.AppendVarint(block, int64(count-before))
			before = count
		}
	}
	return block
}
