package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"net/url"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	leafv1 "github.com/leaf-id/leaf/api/leaf/v1"
	"github.com/leaf-id/leaf/api/leaf/v1/leafv1connect"
	"github.com/leaf-id/leaf/internal/cli"
	"github.com/leaf-id/leaf/internal/issuer"
	"github.com/leaf-id/leaf/internal/load"
)

const rootLong = `Put load on a running server, measure how long it takes to answer, and compare all IDs
with each other. The IDs are used up.

With --rate, requests are due at that rate, whether the server keeps up or not, and the
latency of each counts from when it was due: a server that stalls for a second shows as
a second to all requests of that second. This is what users see, and what to compare
servers by. Without --rate, every client sends its next request when it has the last
answer. This finds the highest throughput; its latencies hide stalls.

A duplicate makes the command fail, and so does a run in which no request succeeded.
Numbers are compared within a tag, or within a layout, UUIDs with all others. What is
kept for this takes about 1 MB for 100 million consecutive IDs of a tag, and 60 bytes for
each millisecond and server of snowflake IDs. At the bound (--memory) further IDs are
compared with those kept so far, and the result says so.

The tool shares the machine's processors with a server on the same machine. Ctrl-C ends
the run early and prints what was measured.`

const rootExample = `  leaf-bench order                                  how much the server can do
  leaf-bench order --rate 5000 -d 30s               how long 5000 requests a second take
  leaf-bench order user -n 100                      two tags, a hundred IDs a request
  leaf-bench --scheme snowflake --protocol grpc     IDs made of the time, over gRPC
  leaf-bench order --protocol resp --pipeline 16    over the Redis protocol
  leaf-bench order --rate 5000 -o json > run.json   all figures`

type options struct {
	cli.Client
	protocol string
	scheme   string
	tags     string
	n        int64
	clients  int64
	conns    int64
	pipeline int64
	rate     int64
	memory   int64 // MiB
	duration time.Duration
	warmUp   time.Duration
	json     bool
}

func newRoot() *cobra.Command {
	var f options
	cmd := &cobra.Command{
		Use:     "leaf-bench TAG... | leaf-bench [LAYOUT...] --scheme snowflake",
		Short:   "Put load on a server and check every ID",
		Long:    rootLong,
		Example: rootExample,
		Args:    cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			plan, err := f.plan(cmd, args)
			if err != nil {
				return err
			}
			return plan.run(cmd)
		},
	}
	f.AddFlags(cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.protocol, "protocol", protoV1, "what to speak: v1, http (Java Leaf's routes), grpc or resp (Redis)")
	flags.StringVar(&f.scheme, "scheme", issuer.Segment, "what makes the IDs: "+strings.Join(issuer.SchemeNames(), ", "))
	cli.TextVar(cmd, &f.tags, "tags", "the tags, as `A,B`, instead of arguments")
	cli.WholeVar(cmd, &f.n, "count", "n", 1, "how many IDs to ask for in a request")
	cli.WholeVar(cmd, &f.clients, "clients", "c", 50, "how many clients send requests at the same time")
	cli.WholeVar(cmd, &f.rate, "rate", "", 0, "requests due a second, of all clients together (default: as many as there can be)")
	cli.DurationVar(cmd, &f.duration, "duration", "d", 10*time.Second, 1, "how long to measure")
	cli.DurationVar(cmd, &f.warmUp, "warm-up", "", 2*time.Second, 0, "how long to load the server before that")
	cli.WholeVar(cmd, &f.conns, "connections", "", 0, "how many connections the clients share, with grpc (default: one each)")
	cli.WholeVar(cmd, &f.pipeline, "pipeline", "", 1, "how many requests a client sends at once, with resp")
	cli.WholeVar(cmd, &f.memory, "memory", "", 1024, "bound on what is kept to find duplicates, in `MiB`")
	cli.OutputVar(cmd, &f.json)
	return cmd
}

const (
	protoHTTP = "http"
	protoV1   = "v1"
	protoGRPC = "grpc"
	protoRESP = "resp"
)

// A plan is a run of load that the command line asks for.
type plan struct {
	*options
	addr   string // host:port
	https  bool
	target load.Target
	keys   []string
}

func (f *options) plan(cmd *cobra.Command, args []string) (*plan, error) {
	for _, l := range []struct {
		name             string
		value, from, max int64
	}{
		{"-n", f.n, 1, 1_000_000},
		{"--clients", f.clients, 1, 100_000},
		{"--rate", f.rate, 0, 10_000_000},
		{"--connections", f.conns, 0, f.clients},
		{"--pipeline", f.pipeline, 1, 10_000},
		{"--memory", f.memory, 1, math.MaxInt64 >> 20},
	} {
		if l.value < l.from || l.value > l.max {
			return nil, cli.Usage(cmd, fmt.Errorf("%s %d: it must be from %d to %d", l.name, l.value, l.from, l.max))
		}
	}
	protocols := []string{protoHTTP, protoV1, protoGRPC, protoRESP}
	schemes := issuer.SchemeNames()
	switch {
	case !slices.Contains(protocols, f.protocol):
		return nil, cli.Usage(cmd, fmt.Errorf("--protocol %q: there are %s", f.protocol, strings.Join(protocols, ", ")))
	case !slices.Contains(schemes, f.scheme):
		return nil, cli.Usage(cmd, fmt.Errorf("--scheme %q: there are %s", f.scheme, strings.Join(schemes, ", ")))
	case f.pipeline > 1 && f.protocol != protoRESP:
		return nil, cli.Usage(cmd, errors.New("--pipeline is for --protocol resp alone"))
	case f.conns > 0 && f.protocol != protoGRPC:
		return nil, cli.Usage(cmd, errors.New("--connections is for --protocol grpc alone"))
	}
	p := &plan{options: f}
	err := p.readKeys(cmd, args)
	if err == nil {
		err = p.locate(cmd)
	}
	if err == nil {
		p.target, err = p.newTarget()
	}
	return p, err
}

func (f *options) tagged() bool { return issuer.SchemeOf(f.scheme).Tags }

func (p *plan) readKeys(cmd *cobra.Command, args []string) error {
	p.keys = args
	if p.tags != "" {
		p.keys = append(p.keys, strings.Split(p.tags, ",")...)
	}
	if !p.tagged() && len(p.keys) == 0 {
		p.keys = []string{"bench"} // a label
	}
	if len(p.keys) == 0 {
		return cli.Usage(cmd, errors.New("TAG is missing"))
	}
	for i, key := range p.keys {
		if slices.Contains(p.keys[:i], key) {
			return cli.Usage(cmd, fmt.Errorf("%q is named twice", key))
		}
		if err := cli.CheckTag(cmd, key); err != nil {
			return err
		}
	}
	return nil
}

// respPort is where a server speaks the Redis protocol unless it is configured otherwise.
const respPort = "6380"

// locate finds the address of the server. For the Redis protocol the URL of the server only names
// the host.
func (p *plan) locate(cmd *cobra.Command) error {
	if host, ok := strings.CutPrefix(p.Server, "redis://"); ok || strings.HasPrefix(p.Server, "rediss://") {
		p.https = !ok
		p.addr = strings.TrimSuffix(strings.TrimPrefix(host, "rediss://"), "/")
		if p.protocol != protoRESP {
			return cli.Usage(cmd, fmt.Errorf("--server %s is for --protocol resp", p.Server))
		}
		if _, _, err := net.SplitHostPort(p.addr); err != nil {
			return cli.Usage(cmd, fmt.Errorf("--server %q is not of the form redis://HOST:PORT", p.Server))
		}
		return nil
	}
	text, err := p.Address()
	if err != nil {
		return err
	}
	u, err := url.Parse(text)
	if err != nil {
		return err
	}
	p.https = u.Scheme == "https"
	port := cmp.Or(u.Port(), map[bool]string{false: "80", true: "443"}[p.https])
	if p.protocol == protoRESP {
		port = respPort
	} else if u.Path != "" {
		return cli.Hinted(fmt.Errorf("the server's URL %q has a path", text), "this command speaks to the server itself, not to a proxy that rewrites paths")
	}
	p.addr = net.JoinHostPort(u.Hostname(), port)
	return nil
}

func (p *plan) newTarget() (load.Target, error) {
	token, err := p.Token()
	if err != nil {
		return nil, err
	}
	server := load.Server{Addr: p.addr, Token: token, Timeout: p.Timeout}
	if p.https {
		if server.TLS, err = p.TLS(); err != nil {
			return nil, err
		}
	}
	switch p.protocol {
	case protoV1:
		return load.V1(server, p.scheme), nil
	case protoGRPC:
		return load.NewGRPC(server, p.scheme, int(cmp.Or(p.conns, p.clients))), nil
	case protoRESP:
		return &load.RESP{Server: server, Scheme: p.scheme}, nil
	}
	return load.Routes(server, p.scheme), nil
}

func (p *plan) run(cmd *cobra.Command) error {
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process
	if grpc, ok := p.target.(*load.GRPC); ok {
		defer grpc.Close()
	}
	bar := newProgressBar(cmd.ErrOrStderr(), p.warmUp, p.duration, p.json)
	res, err := load.Run(ctx, load.Options{
		Target: p.target, Keys: p.spaces(ctx), Count: int(p.n), Clients: int(p.clients), Pipeline: int(p.pipeline),
		Rate: float64(p.rate), WarmUp: p.warmUp, Duration: p.duration, Memory: p.memory << 20, Progress: bar.show,
	})
	bar.clear()
	if err != nil {
		return p.explainFirst(err)
	}
	if err := cli.Print(cmd.OutOrStdout(), p.json, p.toJSON(res), "%s", p.toText(res)); err != nil {
		return fmt.Errorf("print the result: %w", err)
	}
	return outcome(res)
}

// spaces decides which keys share an ID space: those of a time-based scheme do, except names of
// layouts. The server knows the names, and may keep them to itself.
func (p *plan) spaces(ctx context.Context) []load.Key {
	layouts := map[string]bool{}
	if len(p.keys) > 1 && !p.tagged() && !issuer.SchemeOf(p.scheme).Text && p.protocol != protoRESP {
		if admin, err := cli.Open(&p.Client, leafv1connect.NewAdminServiceClient); err == nil {
			if res, err := cli.Call(ctx, &p.Client, admin.Status, &leafv1.StatusRequest{}); err == nil {
				for _, layout := range res.GetLease().GetLayouts() {
					layouts[layout.GetName()] = true
				}
			}
		}
	}
	keys := make([]load.Key, len(p.keys))
	for i, key := range p.keys {
		keys[i] = load.Key{Name: key, Space: p.scheme}
		if p.tagged() || layouts[key] {
			keys[i].Space = cli.Printable(key)
		}
	}
	return keys
}

// explainFirst adds the meaning for the user to a failed first request.
func (p *plan) explainFirst(err error) error {
	said, ok := errors.AsType[*load.Failure](err)
	switch {
	case errors.Is(err, context.Canceled):
		return errors.New("nothing was measured: the first request was interrupted")
	case !ok && p.protocol == protoRESP:
		return cli.Hinted(fmt.Errorf("no Redis protocol at %s: %w", p.addr, err), "start a server with 'leaf serve', or name the address with --server redis://HOST:PORT")
	case !ok, said.Kind == "gRPC Unavailable" && strings.Contains(said.Text, "connection error"):
		return cli.Hinted(fmt.Errorf("no server answers at %s: %w", p.addr, err), "start one with 'leaf serve', or name it with --server URL")
	case p.tagged() && strings.Contains(said.Text, "unknown tag"):
		return cli.Hinted(err, "create it with 'leaf tag create', or see 'leaf tag list' for its right name")
	}
	return err
}

func outcome(res *load.Result) error {
	switch {
	case res.Check.Duplicates > 0:
		return fmt.Errorf("%s of %s IDs had been received before, such as %s", thousands(res.Check.Duplicates), thousands(res.Check.Checked), strings.Join(res.Check.Examples, ", "))
	case res.Succeeded == 0 && res.Interrupted:
		return errors.New("nothing was measured: the run was interrupted too early")
	case res.Succeeded == 0:
		return errors.New("no request succeeded")
	}
	return nil
}
