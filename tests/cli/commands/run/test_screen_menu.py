import pytest
from prompt_toolkit.data_structures import Size

from turngate.cli.commands.run.screen_ui import format_menu
from turngate.cli.console.ui import Menu


@pytest.mark.parametrize(
    ("selected", "shown"),
    [
        (0, ["> row 0", "  row 1", "  row 2"]),
        (1, ["  row 0", "> row 1", "  row 2"]),
        (5, ["  row 4", "> row 5", "  row 6"]),
        (9, ["  row 7", "  row 8", "> row 9"]),
    ],
)
def test_a_menu_that_is_longer_than_half_a_screen_shows_the_rows_around_the_selected_one(
    selected: int, shown: list[str]
) -> None:
    menu = Menu("Hooks", tuple((f"row {number}", "plain") for number in range(10)), selected, "keys", "words")
    text = "".join(part[1] for part in format_menu(menu, Size(rows=10, columns=80)))
    assert text.splitlines() == ["Hooks", *shown, "keys"]


def test_a_row_is_as_long_as_the_screen_is_wide_and_the_selected_one_is_reversed() -> None:
    menu = Menu("Hooks", (("0123456789", "alert"), ("b\x1b[2J", "plain")), 0, "keys", "words")
    assert format_menu(menu, Size(rows=24, columns=10)) == [
        ("bold", "Hooks\n"),
        ("bold ansired reverse", "> 012345…\n"),
        ("", "  b\n"),
        ("", "keys"),
    ]
