package config

import (
	"fmt"
	"strconv"
	"strings"
)

// Convert returns the YAML file that makes a server do what the leaf.properties
// named file makes it do. The text holds the password of the database. The error,
// of type [Problems] unless the file cannot be read, says why no server would
// start with it. The notices say what an operator should know about the file, such as
// what has no effect; the text says so too.
func Convert(file string) (text string, notices []string, err error) {
	cfg, notices, err := Load(Source{File: file})
	if err != nil {
		return "", notices, err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# Made from %s by 'leaf config convert'.\n", strconv.Quote(file))
	if cfg.Store != "" {
		fmt.Fprintf(&b, "# CAUTION: this file holds the password of the database. Keep it from other eyes\n")
		fmt.Fprintf(&b, "# (chmod 600), or move the URL into a file of its own and name that in store_file.\n")
	}
	for _, n := range notices {
		fmt.Fprintf(&b, "#\n# Note: %s\n", n)
	}
	fmt.Fprintf(&b, "\n# Java Leaf listens on all interfaces, and only when it has its worker ID.\nlisten: %s\nstart_wait: %s\n", quoteYAML(cfg.Listen), cfg.StartWait)
	if cfg.Store != "" {
		fmt.Fprintf(&b, "\nstore: %s\n", quoteYAML(cfg.Store))
	}
	if cfg.Workers != "" {
		fmt.Fprintf(&b, "\n# Java Leaf's own tree in ZooKeeper.\nworkers: %s\n", quoteYAML(cfg.Workers))
	}
	fmt.Fprintf(&b, "\nsegment:\n  enable: %t\n\n", cfg.Segment.Enable)
	fmt.Fprintf(&b, "  # Java Leaf's rule for the size of an allocation. 'adaptive' wastes fewer IDs.\n  policy: %s\n", cfg.Segment.Policy)
	fmt.Fprintf(&b, "\nsnowflake:\n  enable: %t\n", cfg.Snowflake.Enable)
	return b.String(), notices, nil
}

func quoteYAML(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
