"""How many channels of a connection are open at once."""

import asyncio

from turngate.shells.ssh.shell import GROW_AFTER, ChannelLimit


async def started(limit: ChannelLimit, order: list[str], name: str) -> "asyncio.Task[None]":
    async def wait() -> None:
        await limit.acquire()
        order.append(name)

    task = asyncio.create_task(wait())
    await asyncio.sleep(0)
    return task


def test_waiters_get_a_channel_in_order_of_arrival() -> None:
    async def scenario() -> list[str]:
        limit, order = ChannelLimit(1), list[str]()
        await limit.acquire()
        first = await started(limit, order, "first")
        cancelled = await started(limit, order, "cancelled")
        cancelled.cancel()
        limit.release()
        second = await started(limit, order, "second")
        await first
        limit.release()
        await second
        return order

    assert asyncio.run(scenario()) == ["first", "second"]


def test_a_waiter_that_is_cancelled_in_its_turn_passes_the_channel_on() -> None:
    async def scenario() -> list[str]:
        limit, order = ChannelLimit(1), list[str]()
        await limit.acquire()
        first = await started(limit, order, "first")
        second = await started(limit, order, "second")
        limit.release()
        first.cancel()
        await second
        return order

    assert asyncio.run(scenario()) == ["second"]


def test_the_limit_shrinks_to_the_other_channels_and_grows_with_those_that_open() -> None:
    async def scenario() -> list[int]:
        limit, limits = ChannelLimit(4), list[int]()
        for _ in range(3):
            await limit.acquire()
        assert limit.shrink()
        limits.append(limit.limit)
        for _ in range(GROW_AFTER):
            limit.opened()
        limits.append(limit.limit)
        limit.shrink()
        for _ in range(GROW_AFTER - 1):
            limit.opened()
        limits.append(limit.limit)
        limit.reset()
        for _ in range(GROW_AFTER):
            limit.opened()
        return [*limits, limit.limit]

    assert asyncio.run(scenario()) == [2, 3, 2, 4]


def test_a_higher_limit_lets_waiters_in() -> None:
    async def scenario() -> list[str]:
        limit, order = ChannelLimit(2), list[str]()
        await limit.acquire()
        await limit.acquire()
        limit.shrink()
        limit.release()
        waiting = await started(limit, order, "waiting")
        assert order == []
        limit.reset()
        await waiting
        return order

    assert asyncio.run(scenario()) == ["waiting"]
