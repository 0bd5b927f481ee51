// Decides about inputs with the Go library. Reads paths from standard input, one per line, and prints for each
//
//	accept SAMPLES SUM,SUM,...
//	reject WHY
//
// with the sums of all values of each sample type.
package main

import (
	"bufio"
	"fmt"
	"os"
	"strings"

	"github.com/google/pprof/profile"
)

func main() {
	paths := bufio.NewScanner(os.Stdin)
	for paths.Scan() {
		fmt.Println(strings.ReplaceAll(verdict(paths.Text()), "\n", " "))
	}
}

func verdict(path string) (word string) {
	defer func() {
		if e := recover(); e != nil {
			word = fmt.Sprint("reject panic: ", e)
		}
	}()
	data, err := os.ReadFile(path)
	if err != nil {
		panic(err)
	}
	p, err := profile.ParseData(data)
	if err == nil {
		err = p.CheckValid()
	}
	if err != nil {
		return "reject " + err.Error()
	}
	sums := make([]int64, len(p.SampleType))
	for _, s := range p.Sample {
		for i, v := range s.Value {
			sums[i] += v
		}
	}
	return fmt.Sprint("accept ", len(p.Sample), " ", strings.ReplaceAll(strings.Trim(fmt.Sprint(sums), "[]"), " ", ","))
}
