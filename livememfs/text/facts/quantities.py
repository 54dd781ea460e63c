"""Numbers with a unit, so that `1.5 s` is `1500 ms` and `60 s` is not `60 min`; and numbers that are written as words.

Owns the units. A unit that may mean several things (`5m`) counts as each of them. Pure, linear; any thread may call it.
"""

from __future__ import annotations

import re
from fractions import Fraction

from livememfs.text.facts.dates import GAP, time_key
from livememfs.text.facts.fact import Fact, all_of, any_of, bare_key, number_key, one

_Amounts = tuple[Fraction | int, ...]
_KINDS: dict[str, dict[str, Fraction | int]] = {
    "s": {
        "ns": Fraction(1, 10**9),
        "us µs μs": Fraction(1, 10**6),
        "ms millisecond milliseconds milliseconde millisecondes": Fraction(1, 1000),
        "s sec secs second seconds seconde secondes": 1,
        "min mins mn minute minutes": 60,
        "h hr hrs hour hours heure heures": 3_600,
        "d j day days jour jours": 86_400,
        "week weeks semaine semaines": 604_800,
    },
    "mo": {"month months mois": 1, "year years yr yrs an ans année années": 12},
    "%": {"% percent pct cent": 1},
    "eur": {"€ eur euro euros": 1, "k€": 1_000, "m€": 10**6},
    "usd": {"$ usd dollar dollars": 1, "k$": 1_000},
    "gbp": {"£ gbp": 1},
    "hz": {"hz": 1, "khz": 1_000, "mhz": 10**6, "ghz": 10**9},
    "px": {"px pixel pixels": 1},
    "m": {"m meter meters metre metres mètre mètres": 1, "km": 1_000, "cm": Fraction(1, 100), "mm": Fraction(1, 1000)},
    "g": {"kg": 1_000, "mg": Fraction(1, 1000)},
    "b": {"byte bytes octet octets": 1},
}
_NOT_IN_LOWER_CASE = ("mo", "go", "to")
_ONLY_IN_LOWER_CASE = ("s", "h", "d", "j", "m")
"""Units that count in one case only: `5 to 10` has no terabytes, `3D` no days."""
_MOST_DIGITS = 30


def _units() -> dict[str, tuple[str, _Amounts]]:
    """Kind and amount of each unit, by name. A kilobyte may have 1,000 bytes or 1,024, so both count."""
    units: dict[str, tuple[str, _Amounts]] = {"B": ("b", (1,)), "o": ("b", (1,))}
    for kind, factors in _KINDS.items():
        units |= {name: (kind, (factor,)) for names, factor in factors.items() for name in names.split()}
    for power, letter in enumerate("kmgt", 1):
        for end in "bo":
            units[f"{letter}{end}"] = ("b", (1000**power, 1024**power))
            units[f"{letter}i{end}"] = ("b", (1024**power,))
    return units


_UNITS = _units()
_MINUTES = "m"
"""Metres or minutes."""
_NUMBER = (
    r"[0-9]{1,3}(?:[ \u00a0\u202f][0-9]{3})+(?:[.,][0-9]+)?|[0-9]+(?:,[0-9]{3})+(?:\.[0-9]+)?|[0-9]+(?:[.,][0-9]+)?"
)
QUANTITY = re.compile(
    rf"(?<![\w.,:/#@$€£-])(?:(?P<low>[0-9]+(?:[.,][0-9]+)?){GAP}?(?:-|–|—|to|à){GAP}?)?(?P<number>{_NUMBER})"
    rf"(?P<many>[kKM](?={GAP}))?(?:{GAP}|-)?"
    rf"(?:(?:per|pour){GAP})?(?P<unit>[^\W\d_]{{1,14}}|[kM]?[%€£$])(?:/[^\W\d_]{{1,12}})?(?![\w/'’])"
)
MONEY = re.compile(rf"(?P<unit>[$€£]){GAP}?(?P<number>{_NUMBER})(?P<many>[kKM])?(?![\w])")
MANY = re.compile(
    rf"(?<![\w.,:/#-])(?P<number>[0-9]+(?:[.,][0-9]+)?){GAP}"
    r"(?P<many>thousand|million|millions|billion|mille|milliard|milliards)\b",
    re.I,
)
ONE = re.compile(
    rf"\b(?P<half>half{GAP}|demi-)?(?:an?{GAP}|(?<=demi-))(?P<unit>hour|heure|minute|day|week|month|year)\b", re.I
)
_POWERS = {1_000: "k thousand mille", 10**6: "m million", 10**9: "billion milliard"}
_TIMES = {name: factor for factor, names in _POWERS.items() for name in names.split()}

_TENS = "twenty thirty forty fifty sixty seventy eighty ninety", "vingt trente quarante cinquante soixante"
_IN_ORDER = (
    (0, "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"),
    (17, "seventeen eighteen nineteen"),
    (0, "zéro un deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize"),
    (1, "first"),
    (3, "third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth"),
    (1, "premier deuxième troisième quatrième cinquième sixième septième huitième neuvième dixième onzième douzième"),
)
_OTHERS = {
    **dict.fromkeys(("une", "première", "once"), 1),
    **dict.fromkeys(("twice", "both", "couple"), 2),
    **dict.fromkeys(("dozen", "douzaine"), 12),
    **{"fortnight": 14, "quinzaine": 15, "hundred": 100, "cent": 100, "thousand": 1_000, "mille": 1_000},
}


def _number_words() -> dict[str, str]:
    words = {name: start + place for start, names in _IN_ORDER for place, name in enumerate(names.split())}
    tens = {name: 10 * ten for names in _TENS for ten, name in enumerate(names.split(), 2)}
    ones = {name: value for name, value in words.items() if 0 < value < 20}
    joined = {f"{ten}-{name}": more + value for ten, more in tens.items() for name, value in ones.items()}
    return {name: str(value) for name, value in {**words, **tens, **joined, **_OTHERS}.items()}


NUMBER_WORDS = _number_words()
"""The digits of each number word, in English and French."""


def read_quantity(match: re.Match[str]) -> Fact | None:
    """A number with its unit, or two numbers: `5-10 min`. None when the word behind the number is no unit."""
    unit = _unit(match["unit"])
    if unit is None or len(match[0]) > 2 * _MOST_DIGITS:
        return None
    parts = [match["low"], match["number"]] if match["low"] else [match["number"]]
    times = _TIMES[match["many"].lower()] if match["many"] else 1
    return all_of(match[0], [_with_unit(match[0], part, unit, times, hours=match["unit"] == "h") for part in parts])


def read_money(match: re.Match[str]) -> Fact | None:
    """A sum of money, with the sign of its currency before it."""
    if len(match[0]) > _MOST_DIGITS:
        return None
    times = _TIMES[match["many"].lower()] if match["many"] else 1
    return _with_unit(match[0], match["number"], _UNITS[match["unit"]], times)


def read_many(match: re.Match[str]) -> Fact | None:
    """`2 million`."""
    if len(match[0]) > _MOST_DIGITS:
        return None
    value = _values(match["number"])[0] * _TIMES[match["many"].lower().rstrip("s")]
    digits = _digits(value)
    return Fact(match[0], ((number_key(digits),),), (number_key(digits), bare_key(digits), number_key(match["number"])))


def one_keys(match: re.Match[str]) -> list[str]:
    """The keys of `an hour` or `half an hour`."""
    kind, (factor, *_) = _UNITS[match["unit"].lower()]
    return [f"q:{kind}:{Fraction(factor) / (2 if match['half'] else 1)}"]


def _with_unit(text: str, number: str, unit: tuple[str, _Amounts], times: int = 1, *, hours: bool = False) -> Fact:
    """A number with a unit, which may also stand somewhere without it. `hours`: `14h` may be a time of day."""
    kind, factors = unit
    readings: list[Fact] = []
    for value in _values(number):
        says = number_key(_digits(value)), number_key(number.replace(",", "."))
        readings += [one(text, f"q:{kind}:{value * times * factor}", *says) for factor in factors]
        readings.append(Fact(text, ((bare_key(_digits(value * times)),),), ()))
        if unit is _UNITS[_MINUTES]:
            readings.append(one(text, f"q:s:{60 * value}"))
        if kind == "%":
            part = _digits(value / 100)
            readings.append(Fact(text, ((bare_key(part),),), (number_key(part), bare_key(part))))
        if hours and value.denominator == 1 and value < 25:
            readings.append(one(text, time_key(int(value), 0)))
    return any_of(text, readings)


def _unit(name: str) -> tuple[str, _Amounts] | None:
    if name in _NOT_IN_LOWER_CASE or (name not in _UNITS and name.lower() in (*_ONLY_IN_LOWER_CASE, "o")):
        return None
    return _UNITS.get(name) or _UNITS.get(name.lower())


def _values(number: str) -> list[Fraction]:
    """The values that a number may have: a comma in `1,500` may be a decimal one."""
    digits = re.sub("[ \u00a0\u202f]", "", number)
    values = [Fraction(digits.replace(",", ""))] if re.fullmatch(r"[0-9]+(?:,[0-9]{3})+(?:\.[0-9]+)?", digits) else []
    if digits.count(",") <= 1 and not ("," in digits and "." in digits):
        values.append(Fraction(digits.replace(",", ".")))
    return list(dict.fromkeys(values)) or [Fraction(digits.replace(",", "").replace(".", ""))]


def _digits(value: Fraction) -> str:
    """A number in decimal digits, rounded to twelve places."""
    if value.denominator == 1:
        return str(value.numerator)
    return f"{float(value):.12f}".rstrip("0")
