"""In which order regions get programs, and how much time is spent on them."""

import pytest
import torch
from torch import nn

from stand_in_author import Scale, compiled_with_reports


class Sines(nn.Module):
    """Regions of `first` and `second` operators, with random numbers between."""

    def __init__(self, first, second):
        super().__init__()
        self.counts = first, second
        self.scale = Scale()

    def forward(self, x):
        first, second = self.counts
        for _ in range(first):
            x = x.sin()
        x = x + torch.rand_like(x)
        for _ in range(second):
            x = x.cos()
        return x


def minutes_of(asked):
    command, _ = asked
    return float(command[command.index("--minutes") + 1])


def test_the_region_that_takes_longest_comes_first(author, x):
    author.answers(accepts="False", ending="nothing left to try")
    compiled_with_reports(Sines(5, 20), x)
    first, second = author.asked()
    assert "cos" in first[1] and "sin" in second[1]


def test_regions_share_the_time_of_their_graph(author, x):
    author.answers(accepts="False", ending="nothing left to try")
    compiled_with_reports(Sines(10, 10), x, options={"minutes": 6.0})
    first, second = map(minutes_of, author.asked())
    assert 1.5 < first < 4.5  # about a half, and what it leaves goes to the next
    assert 5.0 < second < 6.0


def test_regions_that_take_next_to_nothing_are_left_alone(author, x):
    author.answers(accepts="False", ending="nothing left to try")
    _, reports = compiled_with_reports(Sines(1, 400), x)
    assert len(author.asked()) == 1
    assert [report.why for report in reports if "sin" in report.operators][0].startswith("it takes only")


def test_time_that_is_spent_ends_the_search(author, x):
    _, reports = compiled_with_reports(Scale(), x, options={"minutes": 0.2})
    assert author.asked() == [] and "are spent" in reports[0].why


@pytest.mark.parametrize("ending, asked", [("time spent", [1, 1, 2]), ("nothing left to try", [1, 1, 1])])
def test_what_was_not_found_for_want_of_time_is_asked_again_with_more(author, x, ending, asked):
    author.answers(accepts="False", ending=ending)
    for minutes, count in zip((1.0, 1.0, 4.0), asked):
        torch._dynamo.reset()
        compiled_with_reports(nn.Sequential(Scale(), nn.Identity()), x, options={"minutes": minutes})
        texts = [text for _, text in author.asked()]  # of the graph, and of its halves
        assert texts.count(texts[0]) == count
