// Compares deltas with the Go library. Reads questions from standard input, one per line:
//
//	PREV CUR DELTA OUT LEVEL COMMENT TYPE,TYPE,...
//
// separated by tabs. The expected delta is CUR merged with PREV, where the named types are scaled by -1 and the others
// by 0. Merging DELTA with the negated expectation must leave no samples, but must leave some if one value of DELTA is
// off by one. Prints for each question: the remaining samples, the remaining samples after planting a 1, the expected
// samples, the sizes of DELTA and of the expectation (with the comment, compressed at the level, also written to OUT),
// and the size of DELTA as the library writes it.
package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"log"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/google/pprof/profile"
)

func main() {
	questions := bufio.NewScanner(os.Stdin)
	for questions.Scan() {
		word := strings.Split(questions.Text(), "\t")
		prev, cur, ours := read(word[0]), read(word[1]), read(word[2])
		level, err := strconv.Atoi(word[4])
		check(err)
		expected := subtract(prev, cur, strings.Split(word[6], ","))
		expected.Comments = append(cur.Comments, word[5])
		written := pack(expected, level)
		check(os.WriteFile(word[3], written, 0o644))

		left := less(ours, expected)
		planted := "-"
		if len(ours.Sample) > 0 {
			middle := ours.Sample[len(ours.Sample)/2]
			middle.Value[0]++
			planted = strconv.Itoa(len(less(ours, expected).Sample))
			middle.Value[0]--
		}
		size, err := os.Stat(word[2])
		check(err)
		fmt.Println(len(left.Sample), planted, len(expected.Sample), size.Size(), len(written), len(pack(ours, level)))
	}
	check(questions.Err())
}

func read(path string) *profile.Profile {
	bytes, err := os.ReadFile(path)
	check(err)
	p, err := profile.ParseData(bytes)
	check(err)
	check(p.CheckValid())
	return p
}

// subtract scales prev and adds it to cur.
func subtract(prev, cur *profile.Profile, cumulative []string) *profile.Profile {
	ratios := make([]float64, len(prev.SampleType))
	for i, t := range prev.SampleType {
		if slices.Contains(cumulative, t.Type) {
			ratios[i] = -1
		}
	}
	check(prev.ScaleN(ratios))
	return merge(cur, prev)
}

func less(p, q *profile.Profile) *profile.Profile {
	negative := q.Copy()
	negative.Scale(-1)
	return merge(p.Copy(), negative)
}

func merge(p, q *profile.Profile) *profile.Profile {
	merged, err := profile.Merge([]*profile.Profile{p, q})
	check(err)
	return merged
}

func pack(p *profile.Profile, level int) []byte {
	var out bytes.Buffer
	zipped, err := gzip.NewWriterLevel(&out, level)
	check(err)
	check(p.WriteUncompressed(zipped))
	check(zipped.Close())
	return out.Bytes()
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
