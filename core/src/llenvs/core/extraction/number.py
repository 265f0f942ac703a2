r"""The grammar of written numbers, shared by `numeric` and `gsm8k`.

Understood: signs (also U+2212 and the en dash), thousands separators (``1,234``, ``12,34,567``, ``1_000``,
``1'000``, ``1\,234``, ``1{,}234``, narrow and no-break spaces), decimals, exponents (``1e6``, ``3 \times 10^{6}``,
``10^6``, ``10⁶``), powers, fractions (``3/4``, ``\frac{3}{4}``, ``1 3/4``), currency signs, per cent.
A comma is never a decimal point.
"""

from __future__ import annotations

import re

_SEPARATOR = r"(?:[,_'’\u00a0\u2009\u202f]|\{,\}|\\[,!;])"
_INTEGER = (
    rf"(?:[0-9]{{1,3}}(?:{_SEPARATOR}[0-9]{{3}})+(?![0-9])"
    r"|[0-9]{1,2}(?:,[0-9]{2}){1,6},[0-9]{3}(?![0-9])"  # Indian grouping; bounded, or a long list costs its square
    r"|[0-9]++)"
)
_DECIMAL = rf"(?:{_INTEGER}(?:\.[0-9]++)?|(?<![0-9])\.[0-9]++)"
_SIGN = "[-+\u2212\u2013\ufe63\uff0d]"
_EXPONENT = rf"{_SIGN}?[0-9]++"
_RAISED = (
    rf"(?:\^\s?(?:\{{\s?{_EXPONENT}\s?\}}|\(\s?{_EXPONENT}\s?\)|{_EXPONENT})"
    rf"|\*\*\s?{_EXPONENT}|[⁺⁻]?[⁰¹²³⁴⁵⁶⁷⁸⁹]++)"
)
_FRACTION_COMMAND = r"\\[cdt]?frac"
_LATEX_FRACTION = (
    rf"{_FRACTION_COMMAND}(?:\s{{0,4}}\{{\s{{0,4}}(?P<over>{_SIGN}?{_DECIMAL})\s{{0,4}}\}}"
    rf"\s{{0,4}}\{{\s{{0,4}}(?P<under>{_DECIMAL})\s{{0,4}}\}}|\s?(?P<over1>[0-9])\s?(?P<under1>[0-9]))"
)

# A hyphen after a word, a digit or a bracket joins or subtracts; elsewhere it is a sign.
NUMBER = (
    rf"(?P<sign>(?<![\w)\]}}%]){_SIGN})?(?:(?:\\?\$|[€£¥₹₽₩])\s?(?P<sign2>{_SIGN})?)?"
    rf"(?:(?P<whole>[0-9]{{1,9}})\s?(?={_FRACTION_COMMAND}))?"
    rf"(?:{_LATEX_FRACTION}"
    r"|(?P<mixed>[0-9]{1,9}) (?P<mixed_over>[0-9]{1,9})/(?P<mixed_under>[0-9]{1,9})(?![0-9.,]?[0-9]|/)"
    rf"|(?P<decimal>{_DECIMAL})"
    rf"(?:(?P<e>[eE]{_EXPONENT})"
    rf"|\s?(?:\\times|\\cdot|[×·x*])\s?10(?P<scale>{_RAISED})"
    rf"|(?P<power>{_RAISED})"
    rf"|\s?/\s?(?P<denominator>{_DECIMAL}))?)"
    r"(?P<percent>\s?\\?%)?"
)

_MINUS_SIGNS = str.maketrans(dict.fromkeys("\u2212\u2013\ufe63\uff0d⁻", "-") | {"⁺": "+"})
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")
_SEPARATORS = re.compile(_SEPARATOR)


def plain_number(match: re.Match[str], *, keep_percent: bool = False) -> str:
    """The number that `NUMBER` matched in one plain form: ``-1234.5``, ``3/4``, ``3e6``, ``2^10``, ``50%``.

    No plus sign, no separators, no currency, ``%`` only on demand; a mixed number is an improper fraction.
    """
    negative = "-" in (_sign(match["sign"]), _sign(match["sign2"]))
    if match["over"] or match["over1"]:
        over, under = match["over"] or match["over1"], match["under"] or match["under1"]
        if over[0] not in "0123456789.":
            negative ^= _sign(over[0]) == "-"
            over = over[1:]
        value = _fraction(match["whole"], _digits(over), _digits(under))
    elif match["mixed"]:
        value = _fraction(match["mixed"], match["mixed_over"], match["mixed_under"])
    else:
        value = _digits(match["decimal"])
        if match["e"]:
            value += f"e{_exponent(match['e'][1:])}"
        elif match["scale"]:
            value += f"e{_exponent(match['scale'])}"
        elif match["power"]:
            exponent = _exponent(match["power"])
            value = f"1e{exponent}" if value == "10" else f"{value}^{exponent}"
        elif match["denominator"]:
            value += f"/{_digits(match['denominator'])}"
    return ("-" if negative else "") + value + ("%" if keep_percent and match["percent"] else "")


def _sign(text: str | None) -> str:
    return (text or "").translate(_MINUS_SIGNS)


def _digits(text: str) -> str:
    digits = _SEPARATORS.sub("", text)
    return f"0{digits}" if digits.startswith(".") else digits


def _exponent(text: str) -> str:
    return text.translate(_MINUS_SIGNS).translate(_SUPERSCRIPTS).strip("^*{}() ").removeprefix("+")


def _fraction(whole: str | None, over: str, under: str) -> str:
    # Only a proper fraction of integers makes a mixed number; lengths are bounded by the grammar for `whole`.
    if whole is None:
        return f"{over}/{under}"
    if len(over) > 9 or len(under) > 9 or not (over.isdigit() and under.isdigit()):
        return f"{over}/{under}"
    return f"{int(whole) * int(under) + int(over)}/{under}"
