package server

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/internal/backend"
	"github.com/leaf-id/leaf/internal/config"
	"github.com/leaf-id/leaf/internal/hint"
	"github.com/leaf-id/leaf/internal/issuer"
	"github.com/leaf-id/leaf/segment"
)

func TestSegmentOptions(t *testing.T) {
	s := &Server{cfg: config.Config{Segment: config.Segment{
		Policy: config.PolicyLeaf, OutageBudget: 1, MaxStock: 2, Wait: 3, CallTimeout: 4, MaxCalls: 5, CheckInterval: 6, RegressionJump: 7,
	}}}
	got := s.segmentOptions()
	want := &segment.SetOptions{
		Options:  segment.Options{Policy: segment.Leaf, OutageBudget: 1, MaxStock: 2, Wait: 3, CallTimeout: 4, RegressionJump: 7},
		MaxCalls: 5, CheckInterval: 6,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if p := (&Server{cfg: config.Default()}).segmentOptions().Policy; p != segment.Adaptive {
		t.Errorf("the default policy is %v, want adaptive", p)
	}
}

// The defaults of the table are those of the configuration.
func TestDefaultAddresses(t *testing.T) {
	cfg := config.Default()
	for _, f := range FrontEnds {
		if address := f.address(&cfg); address != f.Default {
			t.Errorf("%s: %q by default, the table says %q", f.Key, address, f.Default)
		}
	}
}

func TestTimeSchemes(t *testing.T) {
	cfg := config.Default()
	schemes, off := timeSchemes(cfg, map[string]string{})
	if len(schemes) != 2 || len(off) != 0 || schemes[0].options.MaxAhead != 2*time.Second || schemes[1].options.MaxAhead != time.Minute {
		t.Errorf("with the embedded database: %+v, off: %v", schemes, off)
	}
	cfg.Store = "mysql://db/leaf"
	if schemes, off := timeSchemes(cfg, off); len(schemes) != 1 || !strings.Contains(off[issuer.UID], "set it to true") {
		t.Errorf("with another: %+v, off: %v", schemes, off)
	}
	cfg.UID.Enable, cfg.Snowflake.Enable = config.EnableTrue, false
	if schemes, _ := timeSchemes(cfg, off); len(schemes) != 1 || schemes[0].name != issuer.UID {
		t.Errorf("uid alone: %+v", schemes)
	}
}

// No scheme runs further ahead of the clock than the registry allows.
func TestMaxAheadOfRegistry(t *testing.T) {
	schemes, _ := timeSchemes(config.Default(), map[string]string{})
	for limit, want := range map[time.Duration][2]time.Duration{0: {2 * time.Second, time.Minute}, time.Second: {time.Second, time.Second}} {
		layouts := nodeLayouts(schemes, limit)
		if got := [2]time.Duration{layouts[0].Options.MaxAhead, layouts[len(layouts)-1].Options.MaxAhead}; got != want {
			t.Errorf("bounded by %v: %v, want %v", limit, got, want)
		}
	}
}

// A store that cannot be asked whether it has worker IDs may have them.
func TestStoreThatCannotDealWorkers(t *testing.T) {
	far := &net.TCPAddr{IP: net.IPv4zero, Port: 1}
	near := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1}
	for _, tt := range []struct {
		store  backend.Backend
		listen net.Addr
		want   string
	}{
		{backend.Backend{}, far, ""},
		{backend.Backend{}, near, ""},
		{backend.Backend{Traits: backend.Traits{Local: true}}, near, ""},
		{backend.Backend{Traits: backend.Traits{Local: true}}, far, "two such machines"},
		{backend.Backend{Workers: backend.Part{Unfit: leaf.ErrInvalid}}, near, "the store keeps counters"},
	} {
		s := &Server{ports: []*port{{addr: tt.listen}}, opts: Options{Store: &tt.store}}
		err := s.checkWorkers()
		if (err == nil) != (tt.want == "") || err != nil && (!strings.Contains(err.Error(), tt.want) || hint.Of(err) == "") {
			t.Errorf("%+v on %s: %v, want %q", tt.store, tt.listen, err, tt.want)
		}
		s.opts.Workers = new(backend.Backend)
		if err := s.checkWorkers(); err != nil {
			t.Errorf("with a registry of its own: %v", err)
		}
	}
}

func TestForStarts(t *testing.T) {
	wide := config.Layout{Epoch: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), Tick: time.Millisecond, Time: 40, Worker: 19, Sequence: 4}
	narrow := wide
	narrow.Worker = 18
	tests := map[string]struct {
		edit           func(*config.Config)
		uid, snowflake bool
	}{
		"as it comes": {func(*config.Config) {}, true, false},
		"uid off":     {func(c *config.Config) { c.UID.Enable = config.EnableFalse }, false, false},
		"wide": {func(c *config.Config) {
			c.Snowflake.Layout, c.Snowflake.Layouts = "wide", config.Layouts{"wide": wide}
		}, true, true},
		"one is narrow": {func(c *config.Config) {
			c.Snowflake.Layout, c.Snowflake.Layouts = "wide", config.Layouts{"wide": wide, "narrow": narrow}
		}, true, false},
		"snowflake off": {func(c *config.Config) { c.Snowflake.Enable = false }, true, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			cfg := config.Default()
			cfg.Workers = "mysql://h/db?layout=worker_node"
			tt.edit(&cfg)
			got := forStarts(cfg)
			if got.ServesUID() != tt.uid || got.Snowflake.Enable != tt.snowflake {
				t.Errorf("uid %v, snowflake %v, want %v, %v", got.ServesUID(), got.Snowflake.Enable, tt.uid, tt.snowflake)
			}
		})
	}
}
