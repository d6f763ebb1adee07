package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/timestamppb"

	leafv1 "github.com/leaf-id/leaf/api/leaf/v1"
	"github.com/leaf-id/leaf/api/leaf/v1/leafv1connect"
	"github.com/leaf-id/leaf/internal/cli"
)

const (
	// leaseGrace is how long before the end of its lease a command receives the request to stop.
	leaseGrace = 5 * time.Second

	// leaseAhead is more than generators run ahead of the clock.
	leaseAhead = 2 * time.Second

	leaseRetry = time.Second // pause after a renewal that failed
)

func newWorkerLease() *cobra.Command {
	var client cli.Client
	var ttl time.Duration
	var holder string
	cmd := &cobra.Command{
		Use:   "lease POOL -- COMMAND [ARGUMENT]...",
		Short: "Run a command that has a leased worker ID",
		Long: `Lease a worker ID from a pool, run a command with it, renew the lease while the command
runs, and release it afterwards. The command finds these variables:

  LEAF_WORKER_ID      the worker ID
  LEAF_LEASE_FLOOR    the command must not make IDs of a time before; Unix milliseconds
  LEAF_LEASE_LIMIT    nor from here on, unless the lease is renewed
  LEAF_LEASE_EPOCH    the epoch of the pool's layout; Unix milliseconds
  LEAF_LEASE_TICK_MS, LEAF_LEASE_WORKER_BITS, LEAF_LEASE_SEQUENCE_BITS

A lease that cannot be renewed ends the command: it gets SIGTERM 5 seconds before the limit
and SIGKILL at the limit. This is a convenience: a paused command may make IDs after its
lease has ended. A program that leases by itself and compares the time inside each ID with
the limit is safe.`,
		Example: `  leaf worker lease orders -- java -jar orders.jar
  leaf worker lease orders --ttl 1m -- sh -c 'exec server --worker $LEAF_WORKER_ID'`,
		Args: func(cmd *cobra.Command, given []string) error {
			if cmd.ArgsLenAtDash() != 1 || len(given) < 2 {
				return cli.Usage(cmd, errors.New("give a pool and, after --, a command"))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, given []string) error {
			l := &lessee{Client: &client, cmd: cmd, ttl: ttl}
			if err := l.claim(given[0], holder); err != nil {
				return err
			}
			return l.run(exec.Command(given[1], given[2:]...))
		},
	}
	client.AddFlags(cmd)
	host, _ := os.Hostname()
	cmd.Flags().DurationVar(&ttl, "ttl", 0, "how long the lease lasts without a renewal (default 5m, or the pool's longest)")
	cmd.Flags().StringVar(&holder, "holder", host, "the name of the program, for people")
	return cmd
}

type lessee struct {
	*cli.Client
	cmd   *cobra.Command
	calls leafv1connect.WorkerServiceClient
	ttl   time.Duration
	lease *leafv1.PoolLease
	ends  time.Time // of the lease, by this machine's monotonic clock
}

func (l *lessee) claim(pool, holder string) (err error) {
	if l.calls, err = cli.Open(l.Client, leafv1connect.NewWorkerServiceClient); err != nil {
		return err
	}
	asked := time.Now()
	res, err := cli.Call(l.cmd.Context(), l.Client, l.calls.ClaimLease, &leafv1.ClaimLeaseRequest{Pool: pool, Ttl: durationOrNil(l.ttl), Holder: holder})
	if err == nil {
		l.adopt(res.GetLease(), asked)
	}
	return err
}

// adopt takes up an answer to a question of the time asked.
func (l *lessee) adopt(lease *leafv1.PoolLease, asked time.Time) {
	l.lease = lease
	l.ends = asked.Add(lease.GetLimit().AsTime().Sub(lease.GetNow().AsTime()))
}

// run runs the command and renews its lease until it ends.
func (l *lessee) run(command *exec.Cmd) error {
	layout := l.lease.GetLayout()
	for name, value := range map[string]int64{
		"WORKER_ID": l.lease.GetWorker(), "LEASE_FLOOR": max(l.lease.GetFloor().AsTime().UnixMilli(), 0),
		"LEASE_LIMIT": l.lease.GetLimit().AsTime().UnixMilli(), "LEASE_EPOCH": layout.GetEpoch().AsTime().UnixMilli(),
		"LEASE_TICK_MS":     layout.GetTick().AsDuration().Milliseconds(),
		"LEASE_WORKER_BITS": int64(layout.GetWorkerBits()), "LEASE_SEQUENCE_BITS": int64(layout.GetSequenceBits()),
	} {
		command.Env = append(command.Environ(), "LEAF_"+name+"="+strconv.FormatInt(value, 10))
	}
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, l.cmd.OutOrStdout(), l.cmd.ErrOrStderr()
	if err := command.Start(); err != nil {
		l.release()
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	err := l.keep(command, ended)
	l.release()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() > 0 {
		return &cli.Error{Err: fmt.Errorf("the command failed: %w", err), Code: exit.ExitCode()}
	}
	return err
}

// keep renews the lease until the command has ended, and ends the command if it cannot.
func (l *lessee) keep(command *exec.Cmd, ended <-chan error) error {
	renew := time.NewTimer(time.Until(l.ends) / 3)
	stop := l.cmd.Context().Done()
	var lost error
	for {
		select {
		case err := <-ended:
			if lost != nil {
				return fmt.Errorf("the command was stopped, because the lease of worker ID %d was not renewed: %w", l.lease.GetWorker(), lost)
			}
			return err
		case <-stop:
			stop = nil
			_ = command.Process.Signal(syscall.SIGTERM)
		case <-renew.C:
			left := time.Until(l.ends)
			switch err := l.renew(); {
			case err == nil:
				renew.Reset(time.Until(l.ends) / 3)
				continue
			case left <= 0:
				lost = err
				_ = command.Process.Kill()
				renew.Stop()
				continue
			case left <= leaseGrace:
				lost = err
				_ = command.Process.Signal(syscall.SIGTERM)
			default:
				cli.Say(l.cmd, "warning", fmt.Sprintf("the lease is not renewed yet; it ends in %v: %v", left.Round(time.Second), err))
			}
			renew.Reset(min(leaseRetry, max(left, 0)))
		}
	}
}

func (l *lessee) renew() error {
	asked := time.Now()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(l.cmd.Context()), min(l.Timeout, max(time.Until(l.ends), 0)))
	defer cancel()
	res, err := l.calls.RenewLease(ctx, &leafv1.RenewLeaseRequest{Lease: l.lease.GetLease(), Ttl: durationOrNil(l.ttl)})
	if err == nil {
		l.adopt(res.GetLease(), asked)
	}
	return err
}

// release ends the lease above whatever time the command can have used; otherwise it runs out.
func (l *lessee) release() {
	now := l.lease.GetLimit().AsTime().Add(-time.Until(l.ends))
	used := time.Now()
	if now.After(used) {
		used = now
	}
	if used = used.Add(leaseAhead); !used.Before(l.lease.GetLimit().AsTime()) {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(l.cmd.Context()), l.Timeout)
	defer cancel()
	_, err := l.calls.ReleaseLease(ctx, &leafv1.ReleaseLeaseRequest{Lease: l.lease.GetLease(), Used: timestamppb.New(used)})
	if err != nil && connect.CodeOf(err) != connect.CodeFailedPrecondition {
		cli.Say(l.cmd, "warning", fmt.Sprintf("the lease was not released and ends by itself: %v", err))
	}
}
