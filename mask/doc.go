// Package mask hides the size of a number, and how many came before it: it maps the numbers of a
// domain onto themselves, one to one, under a secret key.
//
// The mapping is FF1 of NIST SP 800-38G with AES-256. Its tweak is the name of the series, so two
// series with one key have nothing in common. A mask has no state: unique numbers stay unique, and
// [Mask.Reveal] gets them back.
//
// A mask is no signature. Each number of the domain is that of some series position, so a guess
// always reveals something. It hides the order and the quantity from people without the key, not
// more.
package mask
