// Stations reads the settings of weather stations from TOML, changes them and writes them again, a fixed number of times.
// The library is pelletier/go-toml: v1 without a build tag, v2 with the tag b.
package main

import (
	"fmt"
	"log"
	"strings"
	"time"

	"upgrades/prof"
)

type settings struct {
	Region   string
	Checked  time.Time
	Stations []station
	Limits   map[string]limit
}

type station struct {
	Name    string
	Height  float64
	Serial  int64
	Online  bool
	Tags    []string
	Sensors []sensor
}

type sensor struct {
	Kind     string
	Unit     string
	Every    int64
	Channels []int64
	Offset   float64
}

type limit struct {
	Low, High float64
	Note      string
}

func main() {
	text := []byte(describe(60))
	bytes := 0
	prof.Run(400, func(round int) {
		s := read(text)
		correct(&s, round)
		bytes += len(write(s))
	})
	fmt.Println(bytes, "bytes written")
}

func read(text []byte) settings {
	var s settings
	if err := unmarshal(text, &s); err != nil {
		log.Fatal(err)
	}
	return s
}

func write(s settings) []byte {
	text, err := marshal(s)
	if err != nil {
		log.Fatal(err)
	}
	return text
}

// correct is the program's own work: it shifts sensors and widens limits.
func correct(s *settings, round int) {
	for i := range s.Stations {
		station := &s.Stations[i]
		station.Serial += int64(round)
		for j := range station.Sensors {
			station.Sensors[j].Offset += station.Height / 1000
		}
	}
	for name, l := range s.Limits {
		l.Low--
		l.High++
		s.Limits[name] = l
	}
}

// describe makes up the text.
func describe(stations int) string {
	var b strings.Builder
	b.WriteString("# Stations of one region.\nRegion = \"north coast\"\nChecked = 2024-03-09T06:30:00Z\n\n")
	for i := range 12 {
		fmt.Fprintf(&b, "[Limits.l%d]\nLow = %d.5\nHigh = %d.25\nNote = \"limit \\\"%d\\\", as agreed\"\n\n", i, i-6, i*7+3, i)
	}
	for i := range stations {
		fmt.Fprintf(&b, "[[Stations]] # number %d\nName = 'station %d'\nHeight = %d.75\nSerial = 0x%x\nOnline = %t\nTags = [\"coast\", \"row %d\", \"ward\"]\n", i, i, i*13%900, 40000+i, i%3 > 0, i/8)
		for j := range 4 {
			fmt.Fprintf(&b, "\n  [[Stations.Sensors]]\n  Kind = \"%s\"\n  Unit = \"\"\"unit\n%d\"\"\"\n  Every = %d_000\n  Channels = [ %d, %d,\n    %d ]\n  Offset = -0.%d\n", []string{"wind", "rain", "light", "salt"}[j], j, j+1, i, j, i+j, j*5+1)
		}
		b.WriteByte('\n')
	}
	return b.String()
}
