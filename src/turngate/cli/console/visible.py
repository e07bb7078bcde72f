"""Make characters visible that hide in a text under review: invisible ones, and those that look like ASCII."""

import re
import unicodedata

# A selection of letters of other alphabets that most fonts draw as letters of ASCII.
_LETTERS = frozenset(
    "асеорхуіјѕһԁԛԝьӏАВЕКМНОРСТУХІЈЅԌԚԜӀ"  # Cyrillic
    "αοενικρτυχγωΑΒΕΖΗΙΚΜΝΟΡΤΥΧϲϳ"  # Greek
    "օսոհցԁյզԱՍՕ"  # Armenian
    "ᎪᏴᏟᎠᎬᏀᎻᎥᎫᏦᏞᎷᏢᏒᏚᎢᏙᎳᏃ"  # Cherokee
    "ıɑɡɩʏʟɴʜǀǃꓲꓰꓐꓚꓓꓝꓖꓧꓙꓗꓡꓟꓠꓳꓑꓣꓢꓔꓴꓦꓪꓫꓬꓜ"
)
_PUNCTUATION = frozenset("‐‑‒–−‘’‚‛“”„‟′″ʹʺʼˈ⁄∕╱⧸․‥∶ːꓸꓹꓺ˗⁎∗⸴︰﹨⧵∖❘￨∣⟨⟩❬❭‹›")
_CLEAR = frozenset("…™")  # equivalent to ASCII, but drawn differently
_BLANK_LETTERS = frozenset("\u115f\u1160\u3164\uffa0\u2800")  # drawn as nothing, or as a blank
_INVISIBLE_MARKS = re.compile("[\u034f\u17b4\u17b5\u180b-\u180f\ufe00-\ufe0f\U000e0100-\U000e01ef]")
_WORD = re.compile(r"\w+")


def make_visible(text: str) -> str:
    """Return a text whose invisible and look-alike characters are written as `<U+202E>`; newline and tab stay."""
    if text.isascii() and text.replace("\n", "").replace("\t", "").isprintable():
        return text
    marked = _WORD.sub(_mark_word, text)
    return "".join(_name(char) if _is_hidden(char) else char for char in marked)


def _mark_word(match: re.Match[str]) -> str:
    """Mark look-alikes in a word that could be read as ASCII; in a word of its own alphabet, they are what they seem."""
    word = match[0]
    others = [char for char in word if not char.isascii()]
    if not all(char in _LETTERS or unicodedata.normalize("NFKC", char).isascii() for char in others):
        return word
    return "".join(char if char.isascii() else _name(char) for char in word)


def _is_hidden(char: str) -> bool:
    if char.isascii():
        return not char.isprintable() and char not in "\n\t"
    if char in _PUNCTUATION or char in _BLANK_LETTERS or _INVISIBLE_MARKS.match(char):
        return True
    if not char.isprintable():  # control, format, private and unassigned characters, surrogates, blanks
        return True
    return unicodedata.normalize("NFKC", char).isascii() and not (char.isalnum() or char in _CLEAR)


def _name(char: str) -> str:
    return f"<U+{ord(char):04X}>"
