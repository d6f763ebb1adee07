// Package hint maps errors to remedies. Library packages report a problem; this package names the
// commands and flags of leaf against it.
package hint

import (
	"cmp"
	"context"
	"errors"
	"log/slog"

	"github.com/leaf-id/leaf/internal/health"
	"github.com/leaf-id/leaf/segment"
	"github.com/leaf-id/leaf/worker"
)

// Problems with a URL in the wrong place, from internal/drivers.
var (
	ErrWorkersOnly = errors.New("for worker IDs only")
	ErrTagsOnly    = errors.New("for counters only, not for worker IDs")
	ErrServersOwn  = errors.New("its record is in the data directory of a server")
)

// Problems with a member of a cluster, from internal/cluster.
var (
	ErrNoMember      = errors.New("there is no member of a cluster")
	ErrHasMember     = errors.New("there is a member of a cluster already")
	ErrNotAdded      = errors.New("this server was not added to the cluster")
	ErrEmptied       = errors.New("this member has lost its log, and others could have relied on that")
	ErrRolledBack    = errors.New("a member has an older copy of its log, and others could have relied on the rest")
	ErrRunsElsewhere = errors.New("this member runs already")
	ErrRemoved       = errors.New("this member was removed from the cluster")
	ErrOtherCluster  = errors.New("it is a member of another cluster")
	ErrMemberExists  = errors.New("the cluster has a member with this address")
	ErrUnknownMember = errors.New("the cluster has no such member")
	ErrQuorum        = errors.New("too few members of the cluster answer, or would then")
	ErrDiskFull      = errors.New("the disk of this server is full, so it has left the cluster")
	ErrMemberEnded   = errors.New("this server has left the cluster")
	ErrElection      = errors.New("the cluster keeps electing leaders, so this change may have been made, or not")
	ErrAlone         = errors.New("worker IDs need a second server, or your word that there is only this one")
	ErrFileExists    = errors.New("the file of a snapshot exists already")
	ErrQuotaShort    = errors.New("the data of the cluster's store fill three quarters of the quota")
	ErrPeerTLS       = errors.New("peers on other machines need certificates")
)

// Problems with the configuration of a server, from internal/server.
var (
	ErrDataDir   = errors.New("the data directory cannot be used")
	ErrNoWorkers = errors.New("no registry of worker IDs is configured")
	ErrGone      = errors.New("the embedded database is gone")
	ErrTokens    = errors.New("tokens file")
)

// advice is the table: the first error that matches counts.
var advice = []struct {
	err  error
	text string
}{
	{segment.ErrNeedsResize, "'leaf init --store URL' creates a set of ticket servers; with --resize it takes servers in or out, " +
		"with --lost HOST also one whose data is gone for good"},
	{segment.ErrNotCreated, "create it with 'leaf init --store URL', or correct the URL"},
	{segment.ErrDamaged, "set it with 'leaf tag set TAG --max-id N --step N --force', N above every ID in use"},
	{worker.ErrNoneFree, "'leaf worker list' shows who holds the worker IDs"},
	{worker.ErrClaimDelay, "add claim_delay=DURATION to the URL of --workers, of all servers: docs/snowflake-mode.md"},
	{worker.ErrFarAhead, "set this machine's clock if it is wrong; else free the worker ID with 'leaf worker free ID'"},
	{segment.ErrForeignStore, "correct the URL, or bring the known store back; if it was replaced on purpose, and every counter is above the IDs in use, " +
		"accept the new one once with store_id=IDENTITY in the URL: docs/stores.md"},
	{segment.ErrStoreDamaged, "after restoring a backup raise every counter with 'leaf tag raise --all --by N'"},
	{worker.ErrUsedUp, "give the layout more worker bits (uid.worker_bits, with fewer time_bits or seq_bits), or lease worker IDs " +
		"(--workers without layout=worker_node); for either stop all servers first: docs/uid-mode.md"},
	{worker.ErrNotCreated, "create it with 'leaf init --workers URL', or correct the URL"},
	{ErrWorkersOnly, "give it with --workers, and a store with --store"},
	{ErrTagsOnly, "give it with --store, and a registry of worker IDs with --workers"},
	{ErrServersOwn, "ask that server: 'leaf worker list --server URL'"},
	{ErrTokens, "'leaf token new' prints an entry of the file; docs/security.md describes it"},
	{ErrDataDir, "make it writable for this user, and a folder; another directory (--data DIR) starts counters again"},
	{ErrNoMember, "'leaf cluster init' creates a cluster; to join one, 'leaf cluster add ADDRESS' at a member, then start this server with " +
		"--cluster PEERS --cluster-address ADDRESS"},
	{ErrHasMember, "start it with 'leaf serve --cluster PEERS'; if no ID of it is in use, remove that directory"},
	{ErrNotAdded, "add it with 'leaf cluster add ADDRESS --cluster PEERS'"},
	{ErrEmptied, "remove the member ('leaf cluster remove ID --cluster PEERS'), remove the directory of the cluster in the data directory of this server, " +
		"add it again ('leaf cluster add ADDRESS --cluster PEERS'), and start it: docs/cluster.md"},
	{ErrRolledBack, "stop the server of that member, start the others, remove the member ('leaf cluster remove ID --cluster PEERS'), remove the directory " +
		"of the cluster in the data directory of its server, add it again ('leaf cluster add ADDRESS --cluster PEERS'), and start it: docs/cluster.md"},
	{ErrRunsElsewhere, "a copied data directory makes no new server: on the one of the two machines that should not have it, " +
		"remove the directory of the cluster in the data directory, and add that machine with 'leaf cluster add ADDRESS': docs/cluster.md"},
	{ErrRemoved, "to bring this server back, remove the directory of the cluster in its data directory, " +
		"add it ('leaf cluster add ADDRESS --cluster PEERS'), and start it: docs/cluster.md"},
	{ErrOtherCluster, "correct the list of peers (--cluster), or the data directory (--data)"},
	{ErrMemberExists, "'leaf cluster status' shows the members; to replace one, remove it first ('leaf cluster remove ID')"},
	{ErrUnknownMember, "'leaf cluster status' shows the members"},
	{ErrQuorum, "start the other members first, or remove those that are gone for good one by one, each while most of the rest run: docs/cluster.md"},
	{ErrDiskFull, "make room on the disk of the data directory: this server then ends by itself, and its supervisor starts it again: docs/cluster.md"},
	{ErrMemberEnded, "the log of the server says why; start it again: docs/cluster.md"},
	{ErrElection, "'leaf cluster status' shows the members: repeat the command if it still shows the old ones"},
	{ErrAlone, "add a server ('leaf cluster add ADDRESS'), or start this one with --workers cluster: if no other machine has a cluster of its own for these IDs"},
	{ErrFileExists, "name another file, or remove this one first: a snapshot replaces no backup"},
	{ErrQuotaShort, "raise cluster_quota on all servers, and restart one after the other: at the quota the cluster refuses writes"},
	{ErrPeerTLS, "'leaf cluster certs HOST…' makes them; name them with --cluster-ca, --cluster-cert and --cluster-key"},
	{ErrGone, "put the file back, or restore a backup as docs/backup.md says; if no ID of it is in use, remove the whole data directory"},
	{ErrNoWorkers, "name where worker IDs come from with --workers URL, which may be the store's if this is the only machine or all machines have that registry"},
}

// Of returns the remedy for err; "" if the text of err suffices.
func Of(err error) string {
	for _, a := range advice {
		if errors.Is(err, a.err) {
			return a.text
		}
	}
	return ""
}

// conditions are what to do about the conditions of a server, by their names.
var conditions = map[string]string{
	health.StoreSilent: "start the store, or correct its URL ('leaf config check' reads the configuration); IDs are served as soon as it answers",
	health.StoreUnfit:  "mend the store: the log of the server says how",
	health.StoreFailing: "bring the store back before the IDs in memory are used up; do not restart this server meanwhile: " +
		"it would lose them ('leaf status' shows how long they last)",
	health.TagFailing: "'leaf tag list' shows the tag; 'leaf tag set' changes it",
	health.NoWorkerID: "'leaf worker list' shows who holds the worker IDs, if their registry answers; bring it back if it does not",
	health.RegistryFailing: "bring the registry of worker IDs back before the lease ends; do not restart this server meanwhile: " +
		"it would have to claim a worker ID",
	health.StateFile:    "let the server write to its data directory: is the disk full, or read-only?",
	health.ClockOff:     "set the clock of this machine, and have a time service keep it so",
	health.ClockStepped: "have a time service keep the clock; a restart has IDs follow it, once it is right",
	health.LayoutEnding: "plan for another layout: docs/snowflake-mode.md",
	health.WorkerIDsLow: "stop every server, then give the layout more worker bits or lease worker IDs: docs/uid-mode.md",
}

// ForCondition returns what to do about a condition of a server; "" if nothing has to be done.
func ForCondition(c health.Condition) string { return cmp.Or(Of(c.Err), conditions[c.Name]) }

// Handler returns a [slog.Handler] that adds the attribute "hint" to each record with an
// error about which something can be done.
func Handler(next slog.Handler) slog.Handler { return handler{next} }

type handler struct{ slog.Handler }

func (h handler) Handle(ctx context.Context, r slog.Record) error {
	var text string
	r.Attrs(func(a slog.Attr) bool {
		if err, ok := a.Value.Any().(error); ok {
			text = Of(err)
		}
		return text == ""
	})
	if text != "" {
		r = r.Clone()
		r.AddAttrs(slog.String("hint", text))
	}
	return h.Handler.Handle(ctx, r)
}

func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return handler{h.Handler.WithAttrs(attrs)}
}
func (h handler) WithGroup(name string) slog.Handler { return handler{h.Handler.WithGroup(name)} }
