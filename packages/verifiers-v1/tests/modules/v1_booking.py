"""A scenario for the upstream's user-sim environment."""

import verifiers.v1 as vf

__all__ = ["Bookings"]


class Booking(vf.TaskData):
    answer: str


class BookingTask(vf.Task[Booking]):
    @vf.reward
    async def booked(self, trace) -> float:
        return float(self.data.answer in trace.last_reply)


class Bookings(vf.Taskset[BookingTask, vf.TasksetConfig]):
    def load(self):
        for city in ("Oslo", "Rome"):
            yield BookingTask(
                Booking(prompt=f"You want a flight to {city}.", system_prompt="You book flights.", answer=city),
                self.config.task,
            )
