package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/leaf-id/leaf/internal/cli"
	"github.com/leaf-id/leaf/internal/server/access"
)

const tokenLong = `Make tokens for the clients of servers.

A server with a tokens file (tokens_file) answers only callers whose token stands there,
as its hash: who reads the file cannot use it. Clients of HTTP and gRPC send a token as
"Authorization: Bearer TOKEN", the commands of leaf read it from --token-file or
LEAF_TOKEN. Servers read the file again on SIGHUP. See docs/security.md.`

func newToken() *cobra.Command {
	cmd := group(&cobra.Command{Use: "token", Short: "Make tokens for clients", Long: tokenLong})
	cmd.AddCommand(newTokenNew(), newTokenHash())
	return cmd
}

// tokenJSON is what 'leaf token new -o json' prints.
type tokenJSON struct {
	Token string `json:"token,omitempty"`
	Entry string `json:"entry"`
}

func newTokenNew() *cobra.Command {
	var entry access.Entry
	var file string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "new --name NAME",
		Short: "Print a new token and its entry for the tokens file",
		Long: `Print a new token, which is kept nowhere, and its entry for the tokens file of servers.

In a pattern of --take an asterisk is any text; quote it for the shell. The rights are
read (see tags, worker IDs and the status), admin (change tags and free worker IDs; it
includes read) and worker (claim worker IDs for another server).`,
		Example: `  leaf token new --name shop --take 'order.*' --take invoice
  leaf token new --name lab --take '*' --scheme snowflake --expires 2027-01-01
  echo 'tokens:' > tokens.yaml
  leaf token new --name ops --right admin --secret-file ops.token >> tokens.yaml`,
		Args: args(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			token := access.NewToken()
			entry.Hash = access.HashToken(token)
			text, err := entryText(entry)
			if err != nil {
				return cli.Usage(cmd, err)
			}
			if file != "" {
				if err := writeSecret(file, token); err != nil {
					return err
				}
				token = ""
			}
			about := ""
			if token != "" {
				about = fmt.Sprintf("# For the client. It is not shown again.\n%s\n\n# For the tokens file of the servers, below \"tokens:\".\n", token)
			}
			return cli.Print(cmd.OutOrStdout(), asJSON, tokenJSON{token, text}, "%s%s", about, text)
		},
	}
	cli.TextVar(cmd, &entry.Name, "name", "`NAME` of the token, for people and the log")
	cmd.Flags().StringArrayVar(&entry.Take, "take", nil, "tags, as a `PATTERN`, of which it may take IDs; may be repeated")
	cmd.Flags().StringArrayVar(&entry.Schemes, "scheme", nil, "`SCHEME` of which it may; may be repeated (default all)")
	cmd.Flags().StringArrayVar(&entry.Rights, "right", nil, "what else it may do: `read|admin|worker`; may be repeated")
	cli.TextVar(cmd, &entry.Expires, "expires", "`DAY` or time at which it ends, such as 2027-01-01")
	cli.TextVar(cmd, &file, "secret-file", "write the token to this new `FILE`, and only the entry to standard output")
	cli.OutputVar(cmd, &asJSON)
	return cmd
}

// entryText returns an entry in the form of a tokens file.
func entryText(e access.Entry) (string, error) {
	text, err := yaml.Marshal([]access.Entry{e})
	if err != nil {
		return "", err
	}
	if _, err := access.ParseFile([]byte("tokens:\n" + string(text))); err != nil {
		return "", errors.New(strings.ReplaceAll(err.Error(), "line 2: ", ""))
	}
	return string(text), nil
}

// writeSecret creates a file that only its owner can read.
func writeSecret(file, token string) error {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("--secret-file: %w", err)
	}
	_, err = f.WriteString(token + "\n")
	return errors.Join(err, f.Close())
}

func newTokenHash() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "hash",
		Short: "Print the hash of a token that is read from standard input",
		Long: `Read a token from standard input and print its hash, as it stands in a tokens file.

Only tokens that 'leaf token new' has made have one: a password that a person has thought
of could be guessed from its hash.`,
		Example: "  leaf token hash < shop.token",
		Args:    args(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			data, err := io.ReadAll(io.LimitReader(cmd.InOrStdin(), 1<<10))
			if err != nil {
				return fmt.Errorf("read the token: %w", err)
			}
			token := strings.TrimSpace(string(data))
			if err := access.CheckToken(token); err != nil {
				return fmt.Errorf("standard input holds no token: %w", err)
			}
			hash := access.HashToken(token)
			return cli.Print(cmd.OutOrStdout(), asJSON, map[string]string{"hash": hash}, "%s\n", hash)
		},
	}
	cli.OutputVar(cmd, &asJSON)
	return cmd
}
