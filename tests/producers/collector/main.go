// Program collector writes OTLP messages as the OpenTelemetry collector's file
// exporter does. Usage: collector FORMAT COMPRESSION OUT MESSAGE.otlp...
package main

import (
	"context"
	"log"
	"os"

	"github.com/open-telemetry/opentelemetry-collector-contrib/exporter/fileexporter"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.opentelemetry.io/collector/exporter/xexporter"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

func main() {
	if len(os.Args) < 5 {
		log.Fatal("usage: collector json|proto none|zstd OUT MESSAGE.otlp...")
	}
	factory := fileexporter.NewFactory().(xexporter.Factory)
	config := factory.CreateDefaultConfig().(*fileexporter.Config)
	config.FormatType, config.Path = os.Args[1], os.Args[3]
	if os.Args[2] != "none" {
		config.Compression = os.Args[2]
	}
	check(config.Validate())
	ctx := context.Background()
	exporter, err := factory.CreateProfiles(ctx, exportertest.NewNopSettings(factory.Type()), config)
	check(err)
	check(exporter.Start(ctx, componenttest.NewNopHost()))
	for _, name := range os.Args[4:] {
		data, err := os.ReadFile(name)
		check(err)
		profiles, err := (&pprofile.ProtoUnmarshaler{}).UnmarshalProfiles(data)
		check(err)
		check(exporter.ConsumeProfiles(ctx, profiles))
	}
	check(exporter.Shutdown(ctx))
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
