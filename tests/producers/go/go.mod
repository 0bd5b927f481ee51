// The Go programs whose heap, locks, goroutines and labels are profiled; no
// dependencies.
module producers

go 1.25
