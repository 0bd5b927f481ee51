// Package packet takes apart what stations send.
package packet

import (
	"encoding/binary"
	"errors"
	"strconv"
)

const (
	channels = 3
	readings = 48 // of a channel
)

// Packet is what a station measured in an hour.
type Packet struct {
	Station string
	Number  int
	Counts  [channels][]int32   // of the sensors: temperature, pressure, wind
	Values  [channels][]float64 // in their units
}

var errSum = errors.New("the sum of a packet is wrong")

// Made returns the bytes that a station sends.
func Made(station, number int) []byte {
	raw := binary.BigEndian.AppendUint16(nil, uint16(station))
	raw = binary.BigEndian.AppendUint16(raw, uint16(number))
	wave := station*37 + number*11
	for i := range channels * readings {
		raw = binary.BigEndian.AppendUint16(raw, uint16(wave+i*i*7%300))
	}
	return binary.BigEndian.AppendUint32(raw, sum(raw))
}

// Decode reads a packet.
func Decode(raw []byte) (*Packet, error) {
	body := raw[:len(raw)-4]
	if sum(body) != binary.BigEndian.Uint32(raw[len(raw)-4:]) {
		return nil, errSum
	}
	p := &Packet{Station: name(body), Number: int(binary.BigEndian.Uint16(body[2:]))}
	body = body[4:]
	for channel := range p.Values {
		p.Counts[channel] = unpack(body[2*readings*channel:])
		p.Values[channel] = convert(channel, p.Counts[channel])
	}
	return p, nil
}

func sum(body []byte) uint32 {
	sum := uint32(1)
	for _, b := range body {
		sum = sum*31 + uint32(b)
	}
	return sum
}

func name(body []byte) string {
	return "station " + strconv.Itoa(int(binary.BigEndian.Uint16(body)))
}

// unpack reads one channel.
func unpack(body []byte) []int32 {
	buffer := make([]int32, 64)
	for i := range readings {
		buffer[i] = int32(binary.BigEndian.Uint16(body[2*i:]))
	}
	return buffer[:readings]
}

// convert computes physical values from sensor counts.
func convert(channel int, counts []int32) []float64 {
	scale := [channels]float64{0.1, 0.25, 0.05}[channel]
	values := make([]float64, len(counts))
	for i, count := range counts {
		values[i] = float64(count)*scale - 20
	}
	return values
}
