#!/usr/bin/env python3
"""Prints forms.json: texts of package textid, computed without its code.

usage: python3 api/vectors/forms.py >api/vectors/forms.json
"""
import datetime
import json
import random
import re
import string

BASES = {
    "base10": string.digits,
    "base36": string.digits + string.ascii_uppercase,
    "base58": "".join(c for c in string.digits + string.ascii_uppercase + string.ascii_lowercase if c not in "0OIl"),
    "base32": "".join(c for c in string.digits + string.ascii_uppercase if c not in "ILOU"),
}
LARGEST = 2**63 - 1


def luhn(text):
    digits = [int(c) for c in text if c in string.digits]
    total = sum(digits[-2::-2]) + sum(sum(divmod(2 * d, 10)) for d in digits[-1::-2])
    return str(-total % 10)


def mod97_10(text):
    number = "".join(str(int(c, 36)) for c in text if c.isascii() and c.isalnum())
    return "%02d" % (98 - int(number + "00") % 97)


def mod11_10(text):
    """ISO 7064: the digit that makes the last intermediate sum congruent to 1."""
    def congruent(digits):
        product = 10
        for d in digits[:-1]:
            product = ((product + d) % 10 or 10) * 2 % 11
        return (product + digits[-1]) % 10 == 1
    digits = [int(c) for c in text if c in string.digits]
    return next(str(d) for d in range(10) if congruent(digits + [d]))


CHECKS = {"luhn": luhn, "mod97-10": mod97_10, "mod11-10": mod11_10}


def number(n, alphabet, width):
    text = ""
    while n or not text:
        n, digit = divmod(n, len(alphabet))
        text = alphabet[digit] + text
    return text.rjust(width, alphabet[0])


def encode(template, n, period, key):
    """Returns the text, None if the number does not fit."""
    text = ""
    for field in re.findall(r"\{[^}]*\}|[^{}]+", template):
        name, _, args = field.strip("{}").partition(":")
        if not field.startswith("{"):
            text += field
        elif name == "n":
            base, width = re.fullmatch(r"(base\d+)?:?(\d*)", args).groups()
            width = int(width or 0)
            part = number(n, BASES[base or "base10"], width)
            if width and len(part) > width:
                return None
            text += part
        elif name == "period":
            day = datetime.date.fromisoformat(period)
            for symbol, value in (("yyyy", "%04d" % day.year), ("MM", "%02d" % day.month), ("dd", "%02d" % day.day)):
                args = args.replace(symbol, value)
            text += args
        elif name == "key":
            text += str(key)
        else:
            text += CHECKS[args](text)
    return text


TEMPLATES = [  # with the periods that the form can tell
    ("{n}", [None]), ("{n:6}", [None]), ("{n:base36}", [None]), ("{n:base58:11}", [None]), ("{n:base32:13}", [None]),
    ("A{n:base10:19}Z", [None]), ("{key}{n:base36:13}", [None]), ("Nº {n}/26", [None]),
    ("{n}{check:luhn}", [None]), ("{n}{check:mod11-10}", [None]), ("{n}{check:mod97-10}", [None]),
    ("RF{n:base36:10}{check:mod97-10}", [None]), ("{key}-{n:base32:13}-{check:mod97-10}", [None]),
    ("INV-{period:yyyyMMdd}-{n:6}{check:luhn}", ["2026-11-23", "2028-02-29", "0001-01-02", "9999-12-31"]),
    ("{n}/{period:yyyy.MM}", ["2026-11-01", "2027-01-01"]), ("{period:dd_MM-yyyy}{n:4}", ["2026-02-20", "2002-01-02"]),
    ("FY{period:yyyy}-{n:5}{check:mod11-10}", ["2026-01-01"]),
]
MALFORMED = [
    "", "plain", "{}", "{n", "n}", "{n}}", "{{n}", "{n:0}", "{n:06}", "{n:65}", "{n:-1}", "{n:base64}", "{n:base32:}", "{n}{n}", "{N}",
    "{n}{check}", "{n}{check:crc}", "{check:luhn}{n}", "{n:base36}{check:luhn}", "{n:base58}{check:mod97-10}", "{n:base32}{check:mod11-10}",
    "{n}{period}", "{n}{period:}", "{n}{period:MM}", "{n}{period:yyyydd}", "{n}{period:yyy}", "{n}{period:yyyyyyyy}", "{n}{period:yyyyMMddMM}",
    "{n}{period:yyyy}{period:yyyy}", "{n}{period:yyyyww}", "{n}{period:yyyy MM}", "{n}{period:__yyyy}", "{n}{key}{key}", "{n}{key:2}", "{n}\t", "{n}" + "x" * 254,
]


def wrong(template, text, rng):
    """Returns texts that no number has: with another character, one that is missing, or one too many."""
    found = {text + "x", "", text + " "}
    if re.search(r"\{n:(base\d+:)?\d+\}", template):  # all texts have one length
        found |= {text[:-1], text[1:], text + "0", "0" + text}
    if "check" in template:  # the check digits notice every wrong digit
        for i in (i for i, c in enumerate(text) if c in string.digits):
            found.add(text[:i] + rng.choice(string.digits.replace(text[i], "")) + text[i + 1:])
    return sorted(found)


def main():
    rng = random.Random(31)
    forms = []
    for template, periods in TEMPLATES:
        texts, refused, bad = [], [], set()
        numbers = {0, 1, 9, 10, 999999, 1000000, 2**53, LARGEST} | {rng.randrange(2 ** rng.randrange(1, 64)) for _ in range(8)}
        for n in sorted(numbers):
            period, key = rng.choice(periods), rng.randrange(10) if "{key}" in template else 0
            entry = {"n": str(n)} | ({"period": period} if period else {}) | ({"key": key} if key else {})
            text = encode(template, n, period, key)
            if text is None:
                refused.append(entry)
                continue
            texts.append(entry | {"text": text})
            bad.update(wrong(template, text, rng))
        forms.append({"template": template, "texts": texts, "refused": refused, "wrong": sorted(bad)})
    print(json.dumps({"forms": forms, "malformed": MALFORMED}, indent=None, ensure_ascii=False).replace(' {"', '\n{"'))


if __name__ == "__main__":
    main()
