// Package input makes up the access log: always the same one for the same
// number of lines, so that two builds of the program do equal work.
package input

import (
	"bytes"
	"fmt"
)

var (
	methods  = []string{"GET", "GET", "GET", "POST", "PUT", "DELETE"}
	services = []string{"accounts", "basket", "catalogue", "delivery", "invoices", "search"}
	actions  = []string{"list", "show", "edit", "history", "export"}
	sent     = []string{
		"Host", "accept", "Accept-Language", "ACCEPT-ENCODING", "user-agent", "Content-Type",
		"content-length", "Cookie", "Referer", "If-None-Match", "X-Request-Id", "x-forwarded-for",
		"X-Forwarded-Proto", "Traceparent", "Authorization", "X-Experiment-Bucket",
	}
)

// Routes returns the patterns that the generated paths follow.
func Routes() []string {
	var patterns []string
	for _, service := range services {
		for _, action := range actions {
			patterns = append(patterns, "/api/"+service+"/*/"+action, "/api/"+service+"/*/items/*/"+action)
		}
	}
	return patterns
}

// Generate writes a log of the given number of lines. Some clients send stray
// spaces around the names of their headers.
func Generate(lines int) []byte {
	var log bytes.Buffer
	random := dice(20)
	for range lines {
		fmt.Fprintf(&log, "%s /api/%s/%d", random.pick(methods), random.pick(services), random.roll(5000))
		if random.roll(3) == 0 {
			fmt.Fprintf(&log, "/items/%d", random.roll(40))
		}
		fmt.Fprintf(&log, "/%s %d %d ", random.pick(actions), 200+100*(random.roll(16)/5), 50+random.roll(900)*random.roll(60))
		for i := range 8 {
			if i > 0 {
				log.WriteByte(';')
			}
			if random.roll(12) == 0 {
				log.WriteByte(' ')
			}
			fmt.Fprintf(&log, "%s=%x", random.pick(sent), random.roll(1<<20))
		}
		log.WriteByte('\n')
	}
	return log.Bytes()
}

// dice is a small linear congruential generator.
type dice uint64

func (d *dice) roll(sides int) int {
	*d = *d*6364136223846793005 + 1442695040888963407
	return int(uint64(*d) >> 33 % uint64(sides))
}

func (d *dice) pick(from []string) string { return from[d.roll(len(from))] }
