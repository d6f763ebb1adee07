package access

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"math/big"
	"strings"
)

// A token is the prefix, 256 random bits in base 62, and a checksum of both, as tokens of
// GitHub are: programs that look for secrets in source code find it by its looks alone.
const (
	tokenPrefix  = "leaf_"
	secretDigits = 43 // of base 62, for 256 bits
	sumDigits    = 6  // for 32 bits
	hashPrefix   = "sha256:"
)

// NewToken returns a new token.
func NewToken() string {
	var secret [32]byte
	_, _ = rand.Read(secret[:]) // never fails
	text := tokenPrefix + base62(new(big.Int).SetBytes(secret[:]), secretDigits)
	return text + checksum(text)
}

func checksum(text string) string {
	return base62(big.NewInt(int64(crc32.ChecksumIEEE([]byte(text)))), sumDigits)
}

func base62(n *big.Int, digits int) string {
	text := n.Text(62)
	return strings.Repeat("0", digits-len(text)) + text
}

// CheckToken reports why text is not a token that NewToken has returned. The error does
// not hold the text.
func CheckToken(text string) error {
	secret, ok := strings.CutPrefix(text, tokenPrefix)
	switch {
	case !ok:
		return fmt.Errorf("it does not begin with %s: only tokens made by this program are random enough to be kept as a hash", tokenPrefix)
	case len(secret) != secretDigits+sumDigits:
		return fmt.Errorf("it has %d characters, not %d: it was cut, or more was added", len(text), len(tokenPrefix)+secretDigits+sumDigits)
	case checksum(text[:len(text)-sumDigits]) != text[len(text)-sumDigits:]:
		return errors.New("its checksum is wrong: a character was changed")
	}
	return nil
}

// HashToken returns the hash of a token for a tokens file.
func HashToken(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hashPrefix + hex.EncodeToString(sum[:])
}

// parseHash reads what HashToken writes. The error does not hold the text, which may be a
// token by mistake.
func parseHash(text string) (hash [sha256.Size]byte, err error) {
	digits, ok := strings.CutPrefix(text, hashPrefix)
	if strings.HasPrefix(text, tokenPrefix) {
		return hash, errors.New("hash is a token itself, which the file must not hold: write its hash, and replace the token if others have read the file")
	}
	sum, err := hex.DecodeString(digits)
	if !ok || err != nil || len(sum) != len(hash) {
		return hash, fmt.Errorf("hash is not %s and 64 hexadecimal digits", hashPrefix)
	}
	return [sha256.Size]byte(sum), nil
}
