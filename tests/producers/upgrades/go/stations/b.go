//go:build b

// Version 2 of the library.
package main

import "github.com/pelletier/go-toml/v2"

var marshal, unmarshal = func(v any) ([]byte, error) { return toml.Marshal(v) }, toml.Unmarshal
