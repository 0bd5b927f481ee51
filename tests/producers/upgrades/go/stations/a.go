//go:build !b

// Version 1 of the library.
package main

import "github.com/pelletier/go-toml"

var marshal, unmarshal = func(v any) ([]byte, error) { return toml.Marshal(v) }, toml.Unmarshal
