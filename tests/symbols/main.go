// google/pprof's own command, which asks LLVM's symbolizer for functions and lines; `go tool pprof` has lines alone of
// what is not compiled by Go.
package main

import (
	"fmt"
	"os"

	"github.com/google/pprof/driver"
)

func main() {
	if err := driver.PProf(&driver.Options{}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
}
