package bench

import (
	"context"

	bwmarrin "github.com/bwmarrin/snowflake"
	"github.com/google/uuid"
	"github.com/oklog/ulid/v2"
	"github.com/rs/xid"
	"github.com/segmentio/ksuid"
	"github.com/sony/sonyflake/v2"
	"github.com/yitter/idgenerator-go/idgen"
)

type bwmarrinIDs struct{ node *bwmarrin.Node }

func newBwmarrin() (Source, error) {
	node, err := bwmarrin.NewNode(1)
	return bwmarrinIDs{node}, err
}

func (b bwmarrinIDs) Next(context.Context) (int64, error) { return b.node.Generate().Int64(), nil }

type sonyflakeIDs struct{ s *sonyflake.Sonyflake }

func newSonyflake() (Source, error) {
	s, err := sonyflake.New(sonyflake.Settings{MachineID: func() (int, error) { return 1, nil }})
	return sonyflakeIDs{s}, err
}

func (s sonyflakeIDs) Next(context.Context) (int64, error) { return s.s.NextID() }

type yitterIDs struct{ g *idgen.DefaultIdGenerator }

func newYitter() (Source, error) {
	return yitterIDs{idgen.NewDefaultIdGenerator(idgen.NewIdGeneratorOptions(1))}, nil
}

func (y yitterIDs) Next(context.Context) (int64, error) { return y.g.NewLong(), nil }

// textIDs makes text IDs; it returns one byte as proof of work.
type textIDs func() byte

func texts(next textIDs) func() (func() Source, error) {
	return shared(func() (Source, error) { return next, nil })
}

func (t textIDs) Next(context.Context) (int64, error) { return int64(t()), nil }

func newXID() byte   { return xid.New()[11] }
func newULID() byte  { return ulid.Make()[15] }
func newKSUID() byte { return ksuid.New()[19] }
func newUUID4() byte { return uuid.New()[15] }
func newUUID7() byte { return uuid.Must(uuid.NewV7())[15] }
