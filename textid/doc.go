// Package textid writes numbers as text for people, and reads them back: INV-20261123-0000424 for
// the number 42 of a day.
//
// A template names the parts of the text:
//
//	INV-{period:yyyyMMdd}-{n:6}{check:luhn}
//	{n:base32:13}
//
// Characters outside braces are literal. The fields are
//
//	{n}  {n:6}  {n:base36}  {n:base32:13}   the number, in base10, base36, base58 or base32
//	{period:yyyyMMdd}                       the first day of the number's period
//	{key}                                   one digit, the version of the key of a mask
//	{check:luhn}                            check digits over the text before them
//
// A template has exactly one {n}. A width pads the number with zeros, and a number that needs more
// is an error wrapping [leaf.ErrOverflow]. Base58 has Bitcoin's digits and base32 Crockford's;
// base36 and base32 are in capitals.
//
// The pattern of a period has yyyy, MM and dd, with - . / or _ between them, but no __ before yyyy.
// The parts that it leaves out are those of the first day: yyyyMM is for months. Any other day is an
// error, because no reader could tell it. A week has the date of its first day.
//
// The check digits are luhn (one digit), mod11-10 (ISO 7064, one digit) and mod97-10 (ISO 7064, two
// digits). They cover all digits before them. Mod97-10 also covers letters, as in an IBAN: A is 10
// and Z is 35. The other two need a decimal {n}. Base58 allows no check digits.
//
// [Form.Decode] is the exact inverse of [Form.Encode]. It accepts no text that Encode does not
// write, so no other case, no missing zeros and no wrong check digit.
package textid
