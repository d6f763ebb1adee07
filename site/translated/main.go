// Command translated declares that Chinese pages are up to date with the English ones:
// `make translated NAME="start which"`.
package main

import (
	"fmt"
	"os"

	"github.com/leaf-id/leaf/site"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, `translated: name the pages: make translated NAME="start which"`)
		os.Exit(2)
	}
	for _, page := range os.Args[1:] {
		if err := site.Stamp(page); err != nil {
			fmt.Fprintln(os.Stderr, "translated:", err)
			os.Exit(1)
		}
	}
}
