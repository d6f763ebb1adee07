package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
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
	// leaseGrace is how long before the end of its lease a command receives SIGTERM, and leaseAhead how
	// long before it SIGKILL: more than generators run ahead of the clock. Short leases have less.
	leaseGrace = 5 * time.Second
	leaseAhead = 2 * time.Second

	leaseRetry  = time.Second           // pause after a renewal that failed
	leaseRekill = 10 * time.Millisecond // pause before SIGKILL for processes that were just made
)

var errNoAnswer = errors.New("the server did not answer")

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
and SIGKILL 2 seconds before (a lease of less than 20 seconds: a quarter and a tenth of it).
SIGTERM, SIGINT, SIGHUP and SIGQUIT go on to the command. On Linux all of this holds for the
processes that it starts, too: the lease is released once they have ended. Only on Linux
does SIGKILL of leaf end the command, without the processes that it started. So let a shell
exec the program.

This is a convenience: a paused command may make IDs after its lease has ended. A program
that leases by itself and compares the time inside each ID with the limit is safe.`,
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
	ends  time.Time     // of the lease, by this machine's monotonic clock
	grace time.Duration // how long before that the command receives SIGTERM
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
	lasts := lease.GetLimit().AsTime().Sub(lease.GetNow().AsTime())
	l.ends, l.grace = asked.Add(lasts), min(leaseGrace, lasts/4)
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
	signals := make(chan os.Signal, 8)
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT} {
		if !signal.Ignored(s) { // by nohup, or by a shell in the background
			signal.Notify(signals, s)
		}
	}
	ended, err := l.start(command)
	if err == nil {
		err = l.keep(signals, ended, func(s os.Signal) { signalCommand(command.Process, s) })
	}
	signal.Stop(signals) // a signal ends a release that hangs
	l.release()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return &cli.Error{Err: fmt.Errorf("the command failed: %w", err), Code: exitCode(exit)}
	}
	return err
}

// exitCode returns the code that a shell reports for the command.
func exitCode(exit *exec.ExitError) int {
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return exit.ExitCode()
}

// start starts the command. Its error arrives once its processes have ended. The goroutine keeps its
// thread: Linux kills a command whose parent thread ends.
func (l *lessee) start(command *exec.Cmd) (<-chan error, error) {
	started, ended := make(chan error), make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		prepare(command)
		err := command.Start()
		started <- err
		if err != nil {
			return
		}
		err = command.Wait()
		awaitOrphans(func() {
			cli.Say(l.cmd, "note", "the command has ended, but processes that it started run on; the lease is kept until they end")
		})
		ended <- err
	}()
	return ended, <-started
}

// A renewal is the answer to a question of the time asked.
type renewal struct {
	lease *leafv1.PoolLease
	asked time.Time
	err   error
}

// keep renews the lease and passes signals on until the command has ended. It ends the command if it
// cannot renew the lease: the timers do not wait for the server.
func (l *lessee) keep(signals <-chan os.Signal, ended <-chan error, send func(os.Signal)) error {
	renew, term, kill := time.NewTimer(0), time.NewTimer(0), time.NewTimer(0)
	schedule := func() {
		renew.Reset(time.Until(l.ends) / 3)
		term.Reset(time.Until(l.ends.Add(-l.grace)))
		kill.Reset(time.Until(l.ends.Add(-min(leaseAhead, l.grace*2/5))))
	}
	schedule()
	answers := make(chan renewal, 1)
	var lost, failed error
	for {
		select {
		case err := <-ended:
			if lost != nil {
				return fmt.Errorf("the command was stopped, because the lease of worker ID %d was not renewed: %w", l.lease.GetWorker(), lost)
			}
			return err
		case s := <-signals:
			if !l.sentByTerminal(s) {
				send(s)
			}
		case <-renew.C:
			go func() { answers <- l.renew() }()
		case a := <-answers:
			switch failed = a.err; {
			case lost != nil:
			case failed == nil:
				l.adopt(a.lease, a.asked)
				schedule()
			default:
				cli.Say(l.cmd, "warning", fmt.Sprintf("the lease is not renewed yet; it ends in %v: %v", time.Until(l.ends).Round(time.Second), failed))
				renew.Reset(leaseRetry)
			}
		case <-term.C:
			lost = cmp.Or(failed, errNoAnswer)
			renew.Stop()
			send(syscall.SIGTERM)
		case <-kill.C:
			send(os.Kill)
			kill.Reset(leaseRekill)
		}
	}
}

// sentByTerminal reports whether the command has received the signal, too.
func (l *lessee) sentByTerminal(s os.Signal) bool {
	return (s == os.Interrupt || s == syscall.SIGQUIT) && cli.IsTerminal(os.Stdin)
}

// renew asks for a later limit as long as an answer is of use.
func (l *lessee) renew() renewal {
	asked := time.Now()
	ctx, cancel := context.WithTimeout(l.cmd.Context(), min(l.Timeout, time.Until(l.ends.Add(-l.grace))))
	defer cancel()
	res, err := l.calls.RenewLease(ctx, &leafv1.RenewLeaseRequest{Lease: l.lease.GetLease(), Ttl: durationOrNil(l.ttl)})
	return renewal{res.GetLease(), asked, err}
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
