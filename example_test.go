package leaf_test

import (
	"fmt"

	"github.com/leaf-id/leaf"
)

func ExampleRange() {
	r := leaf.Range{Start: 2001, End: 4001}
	fmt.Println(r, r.Len(), r.Overlaps(leaf.Range{Start: 4001, End: 6001}))
	// Output: [2001, 4001) 2000 false
}
