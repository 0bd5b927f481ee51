// A peer: the usual diff with the Go library. Parses both profiles, negates the base, merges and writes them.
package main

import (
	"log"
	"os"

	"github.com/google/pprof/profile"
)

func main() {
	read := func(path string) *profile.Profile {
		f, err := os.Open(path)
		if err != nil {
			log.Fatal(err)
		}
		defer f.Close()
		p, err := profile.Parse(f)
		if err != nil {
			log.Fatal(err)
		}
		return p
	}
	base, new := read(os.Args[1]), read(os.Args[2])
	base.SetLabel("pprof::base", []string{"true"})
	base.Scale(-1)
	merged, err := profile.Merge([]*profile.Profile{new, base})
	if err != nil {
		log.Fatal(err)
	}
	out, err := os.Create(os.Args[3])
	if err != nil {
		log.Fatal(err)
	}
	if err := merged.Write(out); err != nil {
		log.Fatal(err)
	}
	if err := out.Close(); err != nil {
		log.Fatal(err)
	}
}
