package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/leaf-id/leaf/internal/cli"
	"github.com/leaf-id/leaf/internal/cluster"
	"github.com/leaf-id/leaf/internal/config"
	"github.com/leaf-id/leaf/internal/drivers"
	"github.com/leaf-id/leaf/internal/server"
)

// clusterScheme is the URL of the store in the server's own cluster.
const clusterScheme = "cluster:"

func clusterConfig(cfg config.Config) cluster.Config {
	return cluster.Config{
		Dir: clusterDir(cfg.Data), Peers: cfg.Cluster, Address: cfg.ClusterAddress, Listen: cfg.ClusterListen, Quota: int64(cfg.ClusterQuota),
		TLS: cluster.TLS{CA: cfg.ClusterCA, Cert: cfg.ClusterCert, Key: cfg.ClusterKey},
	}
}

func clusterDir(data string) string { return filepath.Join(data, "cluster") }

// withCluster puts the member into the URLs of a configuration with a cluster.
func withCluster(cfg config.Config) config.Config {
	if len(cfg.Cluster) == 0 {
		return cfg
	}
	c := clusterConfig(cfg)
	for _, addr := range []string{cfg.Listen, cfg.GRPC, cfg.RESP} {
		if addr != config.Off && !cluster.IsLoopback(addr) && cfg.Workers == "" {
			c.NotAlone = true
		}
	}
	own := drivers.ClusterURL(c)
	if cfg.Store == "" || cfg.Store == clusterScheme {
		cfg.Store = own
	}
	if cfg.Workers == clusterScheme {
		cfg.Workers = own
	}
	if cfg.Workers == cfg.Store { // one member serves both
		cfg.Workers = ""
	}
	return cfg
}

// joinTimeout is how long a new server asks its peers.
const joinTimeout = 30 * time.Second

// joinCluster has a new server join its cluster, if the configuration names one.
func joinCluster(ctx context.Context, cfg config.Config, log *slog.Logger) error {
	c := clusterConfig(cfg)
	if len(cfg.Cluster) == 0 {
		switch _, err := os.Lstat(c.Dir); {
		case cfg.Store == clusterScheme || cfg.Workers == clusterScheme:
			return cli.Hinted(errors.New("the cluster's peers are not named"), "name them with --cluster PEERS")
		case err == nil && cfg.Store == "" && cfg.NeedsStore():
			return cli.Hinted(fmt.Errorf("the data directory has a member of a cluster in %s, and neither a cluster nor a store is named", c.Dir),
				"start it with --cluster PEERS; another data directory (--data DIR) starts counters again")
		}
		return nil
	}
	if c.Address == "" {
		c.Address = cluster.OwnAddress(ctx, c.Peers)
	}
	c.Logger = log
	limited, cancel := context.WithTimeout(ctx, joinTimeout)
	defer cancel()
	if err := cluster.Join(limited, c); err != nil {
		return err
	}
	return cluster.Await(ctx, c)
}

func newCluster() *cobra.Command {
	cmd := group(&cobra.Command{
		Use:   "cluster",
		Short: "Create, grow and show a cluster of servers without a database",
		Long: `Create, grow and show a cluster: servers that keep the counters and the worker IDs
themselves, each with a copy, by the engine of etcd. Three of them survive the loss of any one.

  on h1     leaf cluster init h1:2380
            leaf serve --cluster h1:2380,h2:2380,h3:2380
            leaf cluster add h2:2380 h3:2380
  on h2, h3 leaf serve --cluster h1:2380,h2:2380,h3:2380

Servers on several machines need certificates for each other: see 'leaf cluster certs'.`,
	})
	cmd.AddCommand(newClusterInit(), newClusterAdd(), newClusterRemove(), newClusterStatus(), newClusterSnapshot(), newClusterRestore(), newClusterCerts())
	return cmd
}

type clusterFlags struct {
	data    string
	peers   string
	tls     cluster.TLS
	timeout time.Duration
	json    bool
}

func (f *clusterFlags) addFlags(cmd *cobra.Command) {
	cli.TextVar(cmd, &f.data, "data", "data `DIR` of the server on this machine (default $LEAF_DATA, or ./leaf-data)")
	cli.TextVar(cmd, &f.tls.CA, "cluster-ca", "`FILE` of the authority that signs the peers' certificates (default $LEAF_CLUSTER_CA)")
	cli.TextVar(cmd, &f.tls.Cert, "cluster-cert", "`FILE` of this machine's certificate (default $LEAF_CLUSTER_CERT)")
	cli.TextVar(cmd, &f.tls.Key, "cluster-key", "`FILE` of that certificate's key (default $LEAF_CLUSTER_KEY)")
}

// addPeers defines the flags of commands that ask a member.
func (f *clusterFlags) addPeers(cmd *cobra.Command) {
	f.addFlags(cmd)
	cli.TextVar(cmd, &f.peers, "cluster", "`PEERS` to ask, HOST:PORT with commas (default $LEAF_CLUSTER, or the server on this machine)")
	cli.DurationVar(cmd, &f.timeout, "timeout", "", 20*time.Second, 1, "how long to wait for it")
	cli.OutputVar(cmd, &f.json)
}

func (f *clusterFlags) config() (c cluster.Config, err error) {
	c.Dir = clusterDir(cmp.Or(f.data, os.Getenv("LEAF_DATA"), "leaf-data"))
	c.TLS.CA = cmp.Or(f.tls.CA, os.Getenv("LEAF_CLUSTER_CA"))
	c.TLS.Cert = cmp.Or(f.tls.Cert, os.Getenv("LEAF_CLUSTER_CERT"))
	c.TLS.Key = cmp.Or(f.tls.Key, os.Getenv("LEAF_CLUSTER_KEY"))
	c.Peers = strings.FieldsFunc(cmp.Or(f.peers, os.Getenv("LEAF_CLUSTER")), func(r rune) bool { return r == ',' || r == ' ' })
	if len(c.Peers) > 0 {
		return c, nil
	}
	own, err := cluster.Address(c.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return c, cli.Hinted(errors.New("no member is named, and this machine has no member"), "name members with --cluster PEERS, or the data directory of one with --data DIR")
	}
	c.Peers = []string{own}
	return c, err
}

// asks returns a function for cobra that runs do with the members that the flags name.
func (f *clusterFlags) asks(do func(context.Context, *cobra.Command, *cluster.Admin, []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		c, err := f.config()
		if err != nil {
			return err
		}
		admin, err := cluster.NewAdmin(c)
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), f.timeout)
		defer cancel()
		return do(ctx, cmd, admin, args)
	}
}

func newClusterInit() *cobra.Command {
	var f clusterFlags
	cmd := &cobra.Command{
		Use:   "init ADDRESS",
		Short: "Create a cluster of one server",
		Long: `Create a cluster with one member, in the data directory of this machine, with the tag
leaf-segment-test in it. ADDRESS is HOST:PORT at which the others will reach this server,
on a port of its own. Run it once per cluster, on one machine; others join it by 'leaf
cluster add'.`,
		Example: `  leaf cluster init h1:2380 --data /var/lib/leaf
  leaf cluster init 127.0.0.1:2380`,
		Args: args("ADDRESS"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.create(cmd, "created", args[0], joinTimeout, fillCluster)
		},
	}
	f.addFlags(cmd)
	return cmd
}

// create creates a cluster of one member at an address. fill creates its store, and returns the wait
// before the member may start again.
func (f *clusterFlags) create(cmd *cobra.Command, verb, addr string, timeout time.Duration,
	fill func(context.Context, *drivers.Backend) (wait time.Duration, err error),
) error {
	f.peers = addr
	c, err := f.config()
	if err != nil {
		return err
	}
	c.Address = addr
	ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
	defer cancel()
	err = cluster.Create(c, func(dir string) (wait time.Duration, err error) {
		b, err := drivers.Open(drivers.ClusterURL(cluster.Config{Dir: dir}), nil)
		if err != nil {
			return 0, err
		}
		defer func() { err = errors.Join(err, b.Close()) }()
		return fill(ctx, b)
	})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s a cluster in %s: start its server with 'leaf serve --cluster %s'\n", verb, c.Dir, c.Address)
	return err
}

func fillCluster(ctx context.Context, b *drivers.Backend) (wait time.Duration, err error) {
	if err := b.Tags.Init(ctx, server.FirstTag); err != nil {
		return 0, err
	}
	return 0, b.Workers.Init(ctx)
}

func newClusterAdd() *cobra.Command {
	var f clusterFlags
	cmd := &cobra.Command{
		Use:   "add ADDRESS…",
		Short: "Let servers join the cluster",
		Long: `Let a server at each ADDRESS join the cluster, once, with an empty directory: start it
with 'leaf serve --cluster PEERS'. It copies the data first, and gets a vote when it has
caught up. Most members must run.`,
		Example: `  leaf cluster add h2:2380 h3:2380 --cluster h1:2380`,
		Args:    someArgs("ADDRESS"),
		RunE: f.asks(func(ctx context.Context, cmd *cobra.Command, admin *cluster.Admin, addresses []string) error {
			var added []cluster.MemberInfo
			for _, addr := range addresses {
				member, err := admin.Add(ctx, addr)
				if err != nil {
					return errors.Join(fmt.Errorf("add %s: %w", addr, err), f.printMembers(cmd, added))
				}
				added = append(added, member)
			}
			return f.printMembers(cmd, added)
		}),
	}
	f.addPeers(cmd)
	return cmd
}

func newClusterRemove() *cobra.Command {
	var f clusterFlags
	cmd := &cobra.Command{
		Use:   "remove ID|ADDRESS",
		Short: "Remove a server from the cluster for good",
		Long: `Remove a member from the cluster, by its ID or its address. It never comes back under
this ID: to bring the machine back, empty its directory DATA/cluster and add it again. A
removal that would leave too few running members is refused.`,
		Example: `  leaf cluster remove h3:2380
  leaf cluster remove 8211f1d0f64f3269 --cluster h1:2380,h2:2380`,
		Args: args("ID or ADDRESS"),
		RunE: f.asks(func(ctx context.Context, cmd *cobra.Command, admin *cluster.Admin, args []string) error {
			if err := admin.Remove(ctx, args[0]); err != nil {
				return err
			}
			status, err := admin.Status(ctx)
			if err != nil { // the answering member may be the removed one
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "removed %s\n", args[0])
				return err
			}
			return f.printMembers(cmd, status.Members)
		}),
	}
	f.addPeers(cmd)
	return cmd
}

func newClusterStatus() *cobra.Command {
	var f clusterFlags
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show the servers of the cluster",
		Long: `Show the members of the cluster as one of them knows them, and which of them answer. It
also works while too few of them run.`,
		Example: `  leaf cluster status
  leaf cluster status --cluster h1:2380,h2:2380 -o json`,
		Args: args(),
		RunE: f.asks(func(ctx context.Context, cmd *cobra.Command, admin *cluster.Admin, _ []string) error {
			status, err := admin.Status(ctx)
			if err != nil {
				return err
			}
			if f.json {
				return cli.PrintJSON(cmd.OutOrStdout(), status)
			}
			if status.Leader == "" {
				cli.Say(cmd, "note", "the cluster has no leader: most members must run")
			}
			return f.printMembers(cmd, status.Members)
		}),
	}
	f.addPeers(cmd)
	return cmd
}

const memberHeader = "MEMBER\tADDRESS\tROLE\tSTATE"

func (f *clusterFlags) printMembers(cmd *cobra.Command, members []cluster.MemberInfo) error {
	return printList(cmd.OutOrStdout(), members, f.json, memberHeader, func(m cluster.MemberInfo) []string {
		role := cli.Choose(m.Learner, "learner", cli.Choose(m.Leader, "leader", "follower"))
		state := cli.Choose(m.Started, cmp.Or(m.Error, "answers"), "added, not started yet")
		return []string{m.ID, m.Address, role, state}
	})
}
