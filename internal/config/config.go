// Package config gathers what a Leaf server is told: built-in defaults, one file
// (this project's YAML, or the leaf.properties of Java Leaf), the environment and
// the command line, each overruling the one before.
package config

import (
	"time"

	"github.com/leaf-id/leaf/internal/issuer"
	"github.com/leaf-id/leaf/segment"
	"github.com/leaf-id/leaf/snowflake"
	"github.com/leaf-id/leaf/worker"
)

// A Config is everything a server can be told. The yaml tag of a field is its key
// in the file; in the environment the same key reads LEAF_ and the path in capital
// letters, so that segment.max_stock is LEAF_SEGMENT_MAX_STOCK.
type Config struct {
	// Listen is the host:port of HTTP and gRPC; without a host, all interfaces.
	Listen string `yaml:"listen"`

	// Data is the directory for what this server remembers across restarts, and
	// for the embedded database where no store is configured.
	Data string `yaml:"data"`

	// Store is the URL of the database that holds the counters. Empty: an SQLite
	// database in Data.
	Store string `yaml:"store"`

	// StoreFile names a file that holds the store's URL, to keep its password out
	// of this one. [Load] reads it into Store.
	StoreFile string `yaml:"store_file"`

	// Workers is the URL of the registry of worker IDs. Empty: the store's database.
	Workers string `yaml:"workers"`

	// WorkersFile names a file that holds the registry's URL, as StoreFile does for
	// the store's. [Load] reads it into Workers.
	WorkersFile string `yaml:"workers_file"`

	// StartWait has the port stay closed until all schemes are ready, for so long at most.
	StartWait time.Duration `yaml:"start_wait"`

	// DrainDelay is how long a server that is told to stop goes on serving, not ready.
	DrainDelay time.Duration `yaml:"drain_delay"`

	// ShutdownTimeout bounds a clean stop after DrainDelay.
	ShutdownTimeout time.Duration `yaml:"shutdown_timeout"`

	// MaxBatch is the largest number of IDs that one request may ask for, 1 … 2^31-1.
	MaxBatch int `yaml:"max_batch"`

	Segment   Segment   `yaml:"segment"`
	Snowflake Snowflake `yaml:"snowflake"`
	UID       UID       `yaml:"uid"`

	// SnowflakeOff says why Snowflake is not enabled, where a file enables it and
	// lacks something. It is no setting.
	SnowflakeOff string
	Log          Log `yaml:"log"`
}

// Segment configures the segment scheme.
type Segment struct {
	// Enable says whether the scheme is served.
	Enable bool `yaml:"enable"`

	// Policy is how many IDs to allocate at once: "adaptive", or "leaf" for Java
	// Leaf's rule.
	Policy string `yaml:"policy"`

	// OutageBudget is how long the stock in memory is to last while the store is
	// away.
	OutageBudget time.Duration `yaml:"outage_budget"`

	// MaxStock is the largest number of unused IDs held per tag, 1 … 2^40: what a crash may
	// cost.
	MaxStock int64 `yaml:"max_stock"`

	// Wait bounds how long a request waits for the store to deliver.
	Wait time.Duration `yaml:"wait"`

	// CallTimeout bounds one call of the store.
	CallTimeout time.Duration `yaml:"call_timeout"`

	// MaxCalls bounds the store calls in flight over all tags.
	MaxCalls int `yaml:"max_calls"`

	// CheckInterval is how often the tags in use are compared with the store's.
	CheckInterval time.Duration `yaml:"check_interval"`

	// RegressionJump is how far a counter that was found moved back is lifted above
	// all that is known of it. 0: chosen from the steps seen.
	RegressionJump int64 `yaml:"regression_jump"`
}

// Snowflake configures the time-based scheme.
type Snowflake struct {
	// Enable says whether the scheme is served.
	Enable bool `yaml:"enable"`

	// Layout is the name of the default layout: a preset of package snowflake or one
	// of Layouts.
	Layout string `yaml:"layout"`

	// Layouts are the further layouts that are served, by name.
	Layouts Layouts `yaml:"layouts"`

	// MaxAhead is how far IDs may run ahead of the clock, 1ms … 1m.
	MaxAhead time.Duration `yaml:"max_ahead"`

	// Wait bounds how long a request waits for an ID.
	Wait time.Duration `yaml:"wait"`

	// ClockTolerance is how far the clock may be off at the start.
	ClockTolerance time.Duration `yaml:"clock_tolerance"`

	// Horizon is how far ahead the lease of the worker ID reaches, 1m … 24h.
	Horizon time.Duration `yaml:"horizon"`
}

// Log configures the log, which goes to standard error.
type Log struct {
	Level  string `yaml:"level"`  // debug, info, warn or error
	Format string `yaml:"format"` // text or json
}

// The values of segment.policy.
const (
	PolicyAdaptive = "adaptive"
	PolicyLeaf     = "leaf"
)

// Default returns the configuration of a server that was told nothing.
func Default() Config {
	return Config{
		Listen:          "127.0.0.1:8080",
		Data:            "./leaf-data",
		ShutdownTimeout: 10 * time.Second,
		MaxBatch:        10_000,
		Segment: Segment{
			Enable:        true,
			Policy:        PolicyAdaptive,
			OutageBudget:  segment.DefaultOutageBudget,
			MaxStock:      segment.DefaultMaxStock,
			Wait:          segment.DefaultWait,
			CallTimeout:   segment.DefaultCallTimeout,
			MaxCalls:      segment.DefaultMaxCalls,
			CheckInterval: segment.DefaultCheckInterval,
		},
		Snowflake: Snowflake{
			Enable:         true,
			Layout:         issuer.DefaultLayout,
			MaxAhead:       worker.DefaultMaxAhead,
			Wait:           snowflake.DefaultWait,
			ClockTolerance: worker.DefaultTolerance,
			Horizon:        worker.DefaultHorizon,
		},
		UID: defaultUID(),
		Log: Log{Level: "info", Format: "text"},
	}
}
