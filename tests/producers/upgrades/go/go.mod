module upgrades

go 1.26

require (
	github.com/go-viper/mapstructure/v2 v2.0.0
	github.com/mitchellh/mapstructure v1.5.0
	github.com/pelletier/go-toml v1.9.5
	github.com/pelletier/go-toml/v2 v2.2.4
)
