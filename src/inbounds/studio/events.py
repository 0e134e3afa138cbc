"""What happens in a project, told to every open page as it happens."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

from inbounds.studio.studio import Studio

LOOK, TRAINING, BEAT = 0.1, 0.5, 15.0
"""Seconds between two looks for something new, two looks at the training, and two signs of life."""


async def events(studio: Studio, after: int | None) -> AsyncIterator[str]:
    """What happens, as it happens."""
    project = studio.project
    seen = project.sequence if after is None else after
    clock = asyncio.get_running_loop().time
    said, beat, told = clock(), clock(), ""
    yield ": here\n\n"
    while not studio.closing:
        if project.sequence > seen:
            for number, scan, kind, who in project.database.since(seen):
                seen = number
                content = {"sequence": number, "scan": scan, "kind": kind, "who": who}
                yield f"id: {number}\ndata: {json.dumps(content)}\n\n"
            beat = clock()
        if clock() - said >= TRAINING:
            said = clock()
            training = json.dumps(await asyncio.to_thread(studio.trainings.state))
            if training != told:
                told, beat = training, clock()
                yield f'data: {{"training": {training}}}\n\n'
        if clock() - beat >= BEAT:
            beat = clock()
            yield ": still here\n\n"
        await asyncio.sleep(LOOK)
