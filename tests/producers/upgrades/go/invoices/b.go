//go:build b

// The library under its new name.
package main

import "github.com/go-viper/mapstructure/v2"

var decode = mapstructure.Decode
