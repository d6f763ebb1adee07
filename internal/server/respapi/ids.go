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
	"github.com/leaf-id/leaf/segment"
)

// maxRun is how many equal INCRs are served as one batch.
const maxRun = 1024

// Error texts in Redis's words.
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
	s.requests.Failed(frontend.KindOf(err).Reason)
	s.reply.fail(text)
}

// fail answers a command with an error.
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
	limit, limited := errors.AsType[*access.LimitError](err)
	switch {
	case limited && limit.RetryAfter == 0: // never as it is
		return "ERR"
	case errors.Is(err, access.ErrForbidden):
		return "NOPERM"
	case frontend.KindOf(err).Retry:
		return "TRYAGAIN"
	}
	return "ERR"
}

// A run is a row of equal INCRs that run one by one.
type run struct {
	left    int  // remaining ones
	allowed bool // the caller's permission and limits cover them
}

// incr executes an INCR, and the equal ones behind it in the same read.
func (s *session) incr(args [][]byte, frame []byte) {
	tag := s.tag(args[1])
	if s.run.left == 0 {
		n := 1 + s.repeats(frame, min(maxRun, s.IDs.MaxBatch())-1)
		s.run = run{n, s.caller.Take(issuer.Segment, tag, int64(n)) == nil}
		if s.run.allowed && n > 1 && s.incrRun(tag, n) {
			s.run.left = 0
			s.commands += int64(n - 1)
			s.at += (n - 1) * len(frame)
			return
		}
	}
	s.run.left--
	if !s.run.allowed && !s.may(issuer.Segment, tag, 1) {
		return
	}
	s.take(ask{scheme: issuer.Segment, key: tag, do: (*session).takeInteger})
}

// incrRun serves n INCRs at once; false: the stock does not hold so many, and nothing was
// answered. With strict order they wait for the store together.
func (s *session) incrRun(tag string, n int) bool {
	err := s.integersOf(frontend.NoWait, tag, n)
	if errors.Is(err, segment.ErrStrict) && errors.Is(err, frontend.ErrWaits) {
		s.later(func(ctx context.Context) {
			err := s.integersOf(ctx, tag, n)
			last := errors.Is(err, leaf.ErrOverflow) // the first ones may have the last numbers
			for left := n; err != nil && left > 0; left-- {
				if last = last && s.takeInteger(ctx, ask{scheme: issuer.Segment, key: tag}) == nil; !last {
					s.failed(err)
				}
			}
		})
		return true
	}
	return err == nil
}

// integersOf replies with n IDs, each as one command's answer.
func (s *session) integersOf(ctx context.Context, tag string, n int) error {
	ranges, err := s.IDs.AppendRanges(ctx, issuer.Segment, tag, s.ranges[:0], n)
	if err != nil {
		return err
	}
	if s.ranges = ranges; cap(ranges) > keepArgs {
		s.ranges = nil
	}
	for _, r := range ranges {
		s.integers(r)
	}
	return nil
}

// may asks whether the caller may take n IDs, and tells it if not.
func (s *session) may(scheme, key string, n int64) bool {
	err := s.caller.Take(scheme, key, n)
	if err != nil {
		s.failed(err)
	}
	return err == nil
}

// An ask is the permitted request of a command.
type ask struct {
	scheme, key string
	n           int
	do          func(s *session, ctx context.Context, a ask) error // takes it, and answers
}

// take executes an ask: now, or later if it has to wait.
func (s *session) take(a ask) {
	if err := a.do(s, frontend.NoWait, a); errors.Is(err, frontend.ErrWaits) {
		s.later(func(ctx context.Context) {
			if err := a.do(s, ctx, a); err != nil {
				s.failed(err)
			}
		})
	} else if err != nil {
		s.failed(err)
	}
}

func (s *session) takeInteger(ctx context.Context, a ask) error {
	id, err := s.IDs.Next(ctx, a.scheme, a.key)
	if err == nil {
		s.integer(id.Number)
	}
	return err
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
	if tag := s.tag(args[1]); s.may(issuer.Segment, tag, int64(n)) {
		s.take(ask{issuer.Segment, tag, n, (*session).takeContiguous})
	}
}

func (s *session) takeContiguous(ctx context.Context, a ask) error {
	ids, err := s.IDs.TakeContiguous(ctx, a.scheme, a.key, a.n)
	if err == nil {
		s.integer(ids.End - 1)
	}
	return err
}

// leafNext serves LEAF.NEXT scheme key [COUNT n]. IDs are texts: what reads integers as
// floating-point numbers would change the longer ones.
func (s *session) leafNext(args [][]byte, _ []byte) {
	scheme, key := s.tag(args[1]), s.tag(args[2])
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
	if s.may(scheme, key, 1) {
		s.take(ask{scheme: scheme, key: key, do: (*session).takeText})
	}
}

func (s *session) takeText(ctx context.Context, a ask) error {
	id, err := s.IDs.Next(ctx, a.scheme, a.key)
	if err == nil {
		s.bulkID(id)
	}
	return err
}

func (s *session) nextMany(scheme, key string, count []byte) {
	n, err := strconv.Atoi(string(count))
	if err != nil {
		s.fail(notInteger)
		return
	}
	if err = s.IDs.CheckCount(n); err != nil {
		s.failed(err)
		return
	}
	if !s.may(scheme, key, int64(n)) {
		return
	}
	s.take(ask{scheme, key, n, (*session).takeTexts})
}

func (s *session) takeTexts(ctx context.Context, a ask) error {
	ids, err := s.IDs.Take(ctx, a.scheme, a.key, a.n)
	if err == nil {
		s.texts(a.n, ids)
	}
	return err
}

// texts replies with n IDs, in pieces.
func (s *session) texts(n int, ids issuer.IDs) {
	s.array(n)
	s.rest = ids
	s.appendRest()
}

// appendRest appends what fits into a piece.
func (s *session) appendRest() {
	for len(s.buf) < s.flush {
		id, ok := s.rest.Shift()
		if !ok {
			s.rest = issuer.IDs{}
			return
		}
		s.bulkID(id)
	}
	s.conn.More()
}

func (s *session) bulkID(id issuer.ID) {
	var text [36]byte
	s.bulk(string(id.Append(text[:0])))
}

// exists executes a question about a tag. It answers with an error, or with answer if the tag
// exists.
func (s *session) exists(tag string, answer func(s *session)) {
	if !s.may(issuer.Segment, tag, 0) {
		return
	}
	s.later(func(ctx context.Context) {
		if err := s.IDs.Exists(ctx, issuer.Segment, tag); err != nil {
			s.failed(err)
			return
		}
		answer(s)
	})
}

// setNX answers as Redis does for a key that exists: client libraries that count send it
// before their first INCR.
func (s *session) setNX(args [][]byte, _ []byte) {
	s.exists(s.tag(args[1]), func(s *session) { s.integer(0) })
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
	s.exists(s.tag(args[1]), func(s *session) { s.null() })
}

func (s *session) get(args [][]byte, _ []byte) {
	if !s.may(issuer.Segment, s.tag(args[1]), 0) {
		return
	}
	s.fail("ERR a counter is not read here: servers hold ranges of it in memory, so that it has no one value; INCR takes the next ID")
}
