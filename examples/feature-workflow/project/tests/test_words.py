import unittest

from words import words


class WordsTest(unittest.TestCase):
    def test_words(self) -> None:
        self.assertEqual(words(" a  b "), ["a", "b"])  # noqa: PT009 - the project uses unittest
