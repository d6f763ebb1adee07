package drivers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/segment"
	"github.com/leaf-id/leaf/worker"
)

// A Registry is a registry of worker IDs whose connections are its own: Close ends
// them.
type Registry interface {
	worker.Registry
	io.Closer
}

// RegistryOptions are the optional settings of [OpenRegistry]; nil means all defaults.
type RegistryOptions struct {
	Logger *slog.Logger // default: nothing is logged

	// Lock opens and locks a file of the data directory. static: needs it.
	Lock func(name string) (*os.File, error)

	// Ahead is how far beyond the clock this server issues: static: holds a worker ID
	// of which it knows nothing back for as long.
	Ahead time.Duration

	// Port tells this server from others at its address in Java Leaf's tree where the
	// URL names none; 0: the URL must.
	Port int

	// Memory remembers over restarts which worker IDs of WORKER_NODE this machine was
	// dealt; nil: nothing does.
	Memory segment.Memory

	// Observe says that no worker ID is going to be claimed, so that the URL need not
	// say who would.
	Observe bool
}

// Terms say how the lease of a worker ID is to be kept: what the URL asks for, and
// what the kind of registry calls for. The fields mean those of [worker.Options].
type Terms struct {
	Reclaim    bool
	Settle     bool
	ClaimDelay time.Duration // 0: the default; negative: none
	MaxAhead   time.Duration // at most; 0: not bounded

	// Disposable says that each start of a process uses a worker ID up: there is nothing
	// for it to go on with, and so no [worker.State] to keep.
	Disposable bool
}

// A registrySource is what a worker URL names.
type registrySource struct {
	key      string // what identifies it, without the scheme
	assigned bool   // it says which worker ID to use
	terms    Terms

	open   func(o RegistryOptions) (Registry, error)
	init   func(ctx context.Context) error         // nil: nothing is to be created
	exists func(ctx context.Context) (bool, error) // nil: it always does
}

// A registryDriver is one way to keep worker IDs. parse gets the part of the URL that
// follows the scheme and its colon.
type registryDriver struct {
	scheme string
	form   string // of the URL, for people
	parse  func(rest string) (registrySource, error)
}

// registryTable is the table of drivers for worker IDs: a new one is a line here.
func registryTable() []registryDriver {
	return append([]registryDriver{
		{"sqlite", "sqlite:PATH", parseSQLiteRegistry},
		{"mysql", "mysql://user:password@host:3306/db", orNodes(parseMySQLRegistry)},
		{"zookeeper", "zookeeper://host:2181", parseZooKeeper},
		{"postgres", "postgres://user:password@host:5432/db", parsePostgresRegistry},
		{"etcd", "etcd://host:2379/prefix", parseEtcdRegistry},
		{"static", "static:7", parseStatic},
	}, redisRegistryDrivers()...)
}

// OpenRegistry returns the registry of worker IDs that a URL names, and the terms on
// which to hold one. It neither connects nor creates anything, but locks the file of
// static:. The error wraps [leaf.ErrInvalid] if the URL is malformed.
func OpenRegistry(workersURL string, o *RegistryOptions) (Registry, Terms, error) {
	src, err := findRegistry(workersURL)
	if err != nil {
		return nil, Terms{}, err
	}
	if o == nil {
		o = &RegistryOptions{}
	}
	registry, err := src.open(*o)
	if err != nil {
		return nil, Terms{}, fmt.Errorf("worker registry %s: %w", Redact(workersURL), err)
	}
	return registry, src.terms, nil
}

// CheckRegistry reports, wrapping [leaf.ErrInvalid], why a URL names no registry of
// worker IDs. It contacts nothing.
func CheckRegistry(workersURL string) error {
	_, err := findRegistry(workersURL)
	return err
}

// ErrNothingToCreate is wrapped where a registry needs no init.
var ErrNothingToCreate = errors.New("there is nothing to create")

// InitRegistry creates the durable state that a URL names. It fails, wrapping
// [io/fs.ErrExist], if that exists, and leaves it as it is; and, wrapping
// [ErrNothingToCreate], where nothing is to be created.
func InitRegistry(ctx context.Context, workersURL string) error {
	src, err := findRegistry(workersURL)
	if err != nil {
		return err
	}
	if src.init == nil {
		return fmt.Errorf("create worker registry %s: %w: 'leaf serve' uses it as it is", Redact(workersURL), ErrNothingToCreate)
	}
	if err := src.init(ctx); err != nil {
		return fmt.Errorf("worker registry %s: %w", Redact(workersURL), err)
	}
	return nil
}

// RegistryExists reports whether the state that a URL names was created, or need not
// be.
func RegistryExists(ctx context.Context, workersURL string) (bool, error) {
	src, err := findRegistry(workersURL)
	if err != nil || src.exists == nil {
		return err == nil, err
	}
	ok, err := src.exists(ctx)
	if err != nil {
		return false, fmt.Errorf("worker registry %s: %w", Redact(workersURL), err)
	}
	return ok, nil
}

// CheckExisting reports why the registry that a URL names cannot be used as it is. It
// changes nothing.
func CheckExisting(ctx context.Context, workersURL string) error {
	registry, _, err := OpenRegistry(workersURL, &RegistryOptions{Observe: true})
	if err != nil {
		return err
	}
	defer registry.Close()
	_, err = registry.List(ctx)
	if d, ok := registry.(worker.Disposable); ok && err == nil {
		_, err = d.Starts(ctx, 1)
	}
	if err != nil {
		return fmt.Errorf("worker registry %s: %w", Redact(workersURL), err)
	}
	return nil
}

// RegistryKey returns what identifies the registry that a URL names, without
// credentials and parameters of its use.
func RegistryKey(workersURL string) (string, error) {
	src, err := findRegistry(workersURL)
	if err != nil {
		return "", err
	}
	scheme, _, _ := strings.Cut(canonical(workersURL), ":")
	return keyScheme(strings.ToLower(scheme)) + ":" + src.key, nil
}

// OnThisMachine reports whether a URL names something that no other machine reaches.
func OnThisMachine(url string) bool {
	scheme, _, _ := strings.Cut(url, ":")
	return strings.EqualFold(scheme, "sqlite") || strings.EqualFold(scheme, "static")
}

// canonical returns a JDBC URL as the mysql: one that it is, and a postgresql: one as
// postgres:, others as they are.
func canonical(workersURL string) string {
	if mysqlURL, err := FromJDBC(workersURL, "", ""); err == nil {
		return mysqlURL
	}
	if scheme, rest, ok := strings.Cut(workersURL, ":"); ok {
		return plainScheme(scheme) + ":" + rest
	}
	return workersURL
}

// findRegistry returns what a URL names. The error wraps [leaf.ErrInvalid].
func findRegistry(workersURL string) (registrySource, error) {
	scheme, rest, ok := strings.Cut(canonical(workersURL), ":")
	if !ok {
		rest = ""
	}
	for _, d := range registryTable() {
		if !ok || !strings.EqualFold(d.scheme, scheme) {
			continue
		}
		var err error
		if d.scheme != "mysql" {
			err = onlyInMySQL(rest)
		}
		var src registrySource
		if err == nil {
			src, err = d.parse(rest)
		}
		if err != nil {
			return registrySource{}, fmt.Errorf("worker URL %s: %w", Redact(workersURL), err)
		}
		return src, nil
	}
	var schemes, forms []string
	for _, d := range registryTable() {
		schemes, forms = append(schemes, d.scheme), append(forms, d.form)
	}
	why := hint(scheme, ok, schemes, forms)
	if slices.ContainsFunc(table(), func(d driver) bool { return ok && strings.EqualFold(d.scheme, scheme) }) {
		why = "it keeps counters, no worker IDs: name another registry as --workers; there are " + strings.Join(schemes, ", ")
	}
	return registrySource{}, fmt.Errorf("%w: worker URL %s: %s", leaf.ErrInvalid, Redact(workersURL), why)
}
