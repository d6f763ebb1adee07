package access

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/leaf-id/leaf/internal/hint"
	"github.com/leaf-id/leaf/internal/issuer"
)

// maxFile bounds the size of a tokens file: 100,000 tokens need less.
const maxFile = 32 << 20

// A File is a tokens file.
type File struct {
	Tokens []Entry `yaml:"tokens"`
}

// An Entry has the rights of a token's or a certificate's owner.
type Entry struct {
	Name        string   `yaml:"name"`                  // for the log
	Hash        string   `yaml:"hash,omitempty"`        // what HashToken returns
	Certificate string   `yaml:"certificate,omitempty"` // instead of Hash: a name in the certificate
	Take        []string `yaml:"take,omitempty,flow"`   // of which tags: patterns, in which * is any text
	Schemes     []string `yaml:"schemes,omitempty,flow"`
	Rights      []string `yaml:"rights,omitempty,flow"` // beside Take: read, admin, worker
	Pools       []string `yaml:"pools,omitempty,flow"`  // restricts worker to leases of these pools: patterns
	Expires     string   `yaml:"expires,omitempty"`     // RFC 3339, or a day, at whose beginning in UTC
	Limits      *Limit   `yaml:"limits,omitempty,flow"` // instead of those of every client
}

var rightNames = map[string]Right{"read": Read, "admin": Admin | Read, "worker": Worker | Lease}

// ReadFile reads a tokens file, which only its owner may be able to write: with an entry of
// their own others would get any right. The hashes in it are no secrets.
func ReadFile(path string) (*File, error) {
	file, err := readFile(path)
	if err != nil {
		return nil, fmt.Errorf("%w %s: %w", hint.ErrTokens, path, err)
	}
	return file, nil
}

func readFile(path string) (*File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, errors.Unwrap(err) // which names the file once more
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if mode := info.Mode(); mode.Perm()&0o022 != 0 && runtime.GOOS != "windows" {
		return nil, fmt.Errorf("its mode is %v, so that others than its owner may write to it and give themselves any right: take that from them (chmod go-w)", mode)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxFile {
		return nil, fmt.Errorf("it is larger than %d MiB", maxFile>>20)
	}
	return ParseFile(data)
}

// ParseFile reads the content of a tokens file. The error names the line of each problem, and
// holds no text of the file that may be a secret.
func ParseFile(data []byte) (*File, error) {
	file := new(File)
	dec := yaml.NewDecoder(bytes.NewReader(data))
	dec.KnownFields(true)
	if err := dec.Decode(file); err != nil && !errors.Is(err, io.EOF) {
		return nil, discreet(err)
	}
	if dec.Decode(new(yaml.Node)) != io.EOF {
		return nil, errors.New("there is a second YAML document, or what follows the first is not YAML")
	}
	if len(file.Tokens) == 0 { // it may be half written, and no caller could do anything
		return nil, errors.New("it lists no tokens")
	}
	if errs := file.check(linesOf(data)); len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return file, nil
}

// discretion lists patterns of texts of the YAML library, each followed by its replacement.
var discretion = []string{
	`cannot unmarshal !!seq into access.File`, `here is a list: put "tokens:" on a line before it`,
	"!!(\\w+)(?: `[^`]*`)?", "a $1",
	`field (.*) (?:not found|already set) in type \S+`, "unknown key $1, or it appears twice",
	`into (\S+)`, "into this place",
	tokenPrefix + `\w*`, "(a token)",
}

// discreet returns err, of the YAML library, without text of the file and names of Go types.
func discreet(err error) error {
	texts := []string{strings.TrimPrefix(err.Error(), "yaml: ")}
	if wrong, ok := errors.AsType[*yaml.TypeError](err); ok {
		texts = wrong.Errors
	}
	for rule := range slices.Chunk(discretion, 2) {
		pattern := regexp.MustCompile(rule[0])
		for i := range texts {
			texts[i] = pattern.ReplaceAllString(texts[i], rule[1])
		}
	}
	return errors.New(strings.Join(texts, "\n"))
}

// linesOf returns the line of each token in data, an accepted file.
func linesOf(data []byte) []int {
	var doc struct {
		Tokens []yaml.Node `yaml:"tokens"`
	}
	_ = yaml.Unmarshal(data, &doc) // it was read before
	lines := make([]int, len(doc.Tokens))
	for i, n := range doc.Tokens {
		lines[i] = n.Line
	}
	return lines
}

func (f *File) check(lines []int) (errs []error) {
	seen := map[string]int{}
	for i, e := range f.Tokens {
		line := 0
		if i < len(lines) {
			line = lines[i]
		}
		problem := func(format string, args ...any) {
			errs = append(errs, fmt.Errorf("line %d: "+format, append([]any{line}, args...)...))
		}
		for _, text := range e.problems() {
			problem("%s", text)
		}
		for what, key := range map[string]string{"name": e.Name, "hash": strings.ToLower(e.Hash), "certificate": e.Certificate} {
			if first, ok := seen[what+key]; ok && key != "" {
				problem("its %s is that of line %d too", what, first)
			}
			seen[what+key] = line
		}
	}
	return errs
}

func (e Entry) problems() (texts []string) {
	add := func(wrong bool, text string) {
		if wrong {
			texts = append(texts, text)
		}
	}
	add(e.Name == "", "name is missing")
	add((e.Hash == "") == (e.Certificate == ""), "one of hash and certificate must be given")
	if e.Hash != "" {
		_, err := parseHash(e.Hash)
		add(err != nil, fmt.Sprint(err))
	}
	add(len(e.Take) == 0 && len(e.Rights) == 0, "it may do nothing: give it take, with patterns of tags, or rights")
	add(slices.Contains(e.Take, ""), `a pattern in take is empty: "*" is any tag`)
	add(len(e.Take) == 0 && len(e.Schemes) > 0, "schemes is of no use without take")
	for _, r := range e.Rights {
		add(rightNames[r] == 0, "rights holds something else than read, admin or worker")
	}
	add(len(e.Pools) > 0 && !slices.Contains(e.Rights, "worker"), "pools is of no use without the right worker")
	add(slices.Contains(e.Pools, ""), `a pattern in pools is empty: "*" is any pool`)
	for _, s := range e.Schemes {
		add(!slices.Contains(issuer.SchemeNames(), s), "schemes holds something else than "+strings.Join(issuer.SchemeNames(), ", "))
	}
	_, err := parseTime(e.Expires)
	add(err != nil, "expires is not a time such as 2027-01-01T00:00:00Z, nor a day such as 2027-01-01")
	if e.Limits != nil {
		add(e.Limits.Check() != "", "limits: "+e.Limits.Check())
	}
	return texts
}

// grant returns the rights of e's owner; usual is the limit without an own one.
func (e Entry) grant(usual Limit) *grant {
	g := &grant{name: e.Name, tags: e.Take, schemes: e.Schemes, limit: usual}
	g.expires, _ = parseTime(e.Expires) // it was checked
	if e.Limits != nil {
		g.limit = *e.Limits
	}
	for _, r := range e.Rights {
		g.rights |= rightNames[r]
	}
	if g.pools = e.Pools; len(e.Pools) > 0 {
		g.rights &^= Worker
	}
	if len(e.Take) > 0 {
		g.rights |= Take
	}
	return g
}

// parseTime reads a time or a day; "" is the zero time.
func parseTime(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if t, err := time.Parse(time.DateOnly, text); err == nil {
		return t, nil
	}
	return time.Parse(time.RFC3339, text)
}
