package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/leaf-id/leaf/internal/cli"
	"github.com/leaf-id/leaf/internal/config"
	"github.com/leaf-id/leaf/internal/drivers"
)

// javaURLs reads the addresses in a leaf.properties.
var javaURLs = config.JavaURLs{Store: drivers.FromJDBC, Workers: drivers.FromCurator}

func newConfig() *cobra.Command {
	cmd := group(&cobra.Command{
		Use:   "config",
		Short: "Check, show and convert configuration files",
		Long: `Check, show and convert configuration files.

'leaf serve' reads one file, in YAML or a leaf.properties of Java Leaf as it is. The
environment overrules the file, key by key (LEAF_LISTEN, LEAF_SEGMENT_MAX_STOCK, …),
and the flags of 'leaf serve' overrule both.`,
	})
	cmd.AddCommand(newConfigCheck(), newConfigExample(), newConfigConvert())
	return cmd
}

func newConfigCheck() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "check [FILE]",
		Short: "List the mistakes of a configuration file or of the environment",
		Long: `Read a configuration file as 'leaf serve --config FILE' would, without the
environment, and list everything that is wrong with it. Without a FILE read what 'leaf
serve' would: the environment, and the file that LEAF_CONFIG names.

The layouts are compared with those that the data directory remembers, the registry in
its embedded database included: a note says what a server would refuse. No other store
or registry is contacted, so a server may find there what this command does not.`,
		Example: `  leaf config check leaf.yaml
  leaf config check leaf.properties
  leaf config check`,
		Args: func(cmd *cobra.Command, given []string) error {
			if len(given) == 0 {
				return nil
			}
			return args("FILE")(cmd, given)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			src := config.Source{Environ: os.Environ(), Java: javaURLs}
			name := "the environment"
			if len(args) > 0 {
				src = config.Source{File: args[0], Java: javaURLs}
				name = args[0]
			} else if file := src.Path(); file != "" {
				name += " with " + file
			}
			cfg, notices, err := checkConfig(src, name)
			compared := ""
			if err == nil {
				var more []string
				more, compared = compareLayouts(cmd.Context(), cfg)
				notices = append(notices, more...)
			}
			if asJSON {
				return errors.Join(err, cli.PrintJSON(cmd.OutOrStdout(), checkedJSON{src.Path(), err == nil, problemsOf(err), append([]string{}, notices...)}))
			}
			cli.Say(cmd, "note", notices...)
			if err == nil {
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s is valid\n%s", name, compared)
			}
			return err
		},
	}
	cli.OutputVar(cmd, &asJSON)
	return cmd
}

// A checkedJSON is what `leaf config check -o json` prints.
type checkedJSON struct {
	File     string   `json:"file"`
	Valid    bool     `json:"valid"`
	Problems []string `json:"problems"`
	Notices  []string `json:"notices"`
}

func problemsOf(err error) []string {
	texts := []string{}
	problems, ok := errors.AsType[config.Problems](err)
	for _, p := range problems {
		texts = append(texts, p.String())
	}
	if !ok && err != nil {
		texts = append(texts, err.Error())
	}
	return texts
}

// checkConfig checks what src holds, which messages call name.
func checkConfig(src config.Source, name string) (cfg config.Config, notices []string, err error) {
	cfg, notices, err = config.Load(src)
	if err != nil {
		return cfg, notices, explainConfig(err)
	}
	if cfg.Store != "" {
		if err := drivers.CheckStore(cfg.Store); err != nil {
			return cfg, notices, fmt.Errorf("%s: store: %w", name, err)
		}
	}
	if cfg.Workers != "" {
		if err := drivers.CheckRegistry(cfg.Workers); err != nil {
			return cfg, notices, fmt.Errorf("%s: workers: %w", name, err)
		}
	}
	return cfg, notices, nil
}

func newConfigExample() *cobra.Command {
	return &cobra.Command{
		Use:     "example",
		Short:   "Print a file that explains every key",
		Long:    "Print a configuration file that explains every key and sets each to its default.",
		Example: "  leaf config example > leaf.yaml",
		Args:    args(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := io.WriteString(cmd.OutOrStdout(), config.Example())
			return err
		},
	}
}

func newConfigConvert() *cobra.Command {
	return &cobra.Command{
		Use:   "convert leaf.properties",
		Short: "Print the YAML for a leaf.properties of Java Leaf",
		Long: `Print the YAML file that says what a leaf.properties of Java Leaf says, with a
comment on everything that is dropped. The output holds the database's password.

There is no need to convert: 'leaf serve --config leaf.properties' reads it as it is.`,
		Example: "  leaf config convert leaf.properties > leaf.yaml",
		Args:    args("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !strings.HasSuffix(strings.ToLower(args[0]), ".properties") {
				return cli.Usage(cmd, fmt.Errorf("%s is not named *.properties", args[0]))
			}
			text, notices, err := config.Convert(config.Source{File: args[0], Java: javaURLs})
			cli.Say(cmd, "note", notices...)
			if err != nil {
				return explainConfig(err)
			}
			_, err = io.WriteString(cmd.OutOrStdout(), text)
			return err
		},
	}
}

func explainConfig(err error) error {
	problems, ok := err.(config.Problems)
	if !ok {
		return err
	}
	wrong := &cli.Error{Err: fmt.Errorf("the configuration is not valid:\n%w", problems), Hint: "'leaf config example' explains every key"}
	if slices.ContainsFunc(problems, func(p config.Problem) bool { return strings.HasPrefix(p.Where, "--") }) {
		wrong.Code = cli.ExitUsage
	}
	return wrong
}
