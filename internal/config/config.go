// Package config gathers the configuration of a Leaf server: the defaults, one file (this project's
// YAML, or the leaf.properties of Java Leaf), the environment and the command line. Each overrules
// the one before.
//
// A key is a field of [Config] with its yaml tag and its check, and an entry of example.yaml with
// its documentation and its default. The package derives everything else about keys, such as their
// environment variables, from the two.
package config

import (
	_ "embed"
	"log/slog"
	"time"

	"github.com/leaf-id/leaf/segment"
)

// A Config is a server's configuration; example.yaml explains the keys. The yaml tag of a field is
// its key in the file. In the environment the same key is LEAF_ and the path in capital letters, so
// segment.max_stock is LEAF_SEGMENT_MAX_STOCK.
//
// The check tag has the valid values: "1..10" or "1.." for bounds, ">0", "a|b" for words,
// "host:port", "host:port|off", "peers", "origins", "collector", or "required". A running server applies
// changes of keys with the tag live, see [Changed].
type Config struct {
	Listen          string        `yaml:"listen" check:"host:port"`
	RESP            string        `yaml:"resp" check:"host:port|off"`
	GRPC            string        `yaml:"grpc" check:"host:port|off"`
	Data            string        `yaml:"data" check:"required"`
	Store           string        `yaml:"store"`
	StoreFile       string        `yaml:"store_file"` // [Load] reads it into Store
	Workers         string        `yaml:"workers"`
	WorkersFile     string        `yaml:"workers_file"` // [Load] reads it into Workers
	Cluster         []string      `yaml:"cluster" check:"peers"`
	ClusterAddress  string        `yaml:"cluster_address"`
	ClusterListen   string        `yaml:"cluster_listen"`
	ClusterCA       string        `yaml:"cluster_ca"`
	ClusterCert     string        `yaml:"cluster_cert"`
	ClusterKey      string        `yaml:"cluster_key"`
	ClusterQuota    Size          `yaml:"cluster_quota" check:"16MiB..8GiB"`
	IDSpace         string        `yaml:"id_space"`
	StartWait       time.Duration `yaml:"start_wait" check:"0s..1h"`
	ReadyFor        time.Duration `yaml:"ready_for" check:"0s..1h" live:"yes"`
	DrainDelay      time.Duration `yaml:"drain_delay" check:"0s..1h" live:"yes"`
	ShutdownTimeout time.Duration `yaml:"shutdown_timeout" check:">0"`
	MaxBatch        int           `yaml:"max_batch" check:"1..2147483647"`
	MaxRange        int           `yaml:"max_range" check:"1..2147483647"`
	TokensFile      string        `yaml:"tokens_file" live:"yes"`
	PublicRead      bool          `yaml:"public_read" live:"yes"`
	CORSOrigins     []string      `yaml:"cors_origins" check:"origins" live:"yes"`
	Traces          string        `yaml:"traces" check:"collector"`

	TLS       TLS       `yaml:"tls"`
	Limits    Limits    `yaml:"limits"`
	Segment   Segment   `yaml:"segment"`
	Snowflake Snowflake `yaml:"snowflake"`
	UID       UID       `yaml:"uid"`
	Log       Log       `yaml:"log"`

	// SnowflakeOff says why Snowflake is off, where a file enables it and lacks
	// something. It is not a key.
	SnowflakeOff string

	// EmptyFile says that the YAML file has no keys. It is not a key.
	EmptyFile bool
}

// TLS configures encryption. All names are of files in PEM.
type TLS struct {
	Cert     string `yaml:"cert" live:"yes"`
	Key      string `yaml:"key" live:"yes"`
	ClientCA string `yaml:"client_ca" live:"yes"`
}

// Limits configures what clients may have.
type Limits struct {
	Connections          int       `yaml:"connections" check:"1..1000000"`            // on each port
	ConnectionsPerClient int       `yaml:"connections_per_client" check:"0..1000000"` // likewise; 0: as many as there may be
	Client               Limit     `yaml:"client" live:"yes"`
	Tags                 TagLimits `yaml:"tags" live:"yes"`
}

// TagLimits are limits of tags, by a pattern of their names.
type TagLimits map[string]Limit

// A Limit bounds how many IDs may be taken; 0: it does not.
type Limit struct {
	Rate  int64 `yaml:"rate" check:"0..1000000000000"`        // a second
	Burst int64 `yaml:"burst" check:"0..1000000000000"`       // at once, where there is a Rate; 0: a second's
	Quota int64 `yaml:"quota" check:"0..1000000000000000000"` // a day, which begins at midnight UTC
}

// Check returns the fault of l, or "".
func (l Limit) Check() string {
	switch {
	case min(l.Rate, l.Burst, l.Quota) < 0:
		return "rate, burst and quota must not be negative"
	case l.Burst > 0 && l.Rate == 0:
		return "there is a burst but no rate"
	}
	return ""
}

// Segment configures the scheme segment.
type Segment struct {
	Enable         bool          `yaml:"enable"`
	Policy         string        `yaml:"policy" check:"adaptive|leaf"`
	OutageBudget   time.Duration `yaml:"outage_budget" check:">0"`
	MaxStock       int64         `yaml:"max_stock" check:"1..1099511627776"`
	Wait           time.Duration `yaml:"wait" check:">0"`
	CallTimeout    time.Duration `yaml:"call_timeout" check:">0"`
	MaxCalls       int           `yaml:"max_calls" check:"1..2147483647"`
	CheckInterval  time.Duration `yaml:"check_interval" check:">0"`
	RegressionJump int64         `yaml:"regression_jump" check:"0.."`
	MaskKeys       MaskKeys      `yaml:"mask_keys"` // [Load] reads them into Keys

	// Keys has the keys themselves. It is not a key of the file.
	Keys segment.MaskKeys
}

// MaskKeys says where the keys of masks are, by name: env:VARIABLE, or a file.
type MaskKeys map[string]string

// LargestMaxAhead is the largest value of any max_ahead.
const LargestMaxAhead = time.Minute

// Snowflake configures the scheme snowflake.
type Snowflake struct {
	Enable         bool          `yaml:"enable"`
	Layout         string        `yaml:"layout"` // a preset of package snowflake, or one of Layouts
	Layouts        Layouts       `yaml:"layouts"`
	MaxAhead       time.Duration `yaml:"max_ahead" check:"1ms..1m"`
	Wait           time.Duration `yaml:"wait" check:">0"`
	ClockTolerance time.Duration `yaml:"clock_tolerance" check:">0"`
	Horizon        time.Duration `yaml:"horizon" check:"1m..24h"`
}

// UID configures the scheme of Baidu's uid-generator, with that program's keys where it has them.
type UID struct {
	Enable           string        `yaml:"enable" check:"auto|true|false"`
	Mode             string        `yaml:"mode" check:"cached|default"`
	Layout           string        `yaml:"layout"`
	Epoch            time.Time     `yaml:"epoch"`
	TimeBits         int           `yaml:"time_bits"`
	WorkerBits       int           `yaml:"worker_bits"`
	SeqBits          int           `yaml:"seq_bits"`
	BoostPower       int           `yaml:"boost_power" check:"1..16"`
	PaddingFactor    int           `yaml:"padding_factor" check:"1..99"`
	ScheduleInterval time.Duration `yaml:"schedule_interval" check:"0s.."`
	RejectedTake     string        `yaml:"rejected_take" check:"wait|error"`
	MaxAhead         time.Duration `yaml:"max_ahead" check:"1s..1m"`
	Wait             time.Duration `yaml:"wait" check:">0"`
}

// Log configures the log, which goes to standard error.
type Log struct {
	Level  string `yaml:"level" check:"debug|info|warn|error" live:"yes"`
	Format string `yaml:"format" check:"auto|text|json"`
	Access int64  `yaml:"access" check:"0..1000000000" live:"yes"`
}

// The values of resp, grpc, segment.policy, uid.enable, uid.mode, log.format and uid.rejected_take.
const (
	Off = "off"

	PolicyAdaptive = "adaptive"
	PolicyLeaf     = "leaf"

	EnableAuto  = "auto"
	EnableTrue  = "true"
	EnableFalse = "false"

	ModeCached  = "cached"
	ModeDefault = "default"

	FormatAuto = "auto"
	FormatJSON = "json"

	RejectedWait  = "wait"
	RejectedError = "error"
)

//go:embed example.yaml
var example string

// Example returns a configuration file that explains every key and sets each to its default.
func Example() string { return example }

// The default addresses of the front ends, which are those of the example: the texts of the help name
// them without reading it.
const (
	DefaultListen = "127.0.0.1:8080"
	DefaultRESP   = "127.0.0.1:6380"
	DefaultGRPC   = Off
)

// Default returns the default configuration, which is that of the example.
func Default() Config {
	l := newLoader(new(Config))
	l.yaml("example.yaml", []byte(example))
	if len(l.problems) > 0 {
		panic(l.problems) // the tests read the file too
	}
	return *l.cfg
}

// NeedsStore reports whether a server uses the store's database, for counters or for worker IDs.
func (c Config) NeedsStore() bool {
	return c.Segment.Enable || c.Workers == "" && (c.Snowflake.Enable || c.ServesUID())
}

// LogLevel returns log.level for slog. c must be valid.
func (c Config) LogLevel() slog.Level {
	var level slog.Level
	_ = level.UnmarshalText([]byte(c.Log.Level)) // every valid value is a level
	return level
}
