package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/leaf-id/leaf/internal/cli"
	"github.com/leaf-id/leaf/internal/cluster"
	"github.com/leaf-id/leaf/internal/drivers"
)

func newClusterSnapshot() *cobra.Command {
	var f clusterFlags
	cmd := &cobra.Command{
		Use:   "snapshot FILE",
		Short: "Write a backup of the cluster's store",
		Long: `Write the counters and the worker IDs to a new FILE, as most members have agreed on them.
The servers go on meanwhile.`,
		Example: `  leaf cluster snapshot leaf-2026-06-01.jsonl`,
		Args:    args("FILE"),
		RunE: f.asks(func(ctx context.Context, cmd *cobra.Command, admin *cluster.Admin, args []string) error {
			keys, err := admin.Snapshot(ctx, args[0])
			if err != nil {
				return err
			}
			return cli.Print(cmd.OutOrStdout(), f.json, map[string]any{"file": args[0], "keys": keys}, "wrote %d keys to %s\n", keys, args[0])
		}),
	}
	f.addPeers(cmd)
	return cmd
}

// restoreTimeout bounds a restore: each counter and each worker ID is one write to the disk.
const restoreTimeout = 30 * time.Minute

// restoreJump is the standard raise of a counter, of which a tag has room for nine million.
const restoreJump = 1_000_000_000_000

func newClusterRestore() *cobra.Command {
	var f clusterFlags
	var jump int64
	cmd := &cobra.Command{
		Use:   "restore FILE ADDRESS",
		Short: "Create a cluster of one server from a backup",
		Long: `Create a cluster with one member, in the data directory of this machine, from a file of
'leaf cluster snapshot'. It is a new cluster, which knows nothing of the old one: stop every
server of the old one first, for good, and empty the directory DATA/cluster of each.

Every counter is raised by --jump: more than any can have moved since the backup. Servers
take IDs in advance, so that is more than was issued. Give less only where IDs must stay
small, as in a column of 32 bits or under a mask; docs/backup.md says how large it must be.

No worker ID has a holder, and none of the backup is used again before the longest lease
has passed. The server waits a minute before its first start. Pools that were created since
the backup are missing: create one again only after the longest TTL that it had, and 5
seconds.`,
		Example: `  leaf cluster restore leaf-2026-06-01.jsonl h1:2380 --data /var/lib/leaf`,
		Args:    args("FILE", "ADDRESS"),
		RunE: func(cmd *cobra.Command, args []string) error {
			text, err := os.ReadFile(args[0])
			if err != nil {
				return err
			}
			pairs, err := cluster.ParseSnapshot(text)
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			return f.create(cmd, "restored", args[1], restoreTimeout, func(ctx context.Context, b *drivers.Backend) (time.Duration, error) {
				return drivers.RestoreCluster(ctx, b, pairs, jump)
			})
		},
	}
	f.addFlags(cmd)
	cli.WholeVar(cmd, &jump, "jump", "", restoreJump, "how far to raise every counter")
	return cmd
}

func newClusterCerts() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "certs HOST…",
		Short: "Make certificates for the servers of a cluster",
		Long: `Make a certificate for each HOST, a name or an IP address as the peers call it, and an
authority that signs them, in files of a folder. Give each machine ca.pem, its HOST.pem
and its HOST-key.pem, and keep ca-key.pem off the servers: who has it can make a member.
Run again with other hosts, it signs with the same authority. The certificates are valid
for 5 years; servers take up replaced files of their own certificate without a restart.`,
		Example: `  leaf cluster certs h1 h2 h3 --dir certs
  leaf serve --cluster h1:2380,h2:2380,h3:2380 --cluster-ca certs/ca.pem \
    --cluster-cert certs/h1.pem --cluster-key certs/h1-key.pem`,
		Args: someArgs("HOST"),
		RunE: func(cmd *cobra.Command, hosts []string) error {
			if err := cluster.Certify(dir, hosts); err != nil {
				return err
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "wrote certificates for %s to %s, signed by %s\n", strings.Join(hosts, ", "), dir, filepath.Join(dir, cluster.CAFile))
			return err
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "certs", "`DIR` of the certificates")
	return cmd
}
