// google/pprof's own command, which uses LLVM's symbolizer for functions and lines. For code that Go did not compile,
// `go tool pprof` only has lines.
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
