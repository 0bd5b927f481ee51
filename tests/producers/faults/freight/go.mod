// A program with faults; no dependencies.
module freight

go 1.25
