module benchstat

go 1.24
