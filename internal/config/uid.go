package config

import (
	"fmt"
	"time"

	"github.com/leaf-id/leaf/internal/drivers"
	"github.com/leaf-id/leaf/internal/issuer"
	"github.com/leaf-id/leaf/snowflake"
)

// UID configures the scheme of Baidu's uid-generator. The keys are its own, where it has
// them.
type UID struct {
	// Enable says whether the scheme is served: "true", "false", or "auto", which means
	// true where the embedded database is used, or uid-generator's table of worker IDs.
	Enable string `yaml:"enable"`

	// Mode is "cached", which borrows from the future up to MaxAhead, or "default",
	// which does not.
	Mode string `yaml:"mode"`

	// Layout is the name of the layout: issuer.UID for the built-in one, whose values the
	// next four then have, another name for others.
	Layout string `yaml:"layout"`

	// Epoch is the time that seconds are counted from.
	Epoch time.Time `yaml:"epoch"`

	// The widths; together at most 63.
	TimeBits   int `yaml:"time_bits"`
	WorkerBits int `yaml:"worker_bits"`
	SeqBits    int `yaml:"seq_bits"`

	// BoostPower says how many IDs are kept ready in cached mode: those of
	// 2^BoostPower seconds; 1 … 16.
	BoostPower int `yaml:"boost_power"`

	// PaddingFactor is the percentage of them, 1 … 99, at which there are made more.
	PaddingFactor int `yaml:"padding_factor"`

	// ScheduleInterval is how often there are made more in any case; 0: never.
	ScheduleInterval time.Duration `yaml:"schedule_interval"`

	// RejectedTake is what becomes of a request when there are none: "wait", for up to
	// Wait, or "error".
	RejectedTake string `yaml:"rejected_take"`

	// MaxAhead is how far cached mode may run ahead of the clock, 1s … 1m.
	MaxAhead time.Duration `yaml:"max_ahead"`

	// Wait bounds how long a request waits for an ID.
	Wait time.Duration `yaml:"wait"`
}

// The values of uid.enable, uid.mode and uid.rejected_take.
const (
	EnableAuto  = "auto"
	EnableTrue  = "true"
	EnableFalse = "false"

	ModeCached  = "cached"
	ModeDefault = "default"

	RejectedWait  = "wait"
	RejectedError = "error"
)

func defaultUID() UID {
	l, _ := snowflake.Preset(issuer.UID)
	return UID{
		Enable: EnableAuto,
		Mode:   ModeCached,
		Layout: issuer.UID,
		Epoch:  l.Epoch.In(time.FixedZone("", 8*60*60)),

		TimeBits: l.TimeBits, WorkerBits: l.WorkerBits, SeqBits: l.SequenceBits,

		BoostPower:    3,
		PaddingFactor: snowflake.DefaultRefill,
		RejectedTake:  RejectedWait,
		MaxAhead:      time.Minute,
		Wait:          3 * time.Second, // a second's worth of IDs comes each second
	}
}

// Embedded reports whether a server uses the embedded database.
func (c Config) Embedded() bool { return c.Store == "" && c.Workers == "" }

// ServesUID reports whether the scheme uid is served.
func (c Config) ServesUID() bool {
	wanted := c.Embedded() || drivers.Disposable(c.Workers)
	return c.UID.Enable == EnableTrue || c.UID.Enable == EnableAuto && wanted && c.WhyNotUID() == ""
}

// leastWorkers is how many worker IDs there must be for nobody to miss those of servers
// that were killed in the last minute: uid mode keeps them for so long.
const leastWorkers = 256

// WhyNotUID says why uid would be in the way of snowflake, "" if it is not.
func (c Config) WhyNotUID() string {
	if !c.Snowflake.Enable {
		return ""
	}
	uid := c.UID.layout()
	for _, l := range c.Snowflake.Served() {
		switch {
		case l.Name == c.UID.Layout:
			return fmt.Sprintf("snowflake has a layout %s too: name that of uid otherwise", l.Name)
		case l.Record("") == uid.Record(""):
			return fmt.Sprintf("the layout %s of snowflake has the same values: both would issue the same IDs", l.Name)
		case l.MaxWorker()+1 < leastWorkers && c.UID.Enable == EnableAuto:
			return fmt.Sprintf("the layout %s of snowflake has %d worker IDs, and uid would keep those of killed servers for a minute", l.Name, l.MaxWorker()+1)
		}
	}
	return ""
}

func (u UID) layout() snowflake.Layout {
	return snowflake.Layout{Epoch: u.Epoch, Tick: time.Second, TimeBits: u.TimeBits, WorkerBits: u.WorkerBits, SequenceBits: u.SeqBits}
}

// Served returns the layout that is served. u must be valid.
func (u UID) Served() issuer.Layouts {
	l := issuer.NamedLayout{Name: u.Layout, Layout: u.layout(), Scheme: issuer.UID}
	if u.Mode == ModeDefault {
		// An idle second spreads over shards, and has its IDs nearly all.
		l.RandomStart = max((l.MaxSequence()+1)/16, 1)
	}
	return issuer.Layouts{l}
}

// Generators returns how the IDs are made. u must be valid.
func (u UID) Generators() snowflake.Options {
	o := snowflake.Options{MaxAhead: -1, Wait: u.Wait, Reject: u.RejectedTake == RejectedError}
	if u.Mode == ModeCached {
		o.MaxAhead = u.MaxAhead
		o.Reserve = snowflake.Reserve{
			Size:     1 << min(u.SeqBits+u.BoostPower, 62),
			Refill:   u.PaddingFactor,
			Interval: u.ScheduleInterval,
		}
	}
	return o
}

func (v *validator) uid(c Config, now time.Time) {
	u := c.UID
	v.oneOf("uid.enable", u.Enable, EnableAuto, EnableTrue, EnableFalse)
	v.oneOf("uid.mode", u.Mode, ModeCached, ModeDefault)
	v.oneOf("uid.rejected_take", u.RejectedTake, RejectedWait, RejectedError)
	v.between("uid.boost_power", int64(u.BoostPower), 1, 16)
	v.between("uid.padding_factor", int64(u.PaddingFactor), 1, 99)
	v.require(u.ScheduleInterval >= 0, "uid.schedule_interval", fmt.Sprintf("%s is below 0", u.ScheduleInterval))
	v.within("uid.max_ahead", u.MaxAhead, time.Second, time.Minute)
	v.positive("uid.wait", u.Wait)
	if !c.ServesUID() {
		return
	}
	v.require(layoutName.MatchString(u.Layout), "uid.layout", badLayoutName)
	l := u.layout()
	if err := l.Check(); err != nil {
		v.require(false, "uid.time_bits", plain(err))
		return
	}
	v.require(u.Epoch.Nanosecond() == 0, "uid.epoch", "the epoch is not a whole second")
	v.require(u.TimeBits+u.WorkerBits+u.SeqBits == 63, "uid.time_bits",
		fmt.Sprintf("time_bits, worker_bits and seq_bits are %d together, not 63", u.TimeBits+u.WorkerBits+u.SeqBits))
	preset, builtIn := snowflake.Preset(u.Layout)
	v.require(!builtIn || preset.Record("") == l.Record(""), "uid.layout",
		fmt.Sprintf("%s is the name of a built-in layout with other values: choose a name for yours, which stands for these values ever after", u.Layout))
	v.require(c.UID.Enable != EnableTrue || c.WhyNotUID() == "", "uid.enable", c.WhyNotUID())
	v.lasts("uid.time_bits", l, now)
}
