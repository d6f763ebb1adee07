package segment

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/textid"
)

const maxText = 64 // bytes

// checkForm reports why no tag can have a form. Servers write its characters into JSON as they are.
func checkForm(template string) error {
	form, err := textid.New(template)
	if err != nil {
		return err
	}
	switch _, most := form.Lengths(); {
	case most > maxText:
		return fmt.Errorf("%w: the texts of a tag have at most %d bytes, and these up to %d", leaf.ErrInvalid, maxText, most)
	case form.HasKey():
		return fmt.Errorf("%w: the form of a tag has no {key}", leaf.ErrInvalid)
	case strings.ContainsAny(template, `"\`):
		return fmt.Errorf("%w: the form of a tag has no quotes and no backslashes", leaf.ErrInvalid)
	}
	return nil
}

// form returns the form of a tag; nil without one.
func (o TagOptions) form() *textid.Form {
	form, _ := textid.New(o[OptionForm]) // the empty template does not count
	return form
}

// checkForm reports a form that cannot write the numbers of a tag with these options.
func (o TagOptions) checkForm() error {
	form := o.form()
	if form == nil {
		return nil
	}
	if _, d, _, err := parseMask(o[OptionMask]); err == nil {
		if _, err := form.Encode(textid.Number{N: d.Max()}); err != nil {
			return fmt.Errorf("%w: the form is too narrow for the mask: %w", leaf.ErrInvalid, err)
		}
	}
	if !form.HasPeriod() {
		return nil
	}
	name, err := o.PeriodOf("", time.Now())
	if err != nil || name == "" {
		return fmt.Errorf("%w: a form with {period} is for tags with a period", leaf.ErrInvalid)
	}
	day, _ := time.Parse(time.DateOnly, name)
	for _, first := range []time.Time{day, o.next(day)} { // two in a row: not both the first of a month
		if _, err := form.Encode(textid.Number{Period: first}); err != nil {
			return err
		}
	}
	return nil
}

// Change returns o with the values of change. It refuses, with [leaf.ErrInvalid], another form whose
// texts are not all longer than those of the present one: two numbers could get the same text.
func (o TagOptions) Change(change TagOptions) (TagOptions, error) {
	all := o.With(change)
	if all[OptionForm] == o[OptionForm] || o.form() == nil {
		return all, all.checkForm()
	}
	if form := all.form(); form != nil {
		_, most := o.form().Lengths()
		if least, _ := form.Lengths(); least > most {
			return all, all.checkForm()
		}
	}
	return nil, fmt.Errorf("%w: two numbers could get the same text: the form %s changes only to one whose texts are all longer, with another width of {n}",
		leaf.ErrInvalid, o[OptionForm])
}

// forms are the forms of tags by name.
type forms map[string]*textid.Form

// take adds the form of a tag, if it has one; old ones need not be read again.
func (f forms) take(tag Tag, old forms) {
	switch template := tag.Options[OptionForm]; {
	case template == "":
	case old[tag.Name] != nil && old[tag.Name].String() == template:
		f[tag.Name] = old[tag.Name]
	default:
		if form := tag.Options.form(); form != nil {
			f[tag.Name] = form
		}
	}
}

// Form returns the form of a tag. If the latest listing of the store lacks it, Form waits for
// another listing. If the tag has no form, the error wraps [leaf.ErrInvalid].
func (s *Set) Form(ctx context.Context, tag string) (*textid.Form, error) {
	if err := CheckTagName(tag); err != nil {
		return nil, err
	}
	s.mu.Lock()
	form := s.forms[tag]
	var listed <-chan struct{}
	if form == nil {
		listed = s.relist(tag)
	}
	s.mu.Unlock()
	if form != nil {
		return form, nil
	}
	late := false
	if listed != nil {
		timer := time.NewTimer(s.opts.Wait)
		defer timer.Stop()
		select {
		case <-listed:
		case <-timer.C:
			late = true
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for the form of %q: %w", tag, context.Cause(ctx))
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	_, known := s.listed[tag]
	switch {
	case s.forms[tag] != nil:
		return s.forms[tag], nil
	case s.lastCheck != nil || s.listed == nil || late && !known:
		return nil, fmt.Errorf("tag %q: %w: its form is not known while the store does not answer", tag, leaf.ErrExhausted)
	case !known:
		return nil, fmt.Errorf("tag %q: %w", tag, leaf.ErrUnknownTag)
	}
	return nil, fmt.Errorf("%w: the tag %q has no form", leaf.ErrInvalid, tag)
}
