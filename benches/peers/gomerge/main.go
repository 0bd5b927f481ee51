// A peer: the usual diff with the Go library. Parses both profiles, negates the base, merges and writes them. With -sum
// as the first argument, adds both profiles up instead.
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
	args := os.Args[1:]
	sum := args[0] == "-sum"
	if sum {
		args = args[1:]
	}
	base, new := read(args[0]), read(args[1])
	if !sum {
		base.SetLabel("pprof::base", []string{"true"})
		base.Scale(-1)
	}
	merged, err := profile.Merge([]*profile.Profile{new, base})
	if err != nil {
		log.Fatal(err)
	}
	out, err := os.Create(args[2])
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
