package respapi

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/internal/issuer"
	"github.com/leaf-id/leaf/internal/server/access"
	"github.com/leaf-id/leaf/internal/server/frontend"
)

// maxRun is how many equal INCRs are served as one batch.
const maxRun = 1024

// What callers are told, in Redis's words.
const (
	noAuth     = "NOAUTH Authentication required."
	notInteger = "ERR value is not an integer or out of range"
	wrongPass  = "WRONGPASS invalid username-password pair or user is disabled."
)

// denied tells the caller that a token is not accepted.
func (s *session) denied(err error) {
	if errors.Is(err, access.ErrUnauthenticated) {
		s.refuse(err, wrongPass)
		return
	}
	s.failed(err)
}

// refuse tells the caller of an error in the words of text.
func (s *session) refuse(err error, text string) {
	s.Requests.RESP.Failed(frontend.KindOf(err).Reason)
	s.reply.fail(text)
}

// fail tells the caller what is wrong with a command.
func (s *session) fail(text string) { s.refuse(leaf.ErrInvalid, text) }

// failed tells the caller of an error.
func (s *session) failed(err error) {
	if errors.Is(err, access.ErrUnauthenticated) {
		s.refuse(err, noAuth)
		return
	}
	s.refuse(err, prefix(err)+" "+frontend.Text(err))
}

// prefix is the first word of an error.
func prefix(err error) string {
	switch {
	case errors.Is(err, access.ErrForbidden):
		return "NOPERM"
	case frontend.KindOf(err).Retry:
		return "TRYAGAIN"
	}
	return "ERR"
}

// incr serves an INCR, and the equal ones that follow it in what was read.
func (s *session) incr(args [][]byte, frame []byte) {
	tag := s.tag(args[1])
	n := 1 + s.repeats(frame, min(maxRun, s.IDs.MaxBatch())-1)
	s.commands += int64(n - 1)
	allowed := s.caller.Take(issuer.Segment, tag, int64(n)) == nil
	if allowed && n > 1 && s.incrRun(tag, n) {
		return
	}
	for range n {
		s.incrOne(tag, allowed)
	}
}

// incrRun serves n INCRs at once; false: the stock does not hold so many, and nothing was
// answered.
func (s *session) incrRun(tag string, n int) bool {
	ids, err := s.IDs.Take(noWait, issuer.Segment, tag, n)
	if err != nil {
		return false
	}
	for _, r := range ids.Ranges {
		for id := r.Start; id < r.End; id++ {
			s.integer(id)
		}
	}
	return true
}

// incrOne serves one INCR; allowed: the caller was asked for already.
func (s *session) incrOne(tag string, allowed bool) {
	var err error
	if !allowed {
		err = s.caller.Take(issuer.Segment, tag, 1)
	}
	var id issuer.ID
	if err == nil {
		id, err = s.next(issuer.Segment, tag)
	}
	if err != nil {
		s.failed(err)
		return
	}
	s.integer(id.Number)
}

// next takes one ID.
func (s *session) next(scheme, key string) (issuer.ID, error) {
	id, err := s.IDs.Next(noWait, scheme, key)
	if errors.Is(err, errWaits) {
		s.flush()
		id, err = s.IDs.Next(s.ctx, scheme, key)
	}
	return id, err
}

// waiting takes IDs. Where that has to wait, the replies before it go out first.
func waiting[T any](s *session, take func(context.Context) (T, error)) (T, error) {
	ids, err := take(noWait)
	if errors.Is(err, errWaits) {
		s.flush()
		ids, err = take(s.ctx)
	}
	return ids, err
}

// incrBy serves INCRBY tag n: the caller owns the n numbers up to the answer.
func (s *session) incrBy(args [][]byte, _ []byte) {
	n, err := strconv.Atoi(string(args[2]))
	if err != nil {
		s.fail(notInteger)
		return
	}
	if n < 1 || n > s.IDs.MaxRange() {
		s.fail(fmt.Sprintf("ERR a counter goes up by 1 to %d at once", s.IDs.MaxRange()))
		return
	}
	tag := s.tag(args[1])
	if err := s.caller.Take(issuer.Segment, tag, int64(n)); err != nil {
		s.failed(err)
		return
	}
	ids, err := waiting(s, func(ctx context.Context) (leaf.Range, error) {
		return s.IDs.TakeContiguous(ctx, issuer.Segment, tag, n)
	})
	if err != nil {
		s.failed(err)
		return
	}
	s.integer(ids.End - 1)
}

// leafNext serves LEAF.NEXT scheme key [COUNT n]. IDs are texts: what reads integers as
// floating-point numbers would change the longer ones.
func (s *session) leafNext(args [][]byte, _ []byte) {
	scheme, key := string(args[1]), s.tag(args[2])
	switch {
	case len(args) == 3:
		s.nextOne(scheme, key)
	case len(args) == 5 && is(args[3], "COUNT"):
		s.nextMany(scheme, key, args[4])
	default:
		s.fail("ERR syntax error: LEAF.NEXT SCHEME KEY [COUNT N]")
	}
}

func (s *session) nextOne(scheme, key string) {
	err := s.caller.Take(scheme, key, 1)
	if err != nil {
		s.failed(err)
		return
	}
	id, err := s.next(scheme, key)
	if err != nil {
		s.failed(err)
		return
	}
	s.bulkID(id)
}

func (s *session) nextMany(scheme, key string, count []byte) {
	n, err := strconv.Atoi(string(count))
	if err != nil {
		s.fail(notInteger)
		return
	}
	if err = s.IDs.CheckCount(n); err == nil {
		err = s.caller.Take(scheme, key, int64(n))
	}
	if err != nil {
		s.failed(err)
		return
	}
	ids, err := waiting(s, func(ctx context.Context) (issuer.IDs, error) { return s.IDs.Take(ctx, scheme, key, n) })
	if err != nil {
		s.failed(err)
		return
	}
	s.array(n)
	for id := range ids.All() {
		s.bulkID(id)
		if len(s.buf) >= flushAt && !s.flush() {
			return
		}
	}
}

func (s *session) bulkID(id issuer.ID) {
	var text [36]byte
	s.bulk(string(id.Append(text[:0])))
}

// exists reports why a tag cannot be used; nil: it exists.
func (s *session) exists(tag string) error {
	err := s.caller.Take(issuer.Segment, tag, 0)
	if err != nil {
		return err
	}
	s.flush()
	return s.IDs.Exists(s.ctx, issuer.Segment, tag)
}

// setNX answers as Redis does for a key that exists: client libraries that count send it
// before their first INCR.
func (s *session) setNX(args [][]byte, _ []byte) {
	if err := s.exists(s.tag(args[1])); err != nil {
		s.failed(err)
		return
	}
	s.integer(0)
}

func (s *session) set(args [][]byte, _ []byte) {
	nx := false
	for _, option := range args[3:] {
		nx = nx || is(option, "NX")
	}
	if !nx {
		s.fail("ERR a counter is not set here: it would issue IDs a second time; SET with NX asks whether a tag exists")
		return
	}
	if err := s.exists(s.tag(args[1])); err != nil {
		s.failed(err)
		return
	}
	s.null()
}

func (s *session) get(args [][]byte, _ []byte) {
	if err := s.caller.Take(issuer.Segment, s.tag(args[1]), 0); err != nil {
		s.failed(err)
		return
	}
	s.fail("ERR a counter is not read here: servers hold ranges of it in memory, so that it has no one value; INCR takes the next ID")
}
