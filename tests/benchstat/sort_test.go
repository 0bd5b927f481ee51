// The benchmarks for `record`, which compares their times with benchstat. VARIANT=new makes two of them slower, one
// only slightly.
package benchstat

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func size(n, more int) int {
	if os.Getenv("VARIANT") == "new" {
		return n + more
	}
	return n
}

func BenchmarkSort(b *testing.B) {
	from := make([]int, size(20000, 4000))
	for i := range from {
		from[i] = i * 7919 % 20011
	}
	for b.Loop() {
		slices.Sort(slices.Clone(from))
	}
}

func BenchmarkParse(b *testing.B) {
	text := strings.Repeat("1234567 ", size(20000, 400))
	for b.Loop() {
		sum := 0
		for _, word := range strings.Fields(text) {
			n, _ := strconv.Atoi(word)
			sum += n
		}
	}
}

func BenchmarkCount(b *testing.B) {
	words := strings.Fields(strings.Repeat("the quick brown fox jumps over the lazy dog ", 5000))
	for b.Loop() {
		counts := map[string]int{}
		for _, word := range words {
			counts[word]++
		}
	}
}
