package httpapi_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/leaf-id/leaf/driver/memory"
	"github.com/leaf-id/leaf/internal/issuer"
	"github.com/leaf-id/leaf/internal/server/frontend"
	"github.com/leaf-id/leaf/internal/server/httpapi"
	"github.com/leaf-id/leaf/segment"
	"github.com/leaf-id/leaf/snowflake"
	"github.com/leaf-id/leaf/worker"
)

// A discard is a ResponseWriter that costs nothing itself.
type discard struct{ header http.Header }

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) WriteHeader(int)             {}
func (d *discard) Write(b []byte) (int, error) { return len(b), nil }

func BenchmarkNext(b *testing.B) { benchmark(b, "/api/segment/get/leaf-segment-test") }

// The API for new clients must cost no more than Java Leaf's route.
func BenchmarkV1Next(b *testing.B) { benchmark(b, "/v1/ids/segment/leaf-segment-test") }

func BenchmarkV1Form(b *testing.B) { benchmark(b, "/v1/ids/segment/leaf-form-test?form=1") }

func BenchmarkV1Batch100(b *testing.B) { benchmark(b, "/v1/ids/segment/leaf-segment-test?n=100") }

func BenchmarkV1Form100(b *testing.B) {
	benchmark(b, "/v1/ids/segment/leaf-form-test?n=100&form=1")
}

func BenchmarkBatch100(b *testing.B) { benchmark(b, "/api/segment/get/leaf-segment-test?n=100") }

func benchmark(b *testing.B, target string) {
	store := memory.New().Store()
	for name, options := range map[string]segment.TagOptions{
		"leaf-segment-test": nil,
		"leaf-form-test":    {segment.OptionForm: "INV-{n:12}{check:luhn}"},
	} {
		if err := store.Create(b.Context(), segment.Tag{Name: name, MaxID: 1, Step: 1 << 30, Options: options}); err != nil {
			b.Fatal(err)
		}
	}
	set := segment.NewSet(store, nil)
	defer set.Close(b.Context())
	run(b, issuer.New(map[string]issuer.Source{issuer.Segment: issuer.Numbers(set)}, nil), target)
}

func run(b *testing.B, ids *issuer.Issuer, target string) {
	h := httpapi.New(http.NewServeMux(), &frontend.Options{IDs: ids})
	req, err := http.NewRequestWithContext(b.Context(), http.MethodGet, target, nil)
	if err != nil {
		b.Fatal(err)
	}
	w := &discard{make(http.Header)}
	b.ReportAllocs()
	for b.Loop() {
		h.ServeHTTP(w, req)
	}
}

func BenchmarkSnowflakeNext(b *testing.B) {
	layout, _ := snowflake.Preset("leaf")
	g, err := snowflake.New(layout, nil)
	if err != nil {
		b.Fatal(err)
	}
	g.Begin(worker.Unfenced(1, time.Time{}, time.Time{}))
	times := issuer.NewTimes(issuer.Snowflake, issuer.Layouts{{Name: "leaf", Layout: layout}},
		func(string) *snowflake.Generator { return g }, func(err error) error { return err })
	run(b, issuer.New(map[string]issuer.Source{issuer.Snowflake: issuer.Numbers(times)}, nil), "/api/snowflake/get/order")
}
