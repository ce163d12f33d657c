"""load_skill."""

from dataclasses import dataclass

from app.context.skills import body_of
from app.conversation.clean import clean_text
from app.conversation.tools import ToolRequest, ToolResult
from app.ports.skills import SkillLibrary
from app.tools.schema import define, text

SKILL_FILE = "SKILL.md"


@dataclass(frozen=True, slots=True)
class LoadSkill:
    library: SkillLibrary
    safe = True
    definition = define(
        "load_skill",
        "Reads the instructions of a skill, or another file that belongs to it.",
        ["skill"],
        skill=text("The skill's name, as it is listed."),
        path=text("A file of the skill, relative to its folder; the instructions when left out."),
    )

    async def run(self, request: ToolRequest) -> ToolResult:
        name, path = request.arguments["skill"], request.arguments.get("path", SKILL_FILE)
        skills = [skill.name for skill in await self.library.list()]
        if name not in skills:
            known = f"the skills are: {', '.join(skills)}" if skills else "there are none now"
            return ToolResult(f"There is no skill of this name; {known}.", is_error=True)
        data = await self.library.read(name, path)
        if b"\0" in data:
            return ToolResult(f"[not a text file: {len(data)} bytes]")
        content = clean_text(data.decode(errors="replace"))
        if path != SKILL_FILE:
            return ToolResult(content or "[the file is empty]")
        more = [file for file in await self.library.files(name) if file != SKILL_FILE]
        listed = "\n\nFiles of this skill, for load_skill with `path`:\n" + "\n".join(more) if more else ""
        return ToolResult((body_of(content) or "[the skill has no text]") + listed)
