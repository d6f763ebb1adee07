#!/usr/bin/env python3
"""Prints masks.json: masked numbers of package mask, computed without its code.

usage: python3 api/vectors/masks.py >api/vectors/masks.json

FF1 follows the pseudo-code of NIST SP 800-38G digit by digit; AES-256 follows FIPS 197. Both are slow.
"""
import json
import random


def make_sbox():
    box, p, q = [0] * 256, 1, 1
    while True:
        p = p ^ (p << 1) & 0xFF ^ (0x1B if p & 0x80 else 0)  # times 3
        for shift in (1, 2, 4):  # divided by 3
            q ^= q << shift & 0xFF
        if q & 0x80:
            q ^= 0x09
        box[p] = 0x63 ^ q
        for turn in (1, 2, 3, 4):
            box[p] ^= (q << turn | q >> 8 - turn) & 0xFF
        if p == 1:
            box[0] = 0x63
            return box


SBOX = make_sbox()


def double(x):
    return (x << 1) ^ 0x11B if x & 0x80 else x << 1


def expand(key):
    words, constant = [list(key[i:i + 4]) for i in range(0, 32, 4)], 1
    for i in range(8, 60):
        word = list(words[-1])
        if i % 8 == 0:
            word = [SBOX[x] for x in word[1:] + word[:1]]
            word[0] ^= constant
            constant = double(constant)
        elif i % 8 == 4:
            word = [SBOX[x] for x in word]
        words.append([a ^ b for a, b in zip(words[i - 8], word)])
    return [sum(words[i:i + 4], []) for i in range(0, 60, 4)]


def aes(keys, block):
    state = [a ^ b for a, b in zip(block, keys[0])]
    for number, key in enumerate(keys[1:], 1):
        state = [SBOX[state[(i + 4 * (i % 4)) % 16]] for i in range(16)]
        if number < 14:
            columns = [state[i:i + 4] for i in range(0, 16, 4)]
            state = [double(c[i]) ^ double(c[(i + 1) % 4]) ^ c[(i + 1) % 4] ^ c[(i + 2) % 4] ^ c[(i + 3) % 4]
                     for c in columns for i in range(4)]
        state = [a ^ b for a, b in zip(state, key)]
    return bytes(state)


def num(digits, radix):
    value = 0
    for digit in digits:
        value = value * radix + digit
    return value


def numerals(value, radix, length):
    digits = []
    for _ in range(length):
        value, digit = divmod(value, radix)
        digits.insert(0, digit)
    return digits


def ff1(key, tweak, digits, radix):
    """FF1.Encrypt of SP 800-38G."""
    keys, n, t = expand(key), len(digits), len(tweak)
    u, v = n // 2, n - n // 2
    a, b_half = digits[:u], digits[u:]
    b = -(-(radix ** v - 1).bit_length() // 8)
    d = 4 * -(-b // 4) + 4
    p = bytes([1, 2, 1]) + radix.to_bytes(3, "big") + bytes([10, u % 256]) + n.to_bytes(4, "big") + t.to_bytes(4, "big")
    for i in range(10):
        q = tweak + bytes((-t - b - 1) % 16) + bytes([i]) + num(b_half, radix).to_bytes(b, "big")
        r = bytes(16)
        for at in range(0, len(p + q), 16):
            r = aes(keys, bytes(x ^ y for x, y in zip(r, (p + q)[at:at + 16])))
        y = int.from_bytes(r[:d], "big")
        m = u if i % 2 == 0 else v
        c = (num(a, radix) + y) % radix ** m
        a, b_half = b_half, numerals(c, radix, m)
    return a + b_half


def selftest():
    plain = bytes.fromhex("00112233445566778899aabbccddeeff")  # FIPS 197, C.3
    assert aes(expand(bytes(range(32))), plain).hex() == "8ea2b7ca516745bfeafc49904b496089"
    key = bytes.fromhex("2B7E151628AED2A6ABF7158809CF4F3CEF4359D8D580AA4F7F036D6F04FC6A94")
    for radix, tweak, text, want in [  # samples 7, 8 and 9 of NIST's FF1samples.pdf
        (10, "", "0123456789", "6657667009"), (10, "39383736353433323130", "0123456789", "1001623463"),
        (36, "3737373770717273373737", "0123456789abcdefghi", "xs8a0azh2avyalyzuwd"),
    ]:
        assert ff1(key, bytes.fromhex(tweak), [int(c, 36) for c in text], radix) == [int(c, 36) for c in want]


def main():
    selftest()
    rng = random.Random(31)
    masks = []
    for domain in ["53", "63", "10^6", "10^7", "10^9", "10^12", "10^18"]:
        radix, length = (10, int(domain[3:])) if domain.startswith("10^") else (2, int(domain))
        for series in ["order", "", "größe", "a series whose name is longer than a block"]:
            key = rng.randbytes(32)
            numbers = [0, 1, 2, 42, radix ** length - 1] + [rng.randrange(radix ** length) for _ in range(4)]
            masks.append({"domain": domain, "series": series, "key": key.hex(), "max": str(radix ** length - 1), "numbers": [
                {"n": str(n), "hidden": str(num(ff1(key, series.encode(), numerals(n, radix, length), radix), radix))} for n in numbers]})
    print(json.dumps({"masks": masks}, ensure_ascii=False).replace(' {"', '\n{"'))


if __name__ == "__main__":
    main()
