//go:build !b

// The library under its old name.
package main

import "github.com/mitchellh/mapstructure"

var decode = mapstructure.Decode
