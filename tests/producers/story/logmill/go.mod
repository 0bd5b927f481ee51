// The program of the story; no dependencies.
module logmill

go 1.24
