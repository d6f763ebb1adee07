package main

import (
	"bytes"
	"context"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/leaf-id/leaf/internal/cli"
	"github.com/leaf-id/leaf/internal/config"
	"github.com/leaf-id/leaf/internal/drivers"
	"github.com/leaf-id/leaf/internal/server"
	"github.com/leaf-id/leaf/internal/testserver"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"leaf-bench": main})
}

// benchRun runs one command line.
func benchRun(ctx context.Context, args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = cli.Run(ctx, newRoot(), args, &out, &errs)
	return code, out.String(), errs.String()
}

// TestScripts runs the scripts in testdata/script beside a server: $LEAF_SERVER is its URL, $RESP
// its address of the Redis protocol.
func TestScripts(t *testing.T) {
	s := startServer(t)
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("LEAF_SERVER", "http://"+s.Addr("listen").String())
			env.Setenv("RESP", s.Addr("resp").String())
			env.Setenv("GORACE", "atexit_sleep_ms=0") // the race detector's second at each exit
			return nil
		},
	})
}

func startServer(t *testing.T) *server.Server {
	t.Helper()
	cfg := config.Default()
	cfg.Listen, cfg.RESP, cfg.Data, cfg.IDSpace = "127.0.0.1:0", "127.0.0.1:0", t.TempDir(), t.TempDir()
	store, err := drivers.Open("sqlite:"+t.TempDir()+"/leaf.db", nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := server.New(t.Context(), server.Options{Config: cfg, Store: store})
	if err != nil {
		t.Fatal(err)
	}
	testserver.Background(t, s.Run)
	return s
}
