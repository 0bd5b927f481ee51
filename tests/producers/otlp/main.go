// Program otlp writes a profile of ours as OTLP, with the OpenTelemetry
// collector's own library: as the collector converts profile.proto, a profile
// for each sample type. Usage: otlp IN.pb.gz >OUT.otlp
//
// The collector has moved from protocol 1.9 to 1.10; with -modfile=go.1.9.mod
// this is built with the library of before.
package main

import (
	"log"
	"os"
	"sort"

	"github.com/google/pprof/profile"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: otlp IN.pb.gz >OUT.otlp")
	}
	in, err := os.Open(os.Args[1])
	check(err)
	defer in.Close()
	p, err := profile.Parse(in)
	check(err)
	data, err := (&pprofile.ProtoMarshaler{}).MarshalProfiles(convert(p))
	check(err)
	_, err = os.Stdout.Write(data)
	check(err)
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// must takes what the library's Set functions return: a number.
func must(index int32, err error) int32 {
	check(err)
	return index
}

func convert(p *profile.Profile) pprofile.Profiles {
	data := pprofile.NewProfiles()
	d := data.Dictionary()
	// Entry 0 of each table is the zero value.
	d.StringTable().Append("")
	d.MappingTable().AppendEmpty()
	d.LocationTable().AppendEmpty()
	d.FunctionTable().AppendEmpty()
	d.LinkTable().AppendEmpty()
	d.AttributeTable().AppendEmpty()
	d.StackTable().AppendEmpty()
	text := func(s string) int32 { return must(pprofile.SetString(d.StringTable(), s)) }
	attribute := func(key, unit string, set func(pcommon.Value)) int32 {
		a := pprofile.NewKeyValueAndUnit()
		a.SetKeyStrindex(text(key))
		a.SetUnitStrindex(text(unit))
		set(a.Value())
		return must(pprofile.SetAttribute(d.AttributeTable(), a))
	}
	ofText := func(key, value string) int32 {
		return attribute(key, "", func(v pcommon.Value) { v.SetStr(value) })
	}

	mappings := map[*profile.Mapping]int32{}
	for _, m := range p.Mapping {
		to := pprofile.NewMapping()
		to.SetMemoryStart(m.Start)
		to.SetMemoryLimit(m.Limit)
		to.SetFileOffset(m.Offset)
		to.SetFilenameStrindex(text(m.File))
		if m.BuildID != "" {
			to.AttributeIndices().Append(ofText("process.executable.build_id.gnu", m.BuildID))
		}
		for _, flag := range []struct {
			key string
			set bool
		}{
			{"has_functions", m.HasFunctions},
			{"has_filenames", m.HasFilenames},
			{"has_line_numbers", m.HasLineNumbers},
			{"has_inline_frames", m.HasInlineFrames},
		} {
			if flag.set {
				key := "pprof.mapping." + flag.key
				to.AttributeIndices().Append(attribute(key, "", func(v pcommon.Value) { v.SetBool(true) }))
			}
		}
		mappings[m] = must(pprofile.SetMapping(d.MappingTable(), to))
	}
	locations := map[*profile.Location]int32{}
	for _, l := range p.Location {
		to := pprofile.NewLocation()
		to.SetMappingIndex(mappings[l.Mapping])
		to.SetAddress(l.Address)
		for _, line := range l.Line {
			f := pprofile.NewFunction()
			f.SetNameStrindex(text(line.Function.Name))
			f.SetSystemNameStrindex(text(line.Function.SystemName))
			f.SetFilenameStrindex(text(line.Function.Filename))
			f.SetStartLine(line.Function.StartLine)
			toLine := to.Lines().AppendEmpty()
			toLine.SetFunctionIndex(must(pprofile.SetFunction(d.FunctionTable(), f)))
			toLine.SetLine(line.Line)
			toLine.SetColumn(line.Column)
		}
		locations[l] = must(pprofile.SetLocation(d.LocationTable(), to))
	}

	resource := data.ResourceProfiles().AppendEmpty()
	resource.Resource().Attributes().PutStr("service.name", "demo")
	scope := resource.ScopeProfiles().AppendEmpty()
	for i, t := range p.SampleType {
		to := scope.Profiles().AppendEmpty()
		to.SampleType().SetTypeStrindex(text(t.Type))
		to.SampleType().SetUnitStrindex(text(t.Unit))
		if p.PeriodType != nil {
			to.PeriodType().SetTypeStrindex(text(p.PeriodType.Type))
			to.PeriodType().SetUnitStrindex(text(p.PeriodType.Unit))
		}
		to.SetPeriod(p.Period)
		to.SetTime(pcommon.Timestamp(p.TimeNanos))
		to.SetDurationNano(uint64(p.DurationNanos))
		for _, s := range p.Sample {
			stack := pprofile.NewStack()
			for _, l := range s.Location {
				stack.LocationIndices().Append(locations[l])
			}
			sample := to.Samples().AppendEmpty()
			sample.SetStackIndex(must(pprofile.SetStack(d.StackTable(), stack)))
			sample.Values().Append(s.Value[i])
			for _, key := range keys(s.Label) {
				for _, value := range s.Label[key] {
					sample.AttributeIndices().Append(ofText(key, value))
				}
			}
			for _, key := range keys(s.NumLabel) {
				for j, value := range s.NumLabel[key] {
					unit := ""
					if units := s.NumUnit[key]; j < len(units) {
						unit = units[j]
					}
					sample.AttributeIndices().Append(attribute(key, unit, func(v pcommon.Value) { v.SetInt(value) }))
				}
			}
		}
	}
	return data
}

func keys[V any](m map[string]V) []string {
	var keys []string
	for key := range m {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	return keys
}
