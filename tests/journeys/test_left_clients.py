"""A client that waits for the end of something, and leaves: nothing at the server waits on for it."""

from tests.double.control import Double
from tests.double.steps import Hold, say
from tests.journeys.house import House
from tests.journeys.long_sessions import open_long
from tests.journeys.raw import connect


async def post_and_leave(house: House, path: str, body: bytes, hold: Hold) -> None:
    _, writer = await connect(house.url)
    writer.write(f"POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body)
    await hold.reached.wait()
    assert house.services.turns.open_streams == 1
    writer.close()
    await house.all_requests_ended()


async def test_a_client_that_waited_for_its_turn_and_left_leaves_no_reader_and_the_turn_goes_on(
    house: House, double: Double
):
    double.script(say("to its end", at={1: (hold := Hold())}))
    session = await house.open()
    await post_and_leave(house, f"{session}/turns?wait=true", b'{"content":"go"}', hold)
    assert house.services.turns.open_streams == 0
    hold.release()
    async with house.follow(session) as reader:
        await reader.until("turn.completed")


async def test_a_client_that_waited_for_a_compaction_and_left_leaves_no_reader_and_the_compaction_ends(
    house: House, double: Double
):
    session = await open_long(house, 15)
    double.script(say("half a briefing", at={1: (hold := Hold())}), purpose="summarize")
    double.script(say("no briefing either"), purpose="summarize")
    await post_and_leave(house, f"{session}/compact", b"{}", hold)
    assert house.services.turns.open_streams == 0
    hold.release()
    async with house.follow(session) as reader:
        await reader.until("turn.completed")
