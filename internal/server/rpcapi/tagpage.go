package rpcapi

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/leaf-id/leaf"
	leafv1 "github.com/leaf-id/leaf/api/leaf/v1"
	"github.com/leaf-id/leaf/segment"
)

// A tagPage keeps the tags of one page: the first ones in its order, from a number or a name on.
type tagPage struct {
	size     int
	after    string // only names after it
	contains string // in lower case
	skip     int
	order    func(a, b segment.Tag) int
	byName   bool // pages follow one another by name
	counted  bool // the answer tells how many tags match

	tags  []segment.Tag // may hold more than the page, in no order
	total int
}

func newTagPage(req *leafv1.ListTagsRequest, size int) (*tagPage, error) {
	order, err := tagOrder(req.GetOrderBy())
	p := &tagPage{
		size: size, after: req.GetPageToken(), contains: strings.ToLower(req.GetContains()), skip: int(req.GetSkip()), order: order,
		byName:  req.GetOrderBy() == "" && req.GetSkip() == 0,
		counted: req.GetContains() != "" || req.GetOrderBy() != "" || req.GetSkip() != 0,
	}
	switch {
	case err != nil:
		return nil, err
	case p.skip < 0:
		return nil, fmt.Errorf("%w: skip %d: it must not be negative", leaf.ErrInvalid, p.skip)
	case p.after != "" && (req.GetOrderBy() != "" || p.skip != 0):
		return nil, fmt.Errorf("%w: page_token goes with neither order_by nor skip", leaf.ErrInvalid)
	}
	return p, nil
}

// tagOrder returns the comparison that an order_by names. Tags that it does not tell apart are in
// the order of their names.
func tagOrder(by string) (func(a, b segment.Tag) int, error) {
	key, backwards := strings.CutPrefix(by, "-")
	byName := func(a, b segment.Tag) int { return strings.Compare(a.Name, b.Name) }
	order := map[string]func(a, b segment.Tag) int{
		"":        byName,
		"name":    byName,
		"step":    func(a, b segment.Tag) int { return cmp.Compare(a.Step, b.Step) },
		"max_id":  func(a, b segment.Tag) int { return cmp.Compare(a.MaxID, b.MaxID) },
		"updated": func(a, b segment.Tag) int { return a.Updated.Compare(b.Updated) },
	}[key]
	if order == nil || by == "-" {
		return nil, fmt.Errorf("%w: order_by is name, step, max_id or updated, with a minus before it for the reverse", leaf.ErrInvalid)
	}
	sign := 1
	if backwards {
		sign = -1
	}
	return func(a, b segment.Tag) int { return cmp.Or(sign*order(a, b), byName(a, b)) }, nil
}

func (p *tagPage) add(tag segment.Tag) {
	if tag.Name <= p.after && p.after != "" || !p.matches(tag) {
		return
	}
	p.total++
	p.tags = append(p.tags, tag)
	if keep := p.skip + p.size + 1; len(p.tags) > 2*keep {
		p.sort()
		clear(p.tags[keep:])
		p.tags = p.tags[:keep]
	}
}

func (p *tagPage) matches(tag segment.Tag) bool {
	return p.contains == "" || strings.Contains(strings.ToLower(tag.Name), p.contains) ||
		strings.Contains(strings.ToLower(tag.Options.Description()), p.contains)
}

func (p *tagPage) sort() { slices.SortFunc(p.tags, p.order) }

func (p *tagPage) answer() *leafv1.ListTagsResponse {
	p.sort()
	page := p.tags[min(p.skip, len(p.tags)):]
	res := new(leafv1.ListTagsResponse)
	if p.counted {
		res.Total = int32(p.total)
	}
	if len(page) > p.size {
		page = page[:p.size]
		if p.byName {
			res.NextPageToken = page[p.size-1].Name
		}
	}
	for _, tag := range page {
		res.Tags = append(res.Tags, tagMessage(tag))
	}
	return res
}
