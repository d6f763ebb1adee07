package config

import (
	"fmt"
	"log/slog"
	"math"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Validate reports, as [Problems], every value that no server could work with.
func (c Config) Validate() error {
	v := validator{}
	v.listen("listen", c.Listen)
	v.require(c.Data != "", "data", "the data directory has no name")
	v.within("start_wait", c.StartWait, 0, time.Hour)
	v.within("drain_delay", c.DrainDelay, 0, time.Hour)
	v.positive("shutdown_timeout", c.ShutdownTimeout)
	v.between("max_batch", int64(c.MaxBatch), 1, math.MaxInt32)
	v.require(c.Segment.Enable || c.Snowflake.Enable || c.ServesUID(), "segment.enable", "nothing is left to serve: segment, snowflake and uid are all off")
	v.segment(c.Segment)
	v.snowflake(c.Snowflake, time.Now())
	v.uid(c, time.Now())
	v.oneOf("log.level", c.Log.Level, "debug", "info", "warn", "error")
	v.oneOf("log.format", c.Log.Format, "text", "json")
	return v.problems.err()
}

// LogLevel returns log.level for slog. c must be valid.
func (c Config) LogLevel() slog.Level {
	var level slog.Level
	if level.UnmarshalText([]byte(c.Log.Level)) != nil {
		return slog.LevelInfo
	}
	return level
}

type validator struct{ problems Problems }

func (v *validator) segment(s Segment) {
	v.oneOf("segment.policy", s.Policy, PolicyAdaptive, PolicyLeaf)
	v.positive("segment.outage_budget", s.OutageBudget)
	v.between("segment.max_stock", s.MaxStock, 1, 1<<40)
	v.positive("segment.wait", s.Wait)
	v.positive("segment.call_timeout", s.CallTimeout)
	v.between("segment.max_calls", int64(s.MaxCalls), 1, math.MaxInt32)
	v.positive("segment.check_interval", s.CheckInterval)
	v.between("segment.regression_jump", s.RegressionJump, 0, math.MaxInt64)
}

func (v *validator) snowflake(s Snowflake, now time.Time) {
	if s.Enable {
		v.layouts(s, now)
	}
	v.within("snowflake.max_ahead", s.MaxAhead, time.Millisecond, time.Minute)
	v.positive("snowflake.wait", s.Wait)
	v.positive("snowflake.clock_tolerance", s.ClockTolerance)
	v.within("snowflake.horizon", s.Horizon, time.Minute, 24*time.Hour)
}

func (v *validator) require(ok bool, key, text string) {
	if !ok {
		v.problems = append(v.problems, Problem{Key: key, Text: text})
	}
}

func (v *validator) listen(key, addr string) {
	_, port, err := net.SplitHostPort(addr)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	v.require(err == nil, key, fmt.Sprintf("%q is not HOST:PORT, such as 127.0.0.1:8080, or :8080 for all interfaces", addr))
}

func (v *validator) positive(key string, d time.Duration) {
	v.require(d > 0, key, fmt.Sprintf("%s is not above 0", d))
}

func (v *validator) within(key string, d, low, high time.Duration) {
	v.require(low <= d && d <= high, key, fmt.Sprintf("%s is not in %s … %s", d, low, high))
}

func (v *validator) between(key string, n, low, high int64) {
	v.require(low <= n && n <= high, key, fmt.Sprintf("%d is not in %d … %d", n, low, high))
}

func (v *validator) oneOf(key, value string, allowed ...string) {
	if slices.Contains(allowed, value) {
		return
	}
	v.require(false, key, noneOf(value, allowed))
}

// noneOf says that value is none of those that are allowed.
func noneOf(value string, allowed []string) string {
	text := fmt.Sprintf("%q is none of %s", value, strings.Join(allowed, ", "))
	if near := nearest(value, allowed); near != "" {
		text += fmt.Sprintf("; did you mean %s?", near)
	}
	return text
}
