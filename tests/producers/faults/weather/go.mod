// A program with faults; no dependencies.
module weather

go 1.25
