// Package names compares the names of headers.
package names

// How two names are compared.
type flags uint

const foldCase flags = 1 << iota

// Same reports whether two names mean the same header.
func Same(a, b string) bool { return compare(a, b, foldCase) }

func compare(a, b string, how flags) bool {
	if len(a) != len(b) {
		return false
	}
	for i := 0; i < len(a); i++ {
		x, y := a[i], b[i]
		if how&foldCase != 0 {
			x, y = lower(x), lower(y)
		}
		if x != y {
			return false
		}
	}
	return true
}

func lower(letter byte) byte {
	if 'A' <= letter && letter <= 'Z' {
		return letter + ('a' - 'A')
	}
	return letter
}
